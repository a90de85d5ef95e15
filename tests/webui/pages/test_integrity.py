"""The page Integrity: a verification from the page, damage by range, the command that repeats it."""

import sqlite3
from pathlib import Path

from tests.webui.pages.test_importing import done
from tests.webui.site import PLAIN, form_token, site
from webui.pages.integrity import ranges_of


def test_what_is_as_it_was_written_is_told_as_such(tmp_path: Path) -> None:
    with site(tmp_path, lake=False) as made:
        client = made.client()
        place = f"/sessions/{PLAIN}/integrity"
        page = client.get(place).text
        assert '<span class="muted">never</span>' in page
        assert f"loopledger verify -- {PLAIN}" in page
        answer = client.post(place, data={"form_token": form_token(page)}, follow_redirects=False)
        work = done(client, answer.headers["location"])
        assert work["to"] == place
        page = client.get(place).text
        assert "Nothing is wrong" in page and "as it was written" in page


def test_damage_is_told_by_range(tmp_path: Path) -> None:
    with site(tmp_path, lake=False) as made:
        client = made.client()
        client.get("/sessions")
        with sqlite3.connect(tmp_path / "ledger.sqlite") as database:
            table = next(
                name
                for (name,) in database.execute("select name from sqlite_master where type = 'table'")
                if "originator_id" in {column[1] for column in database.execute(f"pragma table_info({name})")}
            )
            for (trigger,) in database.execute(
                "select name from sqlite_master where type = 'trigger'"
            ).fetchall():
                database.execute(f"drop trigger {trigger}")
            changed = database.execute(
                f"update {table} set state = replace(state, 'shelf', 'shelv')"
                " where originator_id = ? and originator_version between 50 and 60",
                (PLAIN,),
            ).rowcount
        assert changed == 11
        token = form_token(client.get("/integrity").text)
        answer = client.post("/integrity", data={"form_token": token}, follow_redirects=False)
        work = done(client, answer.headers["location"])
        assert work["state"] == "done", work
        found = client.get("/api/v1/integrity").json()["found"]
        assert not found["is_ok"]
        of_records = [one for one in found["ranges"] if one["session"] is not None]
        assert {one["session"] for one in of_records} == {PLAIN}
        assert all(50 <= one["first"] <= one["last"] <= 61 for one in of_records)
        page = client.get("/integrity").text
        assert "DAMAGED" in page and f"/sessions/{PLAIN}/events?at=5" in page


def test_records_that_follow_each_other_are_one_range() -> None:
    def problem(seq: int | None, kind: str = "hash") -> dict[str, object]:
        return {"session": "s", "seq": seq, "kind": kind, "detail": f"at {seq}"}

    problems = [problem(5), problem(3), problem(4), problem(9), problem(4, "content"), problem(None)]
    found = [(one.kind, one.first, one.last, one.count) for one in ranges_of(problems)]
    assert found == [("hash", None, None, 1), ("hash", 3, 5, 3), ("content", 4, 4, 1), ("hash", 9, 9, 1)]

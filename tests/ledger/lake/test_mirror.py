"""A lake mirrored on object storage: whole versions only, one winner, erased means erased there too."""

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError
from obstore.store import ObjectStore, from_url

from ledger.errors import InputError
from ledger.lake import Lake, connect
from ledger.lake.publish import push
from tests.commands import answer, record_session, run
from tests.ledger.lake.feeds import feed_of, golden_rows
from tests.ledger.lake.test_tables import erased
from tests.object_storage import BUCKET, SETTINGS, object_storage


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with object_storage() as address:
        yield address


@pytest.fixture
def place(server: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    for name, value in {**SETTINGS, "AWS_ENDPOINT_URL": server}.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{request.node.name.partition('[')[0]}"


def opened(place: str) -> ObjectStore:
    return from_url(place, client_options={"allow_http": True})


def names(place: str) -> set[str]:
    return {one["path"] for batch in obstore.list(opened(place)) for one in batch}


def positions(place: str) -> list[int]:
    with connect(place) as connection:
        return [
            row[0] for row in connection.execute("select position from events order by position").fetchall()
        ]


def test_the_server_refuses_a_second_put_of_an_entry(place: str) -> None:
    obstore.put(opened(place), "entry", b"first", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(opened(place), "entry", b"second", mode="create")


def test_a_mirror_is_read_version_by_version(tmp_path: Path, place: str) -> None:
    rows, lake = golden_rows(600), Lake(tmp_path)
    with pytest.raises(InputError, match="there is no lake at s3://"):
        connect(place)
    lake.export(feed_of(rows[:200]))
    assert push(lake, place) == len(lake.paths())
    assert positions(place) == list(range(1, 201))
    assert push(lake, place) == 0
    lake.export(feed_of(rows), most_rows=50)
    assert push(lake, place) > 0
    assert positions(place) == list(range(1, 601))
    with connect(place) as connection:
        told = connection.execute(
            "select count(*), (select count(distinct session) from events) from sessions"
        )
        assert len(set(told.fetchone() or ())) == 1
    lake.clear(grace_s=0, now=lambda: 1e12)
    push(lake, place)
    assert {name for name in names(place) if name.endswith(".parquet")} == set(lake.manifest.read().files)


def test_a_copy_of_the_place_is_a_lake(tmp_path: Path, place: str) -> None:
    lake = Lake(tmp_path / "lake")
    lake.export(feed_of(golden_rows(300)))
    push(lake, place)
    for name in names(place):
        path = tmp_path / "copy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(obstore.get(opened(place), name).bytes()))
    with connect(tmp_path / "copy") as connection:
        assert connection.execute("select count(*) from events").fetchone() == (300,)
    listed = json.loads((tmp_path / "copy" / "files.json").read_text())
    assert {one["path"] for one in listed} == set(lake.manifest.read().files)


def test_of_several_that_mirror_at_once_one_wins_and_nothing_is_doubled(tmp_path: Path, place: str) -> None:
    rows = golden_rows(800)
    gate = threading.Barrier(4)
    failed: list[Exception] = []

    def work() -> None:
        lake = Lake(tmp_path)
        gate.wait()
        try:
            for _ in range(3):
                lake.export(feed_of(rows), most_rows=60)
                push(lake, place)
        except Exception as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert positions(place) == list(range(1, 801))


def test_a_place_mirrors_one_lake_and_one_history(tmp_path: Path, place: str) -> None:
    rows, lake = golden_rows(100), Lake(tmp_path / "lake")
    lake.export(feed_of(rows[:50]))
    shutil.copytree(lake.folder, tmp_path / "earlier")
    push(lake, place)
    other = Lake(tmp_path / "other")
    other.export(feed_of(rows))
    with pytest.raises(InputError, match="mirrors another lake"):
        push(other, place)
    lake.export(feed_of(rows))
    push(lake, place)
    behind = Lake(tmp_path / "earlier")
    shutil.copy(lake.folder / "_manifest" / "identity", behind.folder / "_manifest")
    behind.export(feed_of(rows[:70]))
    behind.export(feed_of(rows[:80]))
    with pytest.raises(InputError, match="another history of this lake"):
        push(behind, place)
    assert positions(place) == list(range(1, 101))


def test_what_is_erased_leaves_the_mirror(tmp_path: Path, place: str) -> None:
    rows = [row for row in golden_rows() if row.type != "ledger.erased"]
    rows = [row._replace(position=at) for at, row in enumerate(rows, 1)]
    lake = Lake(tmp_path)
    lake.export(feed_of(rows))
    push(lake, place)
    before = names(place)
    with connect(place) as connection:
        digest = connection.execute(
            "select min(content_digest) from events where text is not null"
        ).fetchone()
    assert digest is not None
    state = erased(len(rows) + 1, "a").state.replace(b"a" * 64, digest[0].encode())
    lake.export(feed_of([*rows, erased(len(rows) + 1, "a")._replace(state=state)]))
    push(lake, place)
    gone = {name for name in before - names(place) if name.endswith(".parquet")}
    assert gone == {name for name in before if name.endswith(".parquet")}
    with connect(place) as connection:
        query = "select count(text) from events where content_digest = ?"
        assert connection.execute(query, list(digest)).fetchone() == (0,)


def test_export_mirrors_and_a_lake_elsewhere_is_asked(tmp_path: Path, place: str) -> None:
    record_session(tmp_path)
    report = answer(tmp_path, "export", "--mirror", place)
    assert report["mirrored"] == report["files"] == 1
    rows = answer(tmp_path, "sql", "select session from sessions", "--lake", place)["rows"]
    assert rows == [{"session": "live-1"}]
    assert run(tmp_path, "export", "--mirror", "elsewhere").exit_code == 2
    missing = run(tmp_path, "sql", "select 1", "--lake", f"{place}-not")
    assert (missing.exit_code, "there is no lake at" in missing.stderr) == (2, True)

"""The page Import: files under harmless names, limits, a process of its own, a report, a record of who gave them."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from ledger.events.keeping import FilesGiven
from tests.webui.hostile.texts import CORPUS
from tests.webui.site import TOKEN, Site, form_token, site
from webui.acts import SESSION as ACTS
from webui.importing import FOLDER, harmless_name
from webui.settings import WebSettings

TRACE = Path(__file__).parents[3] / "fixtures" / "importers" / "claude_code"
CHAT = b'[{"role": "user", "content": "hello"}, {"role": "assistant", "content": "good day"}]'


def done(client: TestClient, place: str, within_s: float = 400) -> dict[str, object]:
    """A piece of work, when it is over."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        told = client.get(f"/api/v1{place}").json()
        if told["state"] in ("done", "failed"):
            assert isinstance(told, dict)
            return told
        time.sleep(0.05)
    raise AssertionError(f"{place} took longer than {within_s} s")


def _give(client: TestClient, *files: tuple[str, bytes]) -> str:
    token = form_token(client.get("/import").text)
    answer = client.post(
        "/import",
        data={"form_token": token},
        files=[("files", (name, body)) for name, body in files],
        follow_redirects=False,
    )
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def test_files_become_sessions_and_nothing_of_them_stays(tmp_path: Path) -> None:
    with site(tmp_path, lake=False) as made:
        client = made.client()
        place = _give(client, ("chat.json", CHAT), ("no trace.bin", b"\0\1\2"))
        told = done(client, place)
        assert told["state"] == "done", told
        report = told["report"]
        assert isinstance(report, dict)
        chat, stranger = sorted(report["files"], key=lambda one: one["format"] or "~")
        assert chat["name"] == "chat.json" and chat["records"] > 0
        assert client.get(f"/sessions/{chat['sessions'][0]}").status_code == 200
        assert stranger["format"] is None and stranger["reason"]
        page = client.get(place).text
        assert "not imported" in page and "chat.json" in page
        deadline = time.monotonic() + 400
        while list((tmp_path / FOLDER).iterdir()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert list((tmp_path / FOLDER).iterdir()) == []
        (given,) = made.ledger.store.read(ACTS, names=(FilesGiven.TYPE,))
        assert isinstance(given.event, FilesGiven)
        assert set(given.event.files) == {"chat.json", "no trace.bin"}
        assert given.actor is not None and given.actor.id == "ana"
        assert done(client, _give(client, ("chat.json", CHAT)))["report"]["records"] == 0  # type: ignore[index]


def test_a_program_gives_files_with_its_token(tmp_path: Path) -> None:
    with site(tmp_path, lake=False) as made:
        program = TestClient(made.app, base_url="http://127.0.0.1:4318")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = program.post("/api/v1/import", files={"files": ("chat.json", CHAT)}, headers=headers)
        assert answer.status_code == 200
        program.headers.update(headers)
        assert done(program, answer.json()["to"])["state"] == "done"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Site]:
    """A site that takes a hundred kilobytes."""
    with site(tmp_path, lake=False, settings=WebSettings(catches_up=False, most_upload=100_000)) as made:
        yield made


def test_too_much_is_refused_before_it_is_read(small: Site) -> None:
    client = small.client()
    token = form_token(client.get("/import").text)
    answer = client.post("/import", data={"form_token": token}, files={"files": ("a", b"x" * 200_000)})
    assert answer.status_code == 413
    assert "at most 100000" in answer.text

    def unending() -> Iterator[bytes]:
        yield b"x"

    answer = client.post(
        "/import", content=unending(), headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert answer.status_code == 411


def test_what_is_no_form_with_files_is_a_wrong_parameter(small: Site) -> None:
    client = small.client()
    token = form_token(client.get("/import").text)
    assert client.post("/import", data={"form_token": token}).status_code == 400
    assert client.post("/import", files={"files": ("a", b"x")}).status_code == 403
    assert client.post("/api/v1/import", json={"files": 1}).status_code == 400
    broken = client.post(
        "/api/v1/import", content=b"--y\r\n\r\n", headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert broken.status_code == 400


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("C:\\traces\\run.jsonl", "C_/traces/run.jsonl"),
        ("/", "file"),
        ("..", "file"),
        ("a\0b\x1b.json", "a_b_.json"),
        ("\u202egpj.exe", "_gpj.exe"),
        ("x" * 300 + ".jsonl", "x" * 76 + ".jsonl"),
        ("über maß.json", "über maß.json"),
        ("a/b/c/d/e/f.json", "c/d/e/f.json"),
    ],
)
def test_a_name_stays_where_it_is_put(given: str, kept: str) -> None:
    assert harmless_name(given) == kept


@given(st.one_of(st.text(max_size=400), st.sampled_from(sorted(CORPUS.values()))))
def test_any_name_is_a_relative_path_that_can_be_made(given: str) -> None:
    name = harmless_name(given)
    path = Path(name)
    assert not path.is_absolute() and ".." not in path.parts and "\0" not in name and "\n" not in name
    assert all(0 < len(part.encode("utf-8")) <= 101 for part in path.parts)


def test_hostile_names_are_taken_and_shown(tmp_path: Path) -> None:
    with site(tmp_path, lake=False) as made:
        client = made.client()
        place = _give(client, ("../../<b>x</b>.json", CHAT), ("a.json", CHAT), ("A.json", CHAT))
        told = done(client, place)
        assert told["state"] == "done", told
        assert "<b>x</b>" not in client.get(place).text
        assert not (tmp_path.parent / "x").exists()
        shutil.rmtree(tmp_path / FOLDER)


def test_work_that_is_not_known_is_a_404(small: Site) -> None:
    answer = small.client().get("/jobs/nothing")
    assert answer.status_code == 404
    assert "forgets it" in answer.text

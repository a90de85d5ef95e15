"""Full text search: every kind of word is found, nothing that was erased is, and no query is an error of the index."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import InputError, StoreUnavailableError
from ledger.events import ContentRef, Draft, Event
from ledger.events.input import MessageReceived
from ledger.events.keeping import Erased
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger, open_ledger
from ledger.views.search import VERSION, Hit, SearchView
from ledger.views.search_text import readable, wanted
from tests.commands import HOSTILE, record_session
from tests.ledger.store.databases import Database
from tests.postgres import drop_database, fresh_database

TEXTS = {
    "plain": "The connection was reset by peer, twice.",
    "snake": "raise in load_snapshot_file at src/app/main.py:42",
    "loose": "load the snapshot file",
    "quotes": 'He said "stop now" and then: it\'s over',
    "operators": "if (a && b) || c != d: C++ and C# AND NOT NEAR(x)",
    "accents": "Le café était très fermé à Zürich",
    "chinese": "打开配置文件时出错",
    "japanese": "設定ファイルを開けません",
    "korean": "파일을 열 수 없습니다",
    "thai": "เปิดไฟล์ไม่ได้",
    "lines": "one\nfoo\tbar",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Ledger, Database]]:
    """An empty ledger on each database, and that database past it."""
    if request.param == "sqlite":
        database = Database(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    else:
        database = Database(fresh_database(request.getfixturevalue("postgres_url")))
    with open_ledger(tmp_path, database.url) as opened:
        yield opened, database
    if request.param == "postgresql":
        drop_database(database.url)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty ledger."""
    with open_ledger(tmp_path) as opened:
        yield opened


def _say(ledger: Ledger, session: str, content: Any) -> ContentRef:
    keeper = ledger.recorder.keeper()
    reference = keeper.json({"role": "user", "content": content})
    ledger.recorder.append(session, [Draft(MessageReceived(origin="human", message=reference))], keeper)
    return reference


def _say_all(ledger: Ledger) -> None:
    for session, text in TEXTS.items():
        _say(ledger, session, text)


def _find(ledger: Ledger, query: str, **options: Any) -> list[Hit]:
    with SearchView(ledger.home, ledger.store) as view:
        view.catch_up()
        return view.search(query, **options).hits


def _sessions(ledger: Ledger, query: str) -> set[str]:
    return {hit.session for hit in _find(ledger, query)}


# -- what is found ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("connection", {"plain"}),
        ("RESET Connection", {"plain"}),
        ("connection refused", set()),
        ("conn*", {"plain"}),
        ("conn", set()),
        ('"reset by peer"', {"plain"}),
        ('"peer reset"', set()),
        ("load_snapshot_file", {"snake"}),
        ('"load snapshot file"', {"snake"}),
        ("snapshot", {"snake", "loose"}),
        ("src/app/main.py", {"snake"}),
        ("app/main.py:42", {"snake"}),
        ("src-app-main.py", set()),
        ("stop now", {"quotes"}),
        ('"stop now', {"quotes"}),
        ("it's", {"quotes"}),
        ("&&", {"operators"}),
        ("a && b", {"operators"}),
        ("c++", {"operators"}),
        ("c--", set()),
        ("AND NOT NEAR(x)", {"operators"}),
        ("cafe etait", {"accents"}),
        ("CAFÉ", {"accents"}),
        ("Zu\u0308rich", {"accents"}),
        ("配置文件", {"chinese"}),
        ("错", {"chinese"}),
        ("文件配置", set()),
        ("ファイル", {"japanese"}),
        ("파일", {"korean"}),
        ("ไฟล์", {"thai"}),
        ("foo bar", {"lines"}),
        ("nfoo", set()),
        ("user", set()),
    ],
)
def test_words_are_found_however_they_are_written(ledger: Ledger, query: str, found: set[str]) -> None:
    _say_all(ledger)
    assert _sessions(ledger, query) == found


@pytest.mark.parametrize(
    "query",
    [
        '"',
        '""',
        "*",
        '"*',
        "text:",
        "facets : s1",
        "^a",
        "a AND",
        "(",
        "{a b}:c",
        "-",
        "NOT",
        "\x00",
        "\ud83d",
        "+",
    ],
)
def test_the_syntax_of_the_index_is_only_words(ledger: Ledger, query: str) -> None:
    _say_all(ledger)
    try:
        _find(ledger, query)
    except InputError as error:
        assert "the search holds no word" in str(error)  # noqa: PT017 - most of them are words


def test_a_query_has_an_end(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="1000 characters at most: found 2000"):
        _find(ledger, "a " * 1000)


@given(st.text(max_size=60))
def test_any_query_is_words_or_a_message(query: str) -> None:
    with closing(sqlite3.connect(":memory:")) as index:
        index.execute("create virtual table words using fts5 (text, facets)")
        try:
            asked = wanted(query)
        except InputError:
            return
        if asked.match:
            index.execute("select * from words where words match ?", (f"text : ({asked.match})",)).fetchall()


def test_arguments_and_results_are_searched_as_people_read_them(ledger: Ledger) -> None:
    keeper = ledger.recorder.keeper()
    arguments = keeper.json({"command": 'grep -rn "needle" .', "inside": json.dumps({"path": "a\nbeta"})})
    result = keeper.json([{"type": "text", "text": "3 hits"}, {"data": "QUJD" * 400}])
    ledger.recorder.append(
        "s",
        [
            Draft(ToolCallRequested(call_id="1", tool="bash", arguments=arguments)),
            Draft(ToolCallSettled(call_id="1", outcome="returned", result=result)),
        ],
        keeper,
    )
    (hit,) = _find(ledger, "needle")
    assert (hit.session, hit.seq, hit.type, hit.tool) == ("s", 1, "tool_call.requested", "bash")
    assert [piece.text for piece in hit.snippet if piece.is_hit] == ["needle"]
    assert hit.text.startswith('grep -rn "needle" .')
    assert [hit.seq for hit in _find(ledger, "beta")] == [1]
    assert [hit.seq for hit in _find(ledger, "hits")] == [2]
    assert _find(ledger, "QUJD*") == []


def test_only_of_a_session_or_a_kind(ledger: Ledger) -> None:
    for session in ("a", "a.1"):
        record_session(ledger.home, session, text="hello")
    assert {hit.session for hit in _find(ledger, "hello", session="a")} == {"a"}
    kinds = {hit.type for hit in _find(ledger, "hello", kind="tool_call")}
    assert kinds == {"tool_call.requested", "tool_call.settled"}
    assert {hit.type for hit in _find(ledger, "hello", kind="tool_call.settled")} == {"tool_call.settled"}
    assert _find(ledger, "hello", session="none") == _find(ledger, "hello", kind="approval") == []


def test_pages_follow_each_other_and_have_every_hit_once(ledger: Ledger) -> None:
    for number in range(25):
        _say(ledger, "s", f"number {number} of them")
    with SearchView(ledger.home, ledger.store) as view:
        view.catch_up()
        seqs, before = [], None
        while True:
            page = view.search("number them", before=before, limit=10)
            seqs += [hit.seq for hit in page.hits]
            _say(ledger, "s", "number of them, in between")
            view.catch_up()
            if page.before is None:
                break
            before = page.before
    assert seqs == list(range(25, 0, -1))


def test_what_a_text_says_can_not_pass_for_a_mark(ledger: Ledger) -> None:
    _say(ledger, "s", "\x02not a hit\x03 needle <b>" + HOSTILE)
    (hit,) = _find(ledger, "needle")
    assert [piece.text for piece in hit.snippet if piece.is_hit] == ["needle"]
    assert "<b>" in hit.text


# -- keeping up ------------------------------------------------------------------------------------------------------


def test_it_follows_the_store_and_can_be_made_again(stored: tuple[Ledger, Database]) -> None:
    ledger, _ = stored
    _say_all(ledger)
    with SearchView(ledger.home, ledger.store) as view:
        assert view.catch_up() == len(TEXTS) == view.search("connection").position
        first = view.search("connection").hits
        _say(ledger, "late", "another connection")
        assert view.search("connection").hits == first
        view.catch_up()
        both = view.search("connection").hits
        assert [hit.session for hit in both] == ["late", "plain"]
        view.rebuild()
        assert view.search("connection").hits == both


def test_erased_content_is_in_no_byte_of_the_index(stored: tuple[Ledger, Database]) -> None:
    ledger, database = stored
    secret = _say(ledger, "s", "the word is zanzibarquokka")
    _say(ledger, "s", "the other word is kept")
    assert len(_find(ledger, "zanzibarquokka")) == 1
    assert _holds(ledger, "quokka")
    database.execute("delete from blobs where digest = ?", (bytes.fromhex(secret.digest),))
    _erase(ledger, secret)
    assert _find(ledger, "zanzibarquokka") == []
    assert not _holds(ledger, "quokka")
    assert [hit.seq for hit in _find(ledger, "word")] == [2]


def test_content_that_was_erased_before_it_was_indexed_never_gets_there(
    stored: tuple[Ledger, Database],
) -> None:
    ledger, database = stored
    secret = _say(ledger, "s", "the word is zanzibarquokka")
    _erase(ledger, secret)  # and its bytes are still there: the index must not rely on their being gone
    again = _say(ledger, "s", "nothing to see")
    assert _find(ledger, "zanzibarquokka") == []
    assert not _holds(ledger, "quokka")
    database.execute("delete from blobs where digest = ?", (bytes.fromhex(again.digest),))
    with SearchView(ledger.home, ledger.store) as view:
        view.rebuild()
        assert view.search("nothing").hits == []


def test_a_reader_does_not_keep_erased_words_for_ever(ledger: Ledger) -> None:
    secret = _say(ledger, "s", "the word is zanzibarquokka")
    _find(ledger, "zanzibarquokka")
    path = ledger.home / "views" / f"search-v{VERSION}.sqlite"
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as reader,
        SearchView(ledger.home, ledger.store) as view,
    ):
        view._connection.execute("pragma busy_timeout = 1")
        reader.execute("begin")
        reader.execute("select count(*) from places").fetchone()
        _erase(ledger, secret)
        view.catch_up()
        assert view.search("zanzibarquokka").hits == []
        reader.execute("rollback")
        view.catch_up()
        assert not _holds(ledger, "quokka")


def _erase(ledger: Ledger, *references: ContentRef) -> None:
    event: Event = Erased(digests=tuple(reference.digest for reference in references), reason="asked for")
    ledger.recorder.append("keeping", [Draft(event)], ledger.recorder.keeper())


def _holds(ledger: Ledger, word: str) -> bool:
    """Whether any file of the index has the word, as it is or in its packed texts."""
    paths = list((ledger.home / "views").glob("search-*"))
    if any(word.encode() in path.read_bytes() for path in paths):
        return True
    with SearchView(ledger.home, ledger.store) as view:
        texts = view._connection.execute("select text from texts").fetchall()
    return any(word in text for (text,) in texts)


_KILLED = """
import os, sys
from ledger.home import open_ledger
from ledger.views import search
search._BATCH = 3
left = int(sys.argv[2])
def count(position):
    global left
    left -= 1
    if not left:
        os._exit(9)
with open_ledger(sys.argv[1]) as ledger, search.SearchView(ledger.home, ledger.store) as view:
    view.catch_up(count)
"""


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_a_process_that_was_killed_left_whole_batches(ledger: Ledger, batches: int) -> None:
    _say_all(ledger)
    done = subprocess.run([sys.executable, "-c", _KILLED, ledger.home, str(batches)], check=False)
    assert done.returncode == 9
    with SearchView(ledger.home, ledger.store) as view:
        assert view.position == 3 * batches
        view.catch_up()
        kept = view._connection.execute("select position from places order by position").fetchall()
        view._connection.execute("insert into words (words) values ('integrity-check')")
        assert [position for (position,) in kept] == list(range(1, len(TEXTS) + 1))
        assert len(view.search("cafe").hits) == 1


def test_another_history_starts_again(ledger: Ledger, tmp_path: Path) -> None:
    _say(ledger, "s", "of the first store")
    assert _find(ledger, "first")
    with open_ledger(tmp_path, f"sqlite:///{tmp_path / 'other.sqlite'}") as other:
        assert _find(other, "first") == []
        _say(other, "s", "of the second store")
        assert len(_find(other, "store")) == 1
    assert len(_find(ledger, "first")) == 1


def test_a_damaged_index_is_made_again(ledger: Ledger) -> None:
    _say_all(ledger)
    expected = _find(ledger, "connection")
    path = ledger.home / "views" / f"search-v{VERSION}.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update words_data set block = x'00' where id > 10")
        connection.commit()
    assert _find(ledger, "connection") == expected
    path.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    assert _find(ledger, "connection") == expected


def test_a_home_that_cannot_be_written_is_said(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "views").write_text("in the way")
    with pytest.raises(StoreUnavailableError, match="views cannot be made"):
        SearchView(tmp_path, ledger.store)


@pytest.mark.parametrize("content", [b"{", b"\xff", b'"\\ud83d"', b"[" * 100_000, b"1" * 5000])
def test_any_content_has_a_text(content: bytes) -> None:
    assert isinstance(readable(content, "json"), str)

"""`loopledger search`: places and words, escaped for a terminal, and the table `hits` that SQL joins."""

from pathlib import Path

from tests.commands import HOSTILE, answer, record_session, run


def test_the_command_shows_places_and_words(tmp_path: Path) -> None:
    record_session(tmp_path, text=f"hello {HOSTILE}")
    shown = run(tmp_path, "search", "hello", "--type", "tool_call", "--limit", "1")
    assert shown.exit_code == 0
    head, snippet = shown.stdout.splitlines()[:2]
    assert head.startswith("live-1#") and head.endswith("tool_call.settled")
    assert snippet.startswith("    hello") and "\x1b" not in snippet and "\u202e" not in snippet
    assert "there are more: --before" in shown.stdout
    page = answer(tmp_path, "search", "hello", "--limit", "1")
    assert set(page) == {"hits", "before", "position"}
    assert {"text": "hello", "hit": True} in page["hits"][0]["snippet"]
    rest = answer(tmp_path, "search", "hello", "--before", page["before"], "--session", "live", "--rebuild")
    assert page["hits"][0]["position"] > rest["hits"][0]["position"]
    assert "nothing found" in run(tmp_path, "search", "absent").stdout


def test_sql_joins_what_was_found(tmp_path: Path) -> None:
    record_session(tmp_path, text="hello")
    query = (
        "select hits.session, tool_calls.tool, hits.snippet from hits join tool_calls"
        " on tool_calls.session = hits.session and tool_calls.settled_seq = hits.seq"
    )
    (row,) = answer(tmp_path, "sql", query, "--search", "hello")["rows"]
    assert row == {"session": "live-1", "tool": "echo", "snippet": "hello"}
    assert answer(tmp_path, "sql", "select * from hits", "--search", "absent")["rows"] == []
    unasked = run(tmp_path, "sql", "select * from hits")
    assert (unasked.exit_code, "hits does not exist" in unasked.stderr) == (2, True)


def test_the_command_names_what_is_wrong(tmp_path: Path) -> None:
    record_session(tmp_path)
    for arguments, message in (
        (("search", " "), "the search holds no word"),
        (("search", "a", "--type", "nonsense"), "is no event type or family"),
        (("search", "a", "--session", "zz"), "no session has an id"),
    ):
        result = run(tmp_path, *arguments)
        assert result.exit_code == 2
        assert message in result.stderr

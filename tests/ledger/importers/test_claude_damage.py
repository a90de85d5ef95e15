"""Damaged, hostile and secret-bearing Claude Code logs: what can be read arrives, the rest is told, nothing leaks."""

import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered
from ledger.events.recovery import DamageFound
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger, open_ledger
from ledger.store import verify
from tests.ledger.importers.claude_rows import (
    SESSION,
    Session,
    bring_in,
    call,
    events,
    hard_case,
    line,
    records,
    simple_session,
    text,
    uuid,
    write,
)

KEYS = ("sk-ant-api03-" + "aB3dE5gH7jK9" * 7 + "AA", "ghp_" + "a1B2c3D4e5F6" * 3)
"""Made-up secrets, of two shapes."""


def everything(ledger: Ledger) -> bytes:
    """All that the ledger holds: states of records and contents of blobs."""
    with closing(sqlite3.connect(ledger.home / "ledger.sqlite")) as database:
        states = [
            bytes(state) for (state,) in database.execute("select state from stored_events order by nid")
        ]
        digests = [digest.hex() for (digest,) in database.execute("select digest from blobs order by digest")]
    return b"\n".join(states + [ledger.store.content(digest) for digest in digests])


def accounted(report: dict[str, Any]) -> int:
    """Source records that a report speaks of: read, or beyond reading."""
    lost = [place for place in report["quarantined"] if place not in report["repaired"]]
    return int(sum(report["native"].values()) + len(lost) + report["quarantined_more"])


# The log of the issue: all at once


def test_the_hard_case_of_the_issue(ledger: Ledger, tmp_path: Path) -> None:
    lines = hard_case(KEYS, "y" * 300_000)
    report = bring_in(ledger, write(tmp_path / f"{SESSION}.jsonl", lines))
    assert [place["line"] for place in report["quarantined"]] == [7, len(lines)]
    assert report["lines"] == len(lines)
    assert report["duplicates"] == 1
    assert report["dangling_parents"] == 1
    assert (report["model_calls"], report["compactions"]) == (3, 1)
    assert (report["unanswered_calls"], report["orphan_results"]) == (1, 1)
    assert report["tokens"] == {"input": 15, "output": 21, "cache_read": 33, "cache_write": 39}
    assert report["redacted"] >= 2
    assert accounted(report) == len(lines)
    kept = everything(ledger)
    assert b"the same id, another row" in kept
    assert b"oops}" in kept
    assert b"y" * 300_000 in kept
    settled = {event.call_id for event in events(ledger, SESSION, ToolCallSettled)}
    assert "call_open" not in settled
    assert verify(ledger.store).problems == []
    assert bring_in(ledger, tmp_path / f"{SESSION}.jsonl")["records"] == 0


def test_secrets_reach_no_file_of_the_ledger_wherever_they_stand(tmp_path: Path) -> None:
    log = Session()
    for secret in KEYS:
        log.says(f"My key is {secret}", cwd=f"/home/{secret}", gitBranch=secret, promptId=secret, slug=secret)
        log.answers(
            f"msg_{secret}",
            {
                "type": "tool_use",
                "id": f"call_{secret}",
                "name": secret,
                "input": {secret: 1, "deep": [{"k": secret}]},
            },
            stop_reason=secret,
            model=secret,
        )
        log.result(
            f"call_{secret}",
            secret,
            toolUseResult={"stdout": f"out {secret}"},
            error=True,
            toolDenialKind=secret,
        )
        log.add(secret, subtype=secret)
        log.bare(secret, value=secret)
        log.add("attachment", attachment={"type": secret, "names": [secret]}, rendered=[{"content": secret}])
        log.add("system", subtype="api_error", error={"message": secret}, requestRef=secret)
        log.rows.append(
            log.rows[-1] | {"uuid": secret, "timestamp": secret, "sessionId": f"session-{secret}"}
        )
    lines: list[Any] = [*log.rows, f'{{"broken": "{KEYS[0]}\n'.encode()]
    path = write(tmp_path / f"log-{KEYS[0]}" / f"log-{KEYS[1]}.jsonl", lines)
    home = tmp_path / "home"
    with open_ledger(home) as ledger:
        report = bring_in(ledger, path)
        assert report["redacted"] >= 2 * len(KEYS)
        assert verify(ledger.store).problems == []
        found = everything(ledger) + "\n".join(ledger.store.sessions()).encode()
        files = {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}
    files |= {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}
    for secret in KEYS:
        assert secret.encode() not in found
        assert [file for file, content in files.items() if secret.encode() in content] == []


# Damage to the bytes


def test_what_bytes_can_do_to_lines(ledger: Ledger, tmp_path: Path) -> None:
    log = simple_session(turns=3)
    rows = [line(row) for row in log.rows]
    lines = [
        b"\xef\xbb\xbf" + rows[0],
        rows[1].rstrip(b"\n") + rows[2],  # two records on one line
        rows[3].rstrip(b"\n") + b"\r\n",
        b"\0" * 100 + rows[4],
        rows[5].replace(b"Please", "Pl\u2028ease".encode()),
        rows[6].replace(b"I do 1.", b"I\ndo 1."),  # a raw newline in a string
        rows[7].replace(b"make 1", b"make \xff1"),
        b"\n",
        rows[8],
        b'"a text, no record"\n',
        b"\0\0\0\0\n",
        *rows[9:],
    ]
    report = bring_in(ledger, write(tmp_path / f"{SESSION}.jsonl", lines))
    assert sum(report["native"].values()) == len(rows)
    assert report["model_calls"] == 6
    reasons = [place["reason"] for place in report["quarantined"]]
    assert len(reasons) == 3
    assert any("UTF-8" in reason for reason in reasons)
    assert any("expected a JSON object, found str" in reason for reason in reasons)
    assert any("NUL" in reason for reason in reasons)
    assert {event.call_id for event in events(ledger, SESSION, ToolCallRequested)} == {
        "call_0",
        "call_1",
        "call_2",
    }
    assert "Pl\u2028ease".encode() in everything(ledger)
    assert verify(ledger.store).problems == []


def test_a_line_of_13_million_characters(ledger: Ledger, tmp_path: Path) -> None:
    log = Session()
    log.answers("msg_1", call("call_1"))
    log.result("call_1", "w" * 13_000_000)
    report = bring_in(ledger, log.write(tmp_path))
    assert (report["tool_results"], report["quarantined"]) == (1, [])
    (settled,) = events(ledger, SESSION, ToolCallSettled)
    assert settled.result.size > 13_000_000


def test_a_parent_chain_of_20_000_rows(ledger: Ledger, tmp_path: Path) -> None:
    log = Session()
    for _ in range(20_000):
        log.add("progress", data=1)
    report = bring_in(ledger, log.write(tmp_path))
    assert (report["native"], report["dangling_parents"]) == ({"progress": 20_000}, 0)
    causes = [
        record.cause
        for record in ledger.store.read(SESSION, after=19_990)
        if record.type != "ledger.imported"
    ]
    assert all(isinstance(cause, int) for cause in causes)


def test_arguments_nested_3_000_deep(ledger: Ledger, tmp_path: Path) -> None:
    log = Session(version="2.1.332")
    deep = b'{"deep":' * 3000 + b"1" + b"}" * 3000
    row = line(log.part("msg_1", call("call_1", given="HERE"))).replace(b'"HERE"', deep)
    log.result("call_1")
    log.says("Go on.")
    report = bring_in(ledger, write(tmp_path / f"{SESSION}.jsonl", [row, *log.rows[1:]]))
    assert (report["tool_calls"], report["quarantined"]) == (1, [])
    (requested,) = events(ledger, SESSION, ToolCallRequested)
    assert deep in ledger.store.content(requested.arguments.digest)


def test_a_clock_that_runs_backwards_changes_no_order(ledger: Ledger, tmp_path: Path) -> None:
    log = simple_session()
    for number, row in enumerate(log.rows):
        row["timestamp"] = f"2026-03-01T00:00:{59 - number:02}.000Z"
    bring_in(ledger, log.write(tmp_path))
    lines = [record.source.line or 0 for record in records(ledger) if record.source is not None]
    assert max(lines) == len(log.rows)
    answers = [event.response_id for event in events(ledger, SESSION, ModelCallAnswered)]
    assert answers == ["msg_0a", "msg_0b", "msg_1a", "msg_1b"]


def test_an_empty_file_and_one_that_is_cut_at_once(ledger: Ledger, tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.jsonl", [])
    assert bring_in(ledger, empty)["reason"] == "empty file"
    whole = line(simple_session().rows[0])
    cut = write(tmp_path / f"{SESSION}.jsonl", [whole[:-20]])
    report = bring_in(ledger, cut)
    assert [place["line"] for place in report["quarantined"]] == [1]
    assert report["native"] == {}
    (found,) = events(ledger, SESSION, DamageFound)
    assert ledger.store.content(found.content.digest) == whole[:-20]


def test_thousands_of_rewinds_and_sessions_stay_bounded(ledger: Ledger, tmp_path: Path) -> None:
    log = simple_session()
    for number in range(300):
        log.says(f"Again {number}.", parentUuid=log.rows[4]["uuid"])
    for number in range(500):
        log.says("Hello.", sessionId=f"session-{number}", uuid=uuid(5000 + number), parentUuid=None)
    report = bring_in(ledger, write(tmp_path / "mixed.jsonl", log.rows))
    assert len(report["sessions"]) == 501
    assert verify(ledger.store).problems == []


# Laws

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "type uuid parentUuid sessionId timestamp cwd version gitBranch isSidechain agentId message"
    " message.content message.id message.role message.model message.usage message.usage.input_tokens"
    " message.stop_reason message.content.0 message.content.0.type message.content.0.id"
    " message.content.0.name message.content.0.input message.content.0.tool_use_id"
    " message.content.0.content message.content.0.is_error toolUseResult permissionDecision"
    " permissionDecision.source permissionDecision.decision permissionDecision.grantScope toolDenialKind"
    " subtype compactMetadata compactMetadata.trigger compactMetadata.preTokens"
    " compactMetadata.preservedMessages compactMetadata.preservedMessages.uuids isCompactSummary"
    " attachment attachment.type attachment.files attachment.names rendered renderedRole requestRef hash"
    " shape shapeHash shape.system shape.tools id params params.model base keep tail cacheControl"
    " cacheControl.0 cacheControl.0.path error error.status retryInMs promptId permissionMode requestId"
    " requestSessionId isMeta snapshot messageId mode"
).split()


def rich_rows() -> list[dict[str, Any]]:
    """Rows of every sort, so that every field has a place where it counts."""
    log = Session(version="2.1.332")
    log.bare("mode", mode="normal")
    log.says("Go.", promptId="p", permissionMode="default")
    log.bare("api-request-shape", shapeHash="s" * 64, shape={"system": [text("Be good.")], "tools": []})
    log.bare("api-request-blob", hash="b" * 64, message={"role": "user", "content": "Go."})
    mark = {"path": ["messages", 0, "content", 0], "value": {"type": "ephemeral"}}
    request = {"id": "r1", "shapeHash": "s" * 64, "params": {"model": "m"}, "keep": 0, "tail": ["b" * 64]}
    log.bare("api-request", **request, cacheControl=[mark])
    log.part("msg_1", call("call_1", "Task", prompt="Look."), requestRef="r1")
    log.result("call_1", permissionDecision={"decision": "accept", "source": "config", "grantScope": "once"})
    log.bare("api-request", **(request | {"id": "r2", "base": "r1", "keep": 1}), cacheControl=[])
    log.add("system", subtype="api_error", error={"status": 500}, retryInMs=1)
    log.answers("msg_2", text("Yes."), call("call_2"), requestRef="r2")
    log.result("call_2", toolUseResult={"durationMs": 3})
    log.add(
        "attachment",
        attachment={"type": "instructions", "files": [{"path": "a", "content": "b"}], "names": ["n"]},
    )
    log.add("attachment", attachment={"type": "skill_listing", "names": ["n"]}, rendered=[{"content": "x"}])
    log.add("file-history-snapshot", messageId="m", snapshot={})
    log.compacts(preservedMessages={"uuids": [log.rows[-1]["uuid"]]})
    log.says("Look.", isSidechain=True, agentId="a1")
    log.says("Then.", isMeta=True)
    return log.rows


def put(row: dict[str, Any], path: str, value: Any) -> None:
    """Set a field, however deep, where the row has the way to it."""
    node: Any = row
    *way, last = path.split(".")
    for step in way:
        node = node[int(step)] if step.isdigit() and isinstance(node, list) and node else node
        node = node.get(step) if isinstance(node, dict) else node
    if isinstance(node, dict):
        node[last] = value
    elif isinstance(node, list) and node and last.isdigit():
        node[int(last)] = value


def leaves(value: Any) -> Iterator[str]:
    """All texts of a JSON value that are worth looking for."""
    if isinstance(value, str) and len(value) > 3:
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner)
            yield from leaves(name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(st.tuples(st.integers(0, 18), st.sampled_from(FIELDS), JSON), min_size=1, max_size=6))
def test_no_value_in_any_field_stops_an_import(changes: list[tuple[int, str, Any]]) -> None:
    rows = json.loads(json.dumps(rich_rows()))
    for index, field, value in changes:
        put(rows[index % len(rows)], field, value)
    with tempfile.TemporaryDirectory() as folder, open_ledger(Path(folder) / "home") as ledger:
        path = write(Path(folder) / f"{SESSION}.jsonl", rows)
        report = bring_in(ledger, path)
        if report["format"] is None:
            return
        assert "reason" not in report
        assert accounted(report) == len(rows)
        assert verify(ledger.store).problems == []
        assert bring_in(ledger, path)["records"] == 0


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_word_of_every_row_is_in_the_ledger(data: st.DataObject) -> None:
    rows = json.loads(json.dumps(rich_rows()))
    for number, field in enumerate(data.draw(st.lists(st.sampled_from(FIELDS), min_size=4, max_size=12))):
        row = rows[data.draw(st.integers(0, len(rows) - 1))]
        marker = f"word-{number}"
        value = data.draw(
            st.sampled_from([marker, [marker], {"inner": marker}, {"inner": [{"type": marker}]}])
        )
        put(row, field, value)
        row[f"extra-{number}"] = f"more-{number}"
    with tempfile.TemporaryDirectory() as folder, open_ledger(Path(folder) / "home") as ledger:
        report = bring_in(ledger, write(Path(folder) / f"{SESSION}.jsonl", rows))
        if report["format"] is None:
            return
        kept = everything(ledger).decode() + "\n".join(ledger.store.sessions())
        missing = {
            word
            for row in rows
            for word in leaves(row)
            if word.startswith(("word-", "more-")) and word not in kept
        }
        assert missing == set()


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=300), st.integers(0, 7), st.integers(0, 400))
def test_bytes_thrown_into_a_log_leave_the_other_rows_whole(noise: bytes, at: int, cut: int) -> None:
    lines = [line(row) for row in simple_session().rows]
    lines.insert(at + 1, noise + b"\n")
    with tempfile.TemporaryDirectory() as folder, open_ledger(Path(folder) / "home") as ledger:
        path = write(Path(folder) / f"{SESSION}.jsonl", [*lines, lines[0][:cut]])
        report = bring_in(ledger, path)
        assert report["model_calls"] == 4
        assert report["tool_results"] == 2
        assert verify(ledger.store).problems == []
        assert bring_in(ledger, path)["records"] == 0


def test_unknown_rows_are_kept_whole(ledger: Ledger, tmp_path: Path) -> None:
    log = simple_session()
    odd = log.add("from-the-future", payload={"a": [1, 2, {"b": None}]})
    report = bring_in(ledger, log.write(tmp_path))
    assert report["unknown"] == {"from-the-future": 1}
    (kept,) = [
        event for event in events(ledger, SESSION, SourceKept) if event.native_type == "from-the-future"
    ]
    assert json.loads(ledger.store.content(kept.body.digest)) == odd

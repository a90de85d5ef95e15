"""The live audit finds what an audit finds afterwards, whatever came together; no detector keeps another waiting."""

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ledger.audit import Detector, Finding, discover
from ledger.audit.failure import Failure
from ledger.lake.connection import events_of, tables
from ledger.lake.memory import MemoryLake
from ledger.views.auditing import AuditFollower
from ledger.views.findings import kept
from ledger.views.lanes import Lane, News, Road
from tests.ledger.audit.histories import History, Told
from tests.ledger.audit.test_broken import GOOD, broken, fold, names_of_broken
from tests.ledger.audit.test_detectors import SHIPPED
from tests.ledger.audit.test_running import HEAD, own
from tests.ledger.lake.feeds import feed_of, golden_rows

DEADLINE_S = 120
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)  # each history is a ledger of its own
ON = [one for one in SHIPPED.values() if not one.is_experimental and one.is_live]
OF_ONE_SESSION = [*ON, SHIPPED["secret_in_the_open"]]


class Heard:
    """What a follower tells."""

    def __init__(self) -> None:
        self.findings: queue.Queue[Finding] = queue.Queue()
        self.failures: queue.Queue[Failure] = queue.Queue()

    def ids(self) -> list[str]:
        """The findings told by now, sorted."""
        return sorted(one.id for one in self.findings.queue)

    def wait_for(self, *detectors: str) -> None:
        """Wait for a finding of each of these detectors, or of their suspicions."""
        missing = set(detectors)
        while missing:
            missing.discard(self.findings.get(timeout=DEADLINE_S).detector.partition(".")[0])


@contextmanager
def following(
    history: History, detectors: list[Detector], **options: float
) -> Iterator[tuple[AuditFollower, Heard]]:
    """A follower, and what it tells."""
    heard = Heard()
    recorder = history.ledger.recorder
    with AuditFollower(
        recorder,
        detectors,
        tell=heard.findings.put,
        tell_failed=heard.failures.put,
        pause_s=0.01,
        longest_s=options.get("longest_s", 600),
        after=0,
    ) as follower:
        yield follower, heard


def payment(call: str, to: int = 0, **more: str) -> list[Told]:
    """One payment."""
    return [
        {
            "type": "tool_call.requested",
            "call_id": call,
            "tool": "pay",
            "effect_class": "irreversible",
            "arguments": {"to": to},
            **more,
        },
        {"type": "tool_call.settled", "call_id": call, "outcome": "returned", "result": "paid"},
    ]


def shell(call: str, command: str) -> list[Told]:
    """One command, run."""
    return [
        {"type": "tool_call.requested", "call_id": call, "tool": "Bash", "arguments": {"command": command}},
        {"type": "tool_call.started", "call_id": call},
        {"type": "tool_call.settled", "call_id": call, "outcome": "returned", "result": "done"},
    ]


# -- live and afterwards ------------------------------------------------------------------------------------

COMMANDS = (
    "ls",
    "rm .claude/hooks/guard.py",
    "pkill -f command-guard",
    "echo be bold >> AGENTS.md",
    "pytest -q",
)
STEPS = st.one_of(
    st.tuples(st.just("pay"), st.integers(0, 2)),
    st.tuples(st.just("pay with a key"), st.integers(0, 1)),
    st.tuples(st.just("shell"), st.integers(0, len(COMMANDS) - 1)),
    st.tuples(st.just("hand over"), st.integers(0, 1)),
    st.tuples(st.just("secret"), st.integers(0, 1)),
    st.tuples(st.just("model"), st.just(0)),
)
SESSIONS = st.lists(st.lists(STEPS, max_size=8), min_size=1, max_size=3)


def events_of_step(session: str, number: int, what: str, which: int) -> list[Told]:
    """What a step records."""
    call = f"{session}-{number}"
    match what:
        case "pay":
            told = payment(call, which)
        case "pay with a key":
            told = payment(call, which, idempotency_key="k")
        case "shell":
            told = shell(call, COMMANDS[which])
        case "hand over":
            told = [{"type": "delegation.started", "delegation_id": call, "to_agent": "b", "how": "tool"}]
            back: Told = {"type": "delegation.returned", "delegation_id": call, "outcome": "returned"}
            told += [back] if which else []
        case "secret":
            told = [
                {
                    "type": "credential.secret_redacted",
                    "secret_digest": "ab" * 32,
                    "kind": "token",
                    "where": "x",
                }
            ]
        case _:
            told = [
                {
                    "type": "model_call.requested",
                    "call_id": call,
                    "purpose": "main",
                    "protocol": "own",
                    "completeness": "none",
                    "model": "m",
                }
            ]
    return [event | {"@session": session} for event in told]


def woven(sessions: list[list[tuple[str, int]]], order: list[int]) -> list[Told]:
    """The events of all sessions, those of each in their order; every session begins and ends once."""
    lines = []
    for place, steps in enumerate(sessions):
        name = f"s{place}"
        told: list[Told] = [{"type": "session.started", "@session": name, "harness": "own"}]
        for number, (what, which) in enumerate(steps):
            told += events_of_step(name, number, what, which)
        told.append({"type": "session.ended", "@session": name, "outcome": "completed"})
        lines.append(told)
    events: list[Told] = []
    for pick in order:
        if line := lines[pick % len(lines)]:
            events.append(line.pop(0))
    for line in lines:
        events += line
    return events


def give_in_pieces(history: History, follower: AuditFollower, events: list[Told], cuts: list[int]) -> None:
    """Record events piece by piece, then what is left; each time the follower sees all that there is."""
    for cut in cuts:
        history.add(events[:cut])
        del events[:cut]
        assert follower.wait(DEADLINE_S)
    history.add(events)
    assert follower.wait(DEADLINE_S)


@settings(max_examples=12, phases=UNSHRUNK)
@given(
    sessions=SESSIONS,
    order=st.lists(st.integers(0, 2), max_size=30),
    cuts=st.lists(st.integers(1, 9), max_size=12),
)
def test_live_findings_are_those_of_an_audit_afterwards(
    sessions: list[list[tuple[str, int]]], order: list[int], cuts: list[int]
) -> None:
    events = woven(sessions, order)
    with TemporaryDirectory() as home, History(Path(home)) as history:
        with following(history, OF_ONE_SESSION) as (follower, heard):
            give_in_pieces(history, follower, events, cuts)
        afterwards = history.findings(OF_ONE_SESSION)
        assert heard.ids() == sorted(one.id for one in afterwards)
        assert sorted(one.id for one in kept(history.ledger.store)) == heard.ids()
        assert heard.failures.empty()


@settings(max_examples=8, phases=UNSHRUNK)
@given(
    sessions=SESSIONS,
    order=st.lists(st.integers(0, 2), max_size=30),
    cuts=st.lists(st.integers(1, 9), max_size=12),
    again=st.lists(st.integers(0, 60), max_size=6),
)
def test_what_an_audit_finds_afterwards_was_found_live_also_where_things_end_twice(
    sessions: list[list[tuple[str, int]]], order: list[int], cuts: list[int], again: list[int]
) -> None:
    events = woven(sessions, order)
    twice = [one for one in events if one["type"] in ("session.ended", "tool_call.settled")]
    events += [twice[place % len(twice)] for place in again]
    with TemporaryDirectory() as home, History(Path(home)) as history:
        with following(history, OF_ONE_SESSION) as (follower, heard):
            give_in_pieces(history, follower, events, cuts)
        assert {one.id for one in history.findings(OF_ONE_SESSION)} <= set(heard.ids())


def test_sessions_that_were_forgotten_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.views.looking._SESSIONS", 1)
    monkeypatch.setattr("ledger.views.auditing.MemoryLake", _SmallLake)
    with History(tmp_path) as history:
        with following(history, ON) as (follower, heard):
            for number in range(3):
                for session in "abc":
                    events = payment(f"{session}{number}") + shell(f"{session}k{number}", COMMANDS[1])
                    history.add([event | {"@session": session} for event in events])
                    assert follower.wait(DEADLINE_S)
            for session in "abc":
                history.add([{"type": "session.ended", "@session": session, "outcome": "completed"}])
            assert follower.wait(DEADLINE_S)
        found = history.findings(ON)
    assert len([one for one in found if one.message.startswith("pay did the same")]) == 6
    assert sorted(one.id for one in found) == heard.ids()


class _SmallLake(MemoryLake):
    """One in which there is no room for two sessions."""

    def __init__(self, *given: object, **options: object) -> None:
        super().__init__(*given, **{**options, "most": 5})  # type: ignore[arg-type]


# -- rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [one.name for one in tables() if events_of(one.name) is not None])
def test_a_table_is_made_of_no_other_events_than_those_that_its_text_names(table: str) -> None:
    rows = golden_rows(300)
    names = events_of(table)
    assert names
    told = []
    for some in (rows, [row for row in rows if row.type in names]):
        lake = MemoryLake(feed_of(rows).contents)
        for session in sorted({row.session for row in some}):
            lake.add(session, [row for row in some if row.session == session])
        told.append(lake.connection.execute(f"select * from {table} order by all").fetchall())
    assert told[0] == told[1] and (told[0] or table in ("constraints", "rollbacks"))


@pytest.mark.parametrize("table", ["events", *(one.name for one in tables())])
def test_a_lake_that_keeps_only_what_queries_need_answers_them_alike(table: str) -> None:
    rows = golden_rows(200)
    whole = MemoryLake(feed_of(rows).contents)
    for session in sorted({row.session for row in rows}):
        whole.add(session, [row for row in rows if row.session == session])
    columns = [name for name, *_ in whole.connection.execute(f"describe {table}").fetchall()]
    for some in (columns[::2], columns[1::2]):
        query = f"select {', '.join(some)} from {table}"
        lake = MemoryLake(feed_of(rows).contents, queries=[query])
        for start in range(0, len(rows), 20):  # some at a time, as they come
            for session in sorted({row.session for row in rows}):
                lake.add(session, [row for row in rows[start : start + 20] if row.session == session])
        ordered = f"{query} order by all"
        assert lake.connection.execute(ordered).fetchall() == whole.connection.execute(ordered).fetchall()


# -- others that are slow, or broken ------------------------------------------------------------------------


def test_a_detector_that_does_not_return_keeps_no_other_waiting(tmp_path: Path) -> None:
    text = fold(take="import threading; threading.stuck.wait(); return []")
    folder = own(tmp_path, "stuck.py", text)
    endless = (
        "select session, 1 as seq, 'x' as message from tool_calls, range(1000000000000) as r (n) where n < 0"
    )
    own(tmp_path, "endless.sql", HEAD + endless)
    own(tmp_path, "good.sql", HEAD + GOOD)
    found = discover(None, folder)
    free = threading.Event()
    threading.stuck = free  # type: ignore[attr-defined]  # where the detector finds it
    others = [found[name] for name in ("stuck", "endless", "good")]
    try:
        with History(tmp_path) as history, following(history, [*ON, *others]) as (_, heard):
            for number in range(3):
                history.add(payment(f"p{number}"))
                history.add(shell(f"k{number}", f"rm .claude/hooks/guard{number}.py"))
                heard.wait_for("good", "control_tampering")
            free.set()
    finally:
        free.set()
        del threading.stuck  # type: ignore[attr-defined]


def test_a_query_that_takes_too_long_is_ended_and_told_of(tmp_path: Path) -> None:
    endless = (
        "select session, 1 as seq, 'x' as message from tool_calls, range(1000000000000) as r (n) where n < 0"
    )
    own(tmp_path, "endless.sql", HEAD + endless)
    detectors = [discover(tmp_path)["endless"]]
    with History(tmp_path) as history, following(history, detectors, longest_s=0) as (follower, heard):
        history.add(payment("p"))
        failure = heard.failures.get(timeout=DEADLINE_S)
        assert follower.wait(DEADLINE_S)
    assert failure.detector == "endless" and "took too long" in failure.error


def test_every_other_detector_goes_on_live_and_the_broken_ones_are_told_once(tmp_path: Path) -> None:
    found = discover(None, broken(tmp_path))
    with History(tmp_path) as history:
        with following(history, list(found.values())) as (follower, heard):
            for number in range(3):
                history.add(payment(f"p{number}"))
                assert follower.wait(DEADLINE_S)
            history.add([{"type": "session.ended", "outcome": "completed"}])
            assert follower.wait(DEADLINE_S)
        works = [one for one in found.values() if one.name in (*SHIPPED, "good")]
        afterwards = history.findings([one for one in works if one.is_live])
    told = [one.detector for one in heard.failures.queue]
    about_no_session_that_runs = {"no_session", "no_such_session"}  # nobody asked for it
    assert sorted(told) == sorted(names_of_broken() - about_no_session_that_runs)
    assert {one.id for one in afterwards} <= set(heard.ids())


# -- whose turn it is ---------------------------------------------------------------------------------------


class _Reader(Lane):
    """Reads a hundred records at a time, and says which."""

    def __init__(self, road: Road) -> None:
        super().__init__("reader", road)
        self.seen: dict[str, int] = {}
        self.turns: list[str] = []

    def reached(self, session: str) -> int:
        return self.seen.get(session, 0)

    def look(self, session: str, news: News) -> bool:
        self.turns.append(session)
        self.seen[session] = min(news.seq, self.reached(session) + 100)
        return self.seen[session] == news.seq


def test_who_needs_little_reading_goes_first_and_a_long_session_gets_on_nevertheless() -> None:
    road = Road()
    lane = _Reader(road)
    lane.tell({"long": News(1000)})
    lane.tell({f"short{number}": News(10) for number in range(9)})
    lane.start()
    with road.changed:
        assert road.changed.wait_for(lane.is_idle, DEADLINE_S)
    lane.stop(time.monotonic() + DEADLINE_S)
    lane.join()
    assert lane.seen == {"long": 1000} | {f"short{number}": 10 for number in range(9)}
    before_the_last_short = lane.turns[: lane.turns.index("short8")]
    assert 1 <= before_the_last_short.count("long") <= 3 and len(lane.turns) == 19


def test_what_comes_while_a_session_is_read_is_read_too() -> None:
    road = Road()
    lane = _Reader(road)
    lane.start()
    for seq in range(1, 2000, 7):
        lane.tell({"one": News(seq), f"other{seq % 3}": News(seq)})
    lane.tell({"one": News(2000)})
    with road.changed:
        assert road.changed.wait_for(lane.is_idle, DEADLINE_S)
    lane.stop(time.monotonic() + DEADLINE_S)
    assert lane.join() and lane.seen["one"] == 2000

"""The order in which recorded answers go out, where two conversations meet."""

from replay.gate import Gate
from replay.recordings import Recording


def asked(lane: str | None, started: int, ended: int, session: str = "s") -> Recording:
    """A recorded exchange."""
    return Recording(session, started, "openai.chat", b"", 1, lane, started, None, ended, ended)


def test_an_answer_after_the_last_one_of_a_sub_agent_follows_an_end() -> None:
    parent, first = asked("main", 1, 2), asked("agent-1", 3, 5)
    last, other, report = asked("agent-1", 6, 8), asked("agent-2", 7, 9), asked("main", 10, 11)
    gate = Gate([parent, first, last, other, report])
    found = [gate.follows_an_end(one) for one in (parent, first, last, other, report)]
    assert found == [False, False, False, True, True]


def test_no_lane_and_no_other_session_is_no_end() -> None:
    entries = [asked(None, 1, 2), asked(None, 3, 4), asked("a", 5, 6, "t"), asked("b", 7, 8)]
    gate = Gate(entries)
    assert not any(gate.follows_an_end(one) for one in entries)

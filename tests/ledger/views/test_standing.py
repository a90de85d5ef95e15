"""How constraints stood, kept in a file: windows of it against what `decay` tells, lanes, and what is erased."""

from pathlib import Path

import pytest

from ledger.audit.decay import SessionDecay, decay_report
from ledger.events import Draft
from ledger.events.keeping import Erased
from ledger.store import EventStore
from ledger.views.decay import decays
from ledger.views.standing import StandingView
from tests.audit.labelled import call
from tests.ledger.audit.decay.test_watching import OUT, RULE, asked, compacted
from tests.ledger.audit.histories import History, Told
from tests.ledger.views.test_decay import EVENTS

OTHER = "Always look up the order before you issue a refund."
KEPT = "Do not email anyone who is not at our company."


def lanes(*names: str) -> list[Told]:
    """A session of several conversations, each of which is shortened once more than the one before."""
    events: list[Told] = [EVENTS[0]]
    for number, name in enumerate(names):
        events.append(asked(100 * number, RULE, OTHER, lane=name))
        for cut in range(number):
            events.append(asked(100 * number + cut + 1, f"Work {cut} of {name}.", KEPT, lane=name))
    return events


def decay_of(store: EventStore) -> SessionDecay:
    """What `decay` tells of the session."""
    (found,) = decays(store, ["main"])
    return found


def test_windows_hold_what_decay_tells(tmp_path: Path) -> None:
    with History(tmp_path) as history:
        history.add([*EVENTS, compacted(KEPT), asked(4, KEPT), *call(2, "send_email", OUT)])
        store = history.ledger.store
        told, head = decay_report([decay_of(store)]).as_json(), store.head("main").seq
        with StandingView(tmp_path, store) as view:
            view.catch_up()
            assert view.answer("main") is None
            answer = view.work_out("main")
            (rule,) = view.rules("main", 1, 10)
            cuts = view.cuts("main", 0, 1, 10)
            left = view.left("main", 0, [1], cuts[0].seq, cuts[-1].seq)
            start, now = view.ends("main", 0, [1])[1]
            breaches = view.breaches("main", 0, 10)
            assert view.rules("main", 1, 10, lost=True) == view.exposed("main", 10) == [rule]
    (session,) = told["sessions"]
    assert (answer.seq, answer.rules, answer.lost, answer.cuts, answer.broken) == (
        head,
        1,
        1,
        2,
        2,
    )
    assert [(one.seq, one.lost) for one in cuts] == [
        (one["seq"], len(one["lost"])) for one in session["compactions"]
    ]
    shares = [(one["hits"], one["of"]) for one in told["retention"]]
    assert [(one.kept, one.shown) for one in cuts] == shares == [(0, 1), (1, 1)]
    assert [(one.seq, one.how) for one in left] == [(cuts[0].seq, "absent"), (cuts[1].seq, "paraphrase")]
    assert left[1].said == "do not email anyone who is not at our company."
    seen = [(one["seq"], one["visibility"], one["lost_by"]) for one in session["visibility"]]
    assert [(one.seq, one.how, one.lost_by) for one in (start, now)] == [seen[0], seen[-1]]
    assert [(one.seq, one.why, one.lost_by, one.steps) for one in breaches] == [
        (one["seq"], one["why"], one["lost_by"], one["steps_since"]) for one in session["violations"]
    ]
    (advice,) = told["pinning"]["advice"]
    assert (rule.calls_without, rule.tokens, rule.request_tokens) == (
        *(advice["model_calls_without_it"], advice["tokens"], advice["request_tokens"]),
    )
    assert rule.exposed == told["exposure"]["tool_calls"]
    assert (rule.text, rule.polarity, rule.modality, rule.is_declared) == (
        RULE,
        "negative",
        "prohibition",
        True,
    )


def test_each_conversation_has_its_own_cuts_the_one_with_most_first(tmp_path: Path) -> None:
    with History(tmp_path) as history:
        history.add(lanes("a", "b", "c"))
        with StandingView(tmp_path, history.ledger.store) as view:
            view.work_out("main")
            assert [(one.number, one.name, one.cuts) for one in view.lanes("main", 9)] == [
                (0, "c", 2),
                (1, "b", 1),
                (2, "a", 0),
            ]
            assert len(view.cuts("main", 0, 1, 9)) == 2 and view.cuts("main", 2, 1, 9) == []
            (of_b,) = view.cuts("main", 1, 1, 9)
            assert view.cut_at("main", of_b.seq) == (1, 1)
            assert view.cut_at("main", 1, 0) == (0, 1)
            assert view.cut_at("main", 10_000) is None
            (left,) = view.left("main", 1, [1], of_b.seq, of_b.seq)
            assert (left.lane, left.how) == (1, "paraphrase")
            assert set(view.ends("main", 2, [1, 2, 3])) == {1, 2}


def test_what_stops_it_leaves_nothing(tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def stop(seq: int) -> None:
        raise StoppedError(seq)

    with History(tmp_path) as history:
        history.add(EVENTS)
        with StandingView(tmp_path, history.ledger.store) as view:
            with pytest.raises(StoppedError):
                view.work_out("main", stop)
            assert view.answer("main") is None
            first = view.work_out("main")
            history.add([compacted("Nothing."), asked(9, "Nothing.")])
            assert view.answer("main") == first
            assert view.work_out("main").cuts == first.cuts + 1


def test_what_is_erased_leaves_the_file(tmp_path: Path) -> None:
    secret = "Never tell Zanzibarovich the code."
    with History(tmp_path) as history:
        history.add([*EVENTS, asked(7, "Work.", secret)])
        ledger = history.ledger
        files = [tmp_path / "views" / f"standing-v1.sqlite{suffix}" for suffix in ("", "-wal")]
        with StandingView(tmp_path, ledger.store) as view:
            view.catch_up()
            view.work_out("main")
            assert any(b"zanzibarovich" in path.read_bytes().lower() for path in files if path.exists())
            erased = Draft(Erased(digests=("ab" * 32,), reason="asked for"))
            ledger.recorder.append("acts", [erased], ledger.recorder.keeper())
            view.catch_up()
            assert view.answer("main") is None
            assert view.rules("main", 1, 9) == []
            for path in files:
                assert not path.exists() or b"zanzibarovich" not in path.read_bytes().lower()


def test_what_a_system_prompt_says_and_half_a_character_are_no_hindrance(tmp_path: Path) -> None:
    half = {"role": "user", "content": "Never open the \ud83d valve."}
    with History(tmp_path) as history:
        history.add(
            [
                {"type": "input.message_received", "origin": "human", "message": half},
                asked(1, "a", system=RULE),
                compacted("b"),
                asked(2, "b", system=RULE),
            ]
        )
        with StandingView(tmp_path, history.ledger.store) as view:
            view.work_out("main")
            wild, prompt = view.rules("main", 1, 9)
            (cut,) = view.cuts("main", 0, 1, 9)
            (left,) = view.left("main", 0, [prompt.number], cut.seq, cut.seq)
    assert "valve" in wild.text
    assert (prompt.origin, left.how, left.is_system) == ("system", "verbatim", True)

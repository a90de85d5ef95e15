"""What a loop tells beside its calls: approvals, draws, compactions, artifacts, delegations, reported usage."""

import warnings

import pytest

from ledger.capture import record_loop
from ledger.errors import InputError
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.draw import Drawn
from ledger.events.governance import ArtifactChanged
from ledger.events.review import NoteWritten
from ledger.events.session import SessionStarted
from ledger.home import Ledger
from replay import rebuild_request
from tests.ledger.capture.loops import only, records, scripted, types, value


def test_approvals(ledger: Ledger) -> None:
    with record_loop(ledger, harness="my-loop") as run:
        yes = run.approve(lambda: True, tool="send", arguments={"to": "a"}, decider="Ada", policy_version="3")
        assert yes
        run.tool(dict, {"to": "a"}, name="send", approval=yes)
        no = run.approve(lambda: "timed_out", decided_by="policy")
        assert not no
        with pytest.raises(InputError, match=r"was not run: its approval .* is timed_out"):
            run.tool(dict, {}, approval=no)
        with pytest.raises(TypeError, match="expected True, False or one of"):
            run.approve(lambda: 1)
        with pytest.raises(EOFError):
            run.approve(lambda: (_ for _ in ()).throw(EOFError()))
    found = records(ledger, run.session)
    asked = [record.event for record in found if isinstance(record.event, ApprovalAsked)]
    decided = [record.event for record in found if isinstance(record.event, ApprovalDecided)]
    used = only(ledger, run.session, ApprovalUsed)
    assert [event.outcome for event in decided] == ["approved", "timed_out", "unknown", "cancelled"]
    assert asked[0].arguments_digest == decided[0].arguments_digest == used.arguments_digest
    assert (decided[0].decided_by, decided[0].decider) == ("human", "Ada")


def test_draws_are_handed_on_as_recorded(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_PASSWORD", "hunter2-hunter2-xyz")
    with record_loop(ledger, harness="my-loop", random=lambda: 0.25) as run:
        drawn = [
            run.draw.clock(),
            run.draw.random("dice"),
            run.draw.uuid(),
            run.draw.other("price", lambda: 7),
        ]
        assert run.draw.environ("SERVICE_PASSWORD") == "hunter2-hunter2-xyz"
        assert run.draw.environ("NO_SUCH_VARIABLE", "default") == "default"
    events = [record.event for record in records(ledger, run.session) if isinstance(record.event, Drawn)]
    assert [value(ledger, event.value) for event in events[:4]] == drawn
    assert [event.label for event in events[:4]] == ["clock", "dice", "uuid", "price"]
    assert "hunter2" not in str(value(ledger, events[4].value))


def test_a_compaction_replaces_the_context(ledger: Ledger) -> None:
    messages = [{"role": "user", "content": str(number)} for number in range(4)]
    short = [{"role": "user", "content": "in short"}]
    with record_loop(ledger, harness="my-loop") as run:
        run.model(scripted, messages=messages)
        run.compacted(short, summary="in short", tokens_before=40, tokens_after=4)
        run.model(scripted, messages=[*short, {"role": "user", "content": "go on"}])
        checkpoint = run.checkpoint("after")
    done = only(ledger, run.session, CompactionDone)
    assert (done.messages_before, done.messages_after, done.evidence) == (4, 1, "logged")
    assert done.context_after is not None
    assert [value(ledger, done.summary)] == ["in short"]
    assert checkpoint
    assert rebuild_request(ledger.store, run.session, 5).messages == [
        *short,
        {"role": "user", "content": "go on"},
    ]


def test_an_artifact_is_recorded_when_it_changes(ledger: Ledger) -> None:
    with record_loop(ledger, harness="my-loop") as run:
        for content in ("rule 1", "rule 1", "rule 2", None):
            run.artifact("file:RULES.md", content, "rule_file")
        run.constraint("no-delete", "never delete", modality="prohibition")
        run.withdraw("no-delete", "asked for")
    changes = [
        record.event for record in records(ledger, run.session) if isinstance(record.event, ArtifactChanged)
    ]
    assert [event.content is None for event in changes] == [False, False, True]
    assert changes[0].content is not None
    assert [event.old for event in changes][:2] == [None, changes[0].content.digest]


def test_delegated_work_is_a_session_of_its_own(ledger: Ledger) -> None:
    with record_loop(ledger, harness="my-loop", agent="lead") as run:
        with run.delegate(agent="reader", payload={"file": "a"}, call_id="c1") as child:
            child.model(scripted, messages=[])
            child.returns("read it")
        with pytest.raises(OSError, match="gone"), run.delegate(agent="writer"):
            raise OSError("gone")
        with pytest.raises(InputError, match="nobody to return to"):
            run.returns("x")
    assert child.session.startswith(run.session)
    started = only(ledger, child.session, SessionStarted)
    assert (started.parent, started.parent_call, started.agent, started.harness) == (
        run.session,
        "c1",
        "reader",
        "my-loop",
    )
    assert {record.depth for record in records(ledger, child.session)} == {1}
    assert {record.correlation for record in records(ledger, child.session)} == {run.session}
    found = records(ledger, run.session)
    handed = [record.event for record in found if isinstance(record.event, DelegationStarted)]
    back = [record.event for record in found if isinstance(record.event, DelegationReturned)]
    assert handed[0].to_session == child.session
    assert [event.outcome for event in back] == ["returned", "failed"]
    assert value(ledger, back[0].result) == "read it"


def test_usage_without_a_model_call_is_said_loudly(ledger: Ledger) -> None:
    with warnings.catch_warnings(record=True) as heard, record_loop(ledger, harness="my-loop") as run:
        warnings.simplefilter("always")
        run.report_usage(1200)
    assert "1200 tokens of usage were reported and no model call" in str(heard[0].message)
    assert "past the recorder" in value(ledger, only(ledger, run.session, NoteWritten).text)
    with record_loop(ledger, harness="my-loop") as good:
        good.model(scripted, messages=[])
        good.report_usage(13)
    assert "review.note_written" not in types(ledger, good.session)

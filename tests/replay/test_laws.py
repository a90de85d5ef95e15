"""Laws of state: a pure fold, whatever the snapshots; a rollback goes back; a diff is exact."""

import random
from collections.abc import Iterator
from copy import deepcopy

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events import Record
from ledger.events.model_call import ModelCallAnswered
from ledger.events.recovery import RolledBack
from ledger.home import Ledger
from ledger.views.snapshots import SnapshotFile
from replay.cli import state_json
from replay.difference import difference
from replay.fold import Charge, charge_of, fold
from replay.pointer import apply_changes, steps_of
from replay.snapshots import StateSnapshots, decode_state, encode_state
from replay.state import GOES_BACK, State
from replay.timeline import session_timeline

from .histories import SESSION, Step, Writer, fresh_ledger, histories, write

ABSENT = object()
LAWS = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class EveryState:
    """The plainest past there is: it keeps all states and all records."""

    def __init__(self) -> None:
        self.states = [State(SESSION)]
        self.records: list[Record] = []

    def state(self, seq: int, asked_at: int) -> State:
        """As the fold asks."""
        return self.states[seq]

    def charge(self, call_id: str, asked_at: int) -> Charge | None:
        """As the fold asks."""
        events = [record.event for record in self.records]
        found = [one for one in events if isinstance(one, ModelCallAnswered) and one.call_id == call_id]
        return charge_of(found[-1]) if found else None

    def origin(self, fork: Record) -> State | None:
        """As the fold asks; there is no other session."""
        return None

    def take(self, records: Iterator[Record]) -> "EveryState":
        """Fold all of them."""
        for record in records:
            self.states.append(fold(self.states[-1], record, self))
            self.records.append(record)
        return self


@LAWS
@given(histories())
def test_state_at_any_seq_is_the_plain_fold_of_the_records(steps: list[Step]) -> None:
    with fresh_ledger() as ledger:
        last = write(Writer(ledger), steps)
        plain = EveryState().take(ledger.store.read(SESSION))
        digests = [state.digest() for state in plain.states]
        timeline = session_timeline(ledger.store, SESSION)
        order = list(range(last + 1))
        random.Random(7).shuffle(order)
        for seq in order:
            assert timeline.at(seq).digest() == digests[seq]
        assert session_timeline(ledger.store, SESSION).at().digest() == digests[-1]
        assert [state.digest() for state in plain.states] == digests, (
            "an earlier state was changed by a later record"
        )


@LAWS
@given(histories(), st.integers(0, 60))
def test_folding_in_two_parts_gives_the_same_as_in_one(steps: list[Step], cut: int) -> None:
    with fresh_ledger() as ledger:
        last = write(Writer(ledger), steps)
        cut = min(cut, last)
        timeline = session_timeline(ledger.store, SESSION)
        whole = timeline.at()
        part = decode_state(SESSION, encode_state(session_timeline(ledger.store, SESSION).at(cut)))
        for _ in session_timeline(ledger.store, SESSION).walk(part, last):
            pass
        assert part.digest() == whole.digest()
        assert encode_state(part) == encode_state(whole)


@LAWS
@given(histories())
def test_a_rollback_brings_back_what_was_in_force(steps: list[Step]) -> None:
    with fresh_ledger() as ledger:
        write(Writer(ledger), [*steps, ("roll back", 5, 2)])
        timeline = session_timeline(ledger.store, SESSION)
        for record in ledger.store.read(SESSION):
            if isinstance(record.event, RolledBack) and record.event.to_seq is not None:
                before, after = timeline.at(record.seq - 1), timeline.at(record.seq)
                target = timeline.at(record.event.to_seq)
                assert (after.node, after.since()) == (target.node, target.since())
                used = after.sections["approval_uses"]
                for section in GOES_BACK:
                    # What was used stays used, and may be of the past for that.
                    is_of_use = section in ("approvals", "approvals_past")
                    now, then = (
                        {name: one for name, one in state.sections[section].items() if name not in used}
                        if is_of_use
                        else state.sections[section]
                        for state in (after, target)
                    )
                    assert now == then
                for name, one in used.items():
                    shown = after.shown(("approvals",), name)
                    assert not isinstance(shown, dict) or shown["used"] >= one["used"]
                for spent in ("usage", "tokens", "budget", "files", "outside", "checkpoints"):
                    assert after.sections[spent] == before.sections[spent]


@LAWS
@given(histories(), st.integers(1, 9))
def test_snapshots_change_nothing_at_any_interval(steps: list[Step], interval: int) -> None:
    with fresh_ledger() as ledger:
        last = write(Writer(ledger), steps)
        plain = session_timeline(ledger.store, SESSION)
        for _ in range(2):  # the first time they are written, the second time read
            for seq in (last // 2, last, last // 3):
                with SnapshotFile(ledger.home / "views" / "snapshots.sqlite", ledger.store.salt) as file:
                    snapshots = StateSnapshots(file, ledger.store, SESSION, interval, least=2)
                    state = session_timeline(ledger.store, SESSION, snapshots).at(seq)
                assert state.digest() == plain.at(seq).digest()
                assert encode_state(state) == encode_state(plain.at(seq))


@LAWS
@given(histories(), st.integers(0, 60), st.integers(0, 60))
def test_a_diff_leads_from_one_state_to_the_other(steps: list[Step], first: int, second: int) -> None:
    with fresh_ledger() as ledger:
        last = write(Writer(ledger), steps)
        first, second = min(first, last), min(second, last)
        changes = difference(session_timeline(ledger.store, SESSION), ledger.store, first, second)
        document = deepcopy(_comparable(ledger, first))
        apply_changes(document, deepcopy(changes))
        assert document == _comparable(ledger, second)
        assert all(min(first, second) < change.seq <= max(first, second) for change in changes)
        backwards = difference(session_timeline(ledger.store, SESSION), ledger.store, second, first)
        assert [change.inverse() for change in reversed(backwards)] == changes


def _comparable(ledger: Ledger, seq: int) -> dict[str, object]:
    state = state_json(ledger, SESSION, seq)
    for name in ("seq", "digest", "fold_version"):
        del state[name]
    return {
        **state,
        "tools": {name: part for name, part in state["tools"].items() if name != "offered_names"},
    }


@LAWS
@given(histories(), st.integers(0, 60))
def test_a_diff_names_the_record_after_which_the_value_was_so(steps: list[Step], first: int) -> None:
    with fresh_ledger() as ledger:
        last = write(Writer(ledger), steps)
        timeline = session_timeline(ledger.store, SESSION)
        for change in difference(timeline, ledger.store, min(first, last), last):
            if change.path.startswith("/context/"):
                continue
            before, after, at_last = (
                _value(timeline.at(seq), change.path) for seq in (change.seq - 1, change.seq, last)
            )
            assert before != after
            if change.op == "replace":
                assert after == at_last
            else:
                assert (after is ABSENT) == (change.op == "remove")


def _value(state: State, path: str) -> object:
    value: object = state.parts()
    for step in steps_of(path):
        if not isinstance(value, dict) or step not in value:
            return ABSENT
        value = value[step]
    return value

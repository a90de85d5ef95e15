"""States that a server remembers are those that a fold from the first record gives, in whatever order one asks."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.home import open_ledger
from replay.conversation import conversation
from replay.timeline import session_timeline
from tests.webui.site import PLAIN, fill_plain
from webui.states import States


def test_any_order_of_looks_gives_the_same_states(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        fill_plain(ledger)
        head = ledger.store.head(PLAIN).seq
        told = {seq: session_timeline(ledger.store, PLAIN).at(seq) for seq in range(0, head + 1, 7)}
        digests = {seq: state.digest() for seq, state in told.items()}

        @settings(max_examples=20, deadline=None)
        @given(st.lists(st.sampled_from(sorted(told)), max_size=30))
        def same(looks: list[int]) -> None:
            states = States(ledger)
            for seq in looks:
                found = states.at(PLAIN, seq)
                assert found.digest == found.state.digest() == digests[seq]
                mentions = conversation(ledger.store, told[seq]).mentions
                assert found.messages.window(0, len(found.messages)) == mentions
                assert found.messages.window(3, 4) == mentions[3:7]

        same()

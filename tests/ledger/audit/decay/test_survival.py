"""Survival over compactions, and accounts that add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.audit.decay.outcome import Use
from ledger.audit.decay.report import WAYS, accounts
from ledger.audit.decay.survival import Lived, half_life, survival

USES = st.builds(
    Use,
    st.just("rule"),
    st.integers(1, 9),
    st.just("tool"),
    st.booleans(),
    st.sampled_from(WAYS),
    st.sampled_from(["decay", "wilful", "unknown"]),
    st.none(),
    st.just(0),
)


def test_the_curve_counts_those_whose_record_ends_early() -> None:
    lived = [Lived(1, True), Lived(1, False), Lived(2, True), Lived(3, False), Lived(3, True)]
    steps = survival(lived)
    assert [(step.number, step.at_risk, step.lost) for step in steps] == [(1, 5, 1), (2, 3, 1), (3, 2, 1)]
    assert [step.hazard for step in steps] == [0.2, pytest.approx(1 / 3), 0.5]
    assert [step.survival for step in steps] == [0.8, pytest.approx(0.8 * 2 / 3), pytest.approx(0.8 * 2 / 6)]
    assert half_life(steps) == 3


def test_without_compactions_there_is_no_curve() -> None:
    assert survival([Lived(0, False)]) == []
    assert half_life([]) is None


@given(st.lists(st.builds(Lived, st.integers(1, 6), st.booleans())))
def test_survival_never_rises(lived: list[Lived]) -> None:
    shares = [step.survival for step in survival(lived)]
    assert all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares, reverse=True)


@given(st.lists(USES))
def test_the_identity_holds_whatever_happened(uses: list[Use]) -> None:
    told = accounts(uses)
    assert told.holds()
    assert told.all_violations == sum(use.is_violation for use in uses)
    assert told.all_chances == len(uses)

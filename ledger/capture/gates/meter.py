"""Budgets of a run: charged from the records that are written anyway; one that is used up holds who used it."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from ledger.effects.loop_policy import UNITS, Budget, LoopPolicy, Unit
from ledger.events import Event, Record
from ledger.events.delegation import DelegationStarted
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.policy import BreakerTripped, BudgetCharged, BudgetExceeded, Held, Released
from ledger.events.tool_call import ToolCallRequested

_MARKS = (Decimal("0.5"), Decimal("0.8"))
"""Shares of a budget whose use is told; each single charge is not."""

_BEFORE: frozenset[Unit] = frozenset({"calls", "fan_out", "depth", "effects"})
"""Counted when something is about to happen: the last one within the limit may; of the others, nothing after it."""

_MILLION = Decimal(1_000_000)
_NAMES = (
    ModelCallRequested.TYPE,
    ModelCallAnswered.TYPE,
    ToolCallRequested.TYPE,
    DelegationStarted.TYPE,
    Held.TYPE,
    Released.TYPE,
)


class Whose(NamedTuple):
    """Whose doings they are."""

    session: str
    """The session."""

    agent: str | None
    """The agent of the session."""

    depth: int
    """How deep it is."""

    edge: str | None = None
    """`FROM -> TO` of the delegation that began it."""


class _Account:
    """What was taken from one budget by one of those who have their own."""

    def __init__(self) -> None:
        self.spent: dict[Unit, Decimal] = {}
        self.told: dict[Unit, Decimal] = {}
        self.marks: dict[Unit, int] = {}
        self.base: dict[Unit, Decimal] = {}
        """What had been spent when the limit was given once more, by a release."""


class Meter:
    """The budgets of a run: shared by its sessions and threads."""

    NAMES = _NAMES
    """Events that it charges for."""

    def __init__(self, policy: LoopPolicy, monotonic: Callable[[], float], new_id: Callable[[], str]) -> None:
        self._policy = policy
        self._monotonic = monotonic
        self._new_id = new_id
        self._lock = threading.Lock()
        self._accounts: dict[tuple[int, str], _Account] = {}
        self._began: dict[str, float] = {}
        self._holds: dict[str, tuple[str, tuple[int, str], Unit]] = {}

    def charge(self, place: Whose, records: Iterable[Record]) -> list[Event]:
        """Charge for records of a session that were written now; gives what is to be told."""
        began = self._began.setdefault(place.session, self._monotonic())
        seconds = Decimal(str(round(self._monotonic() - began, 3)))
        amounts: dict[Unit, Decimal] = {"seconds": seconds, "depth": Decimal(place.depth)}
        for record in records:
            if record.session == place.session:
                for unit, amount in self._amounts(record.event):
                    amounts[unit] = amounts.get(unit, Decimal(0)) + amount
        told: list[Event] = []
        with self._lock:
            for number, budget, whose in self._those_of(place):
                account = self._take((number, whose), amounts)
                for unit, limit in budget.limits().items():
                    told += self._tell(budget, (number, whose), account, place.session, unit, limit)
        return told

    def recall(self, place: Whose, records: Iterable[Record]) -> None:
        """Charge for what an earlier process wrote in the session; that was told then."""
        for record in records:
            if isinstance(record.event, Released):
                self.released([record.event.hold_id])
            with self._lock:
                for number, budget, whose in self._those_of(place):
                    self._take((number, whose), dict(self._amounts(record.event)))
                    if isinstance(record.event, Held) and record.event.breaker is not None:
                        name, _, unit = record.event.breaker.rpartition("/")
                        if budget.name == name and unit in UNITS:
                            hold = (place.session, (number, whose), unit)
                            self._holds[record.event.hold_id] = hold

    def _those_of(self, place: Whose) -> Iterator[tuple[int, Budget, str]]:
        """The budgets that somebody uses, each with whose account it is."""
        for number, budget in enumerate(self._policy.budgets):
            whose = _whose(budget, place)
            if whose is not None:
                yield number, budget, whose

    def released(self, hold_ids: Iterable[str]) -> None:
        """Holds of ours were released: what was used up is given once more."""
        with self._lock:
            for hold_id in hold_ids:
                found = self._holds.pop(hold_id, None)
                if found is not None:
                    _, key, unit = found
                    account = self._accounts.setdefault(key, _Account())
                    account.base[unit] = account.spent.get(unit, Decimal(0))

    def _take(self, key: tuple[int, str], amounts: Mapping[Unit, Decimal]) -> _Account:
        account = self._accounts.setdefault(key, _Account())
        for unit, amount in amounts.items():
            before = account.spent.get(unit, Decimal(0))
            # Time and depth are read, not added up.
            account.spent[unit] = max(before, amount) if unit in ("seconds", "depth") else before + amount
        return account

    def _tell(
        self,
        budget: Budget,
        key: tuple[int, str],
        account: _Account,
        session: str,
        unit: Unit,
        limit: Decimal,
    ) -> list[Event]:
        spent = account.spent.get(unit, Decimal(0))
        allowed = account.base.get(unit, Decimal(0)) + limit
        told: list[Event] = []
        marks = account.marks.get(unit, 0)
        while marks < len(_MARKS) and spent >= limit * _MARKS[marks]:
            marks += 1
        if marks > account.marks.get(unit, 0):
            account.marks[unit] = marks
            amount = spent - account.told.get(unit, Decimal(0))
            account.told[unit] = spent
            left = max(allowed - spent, Decimal(0))
            told.append(BudgetCharged(budget=budget.name, amount=amount, unit=unit, remaining=left))
        is_over = spent > allowed if unit in _BEFORE else spent >= allowed
        if is_over and (session, key, unit) not in self._holds.values():
            hold_id = self._new_id()
            self._holds[hold_id] = (session, key, unit)
            name, reached = f"{budget.name}/{unit}", f"{spent} {unit}"
            scope = f"{budget.per} {key[1]}".strip()
            told += [
                BudgetExceeded(budget=budget.name, limit=allowed, reached=spent, unit=unit),
                BreakerTripped(breaker=name, limit=f"{allowed} {unit}", reached=reached, scope=scope),
                Held(hold_id=hold_id, breaker=name),
            ]
        return told

    def _amounts(self, event: Event) -> Iterable[tuple[Unit, Decimal]]:
        if isinstance(event, ModelCallRequested):
            yield "calls", Decimal(1)
        elif isinstance(event, DelegationStarted):
            yield "fan_out", Decimal(1)
        elif isinstance(event, ToolCallRequested):
            if event.effect_class not in (None, "read"):
                yield "effects", Decimal(1)
        elif isinstance(event, ModelCallAnswered):
            yield from self._of_answer(event)

    def _of_answer(self, event: ModelCallAnswered) -> Iterable[tuple[Unit, Decimal]]:
        usage = event.usage
        cost = event.cost_usd
        if usage is not None:
            counts = [
                usage.input_tokens or 0,
                usage.output_tokens or 0,
                usage.cache_read_tokens or 0,
                usage.cache_write_tokens or 0,
            ]
            yield "tokens", Decimal(sum(counts))
            price = self._policy.price_of(event.model) if cost is None else None
            if price is not None:
                prices = (price.input, price.output, price.cache_read, price.cache_write)
                cost = (
                    sum((count * each for count, each in zip(counts, prices, strict=True)), Decimal(0))
                    / _MILLION
                )
        if cost is not None:
            yield "usd", cost


def _whose(budget: Budget, place: Whose) -> str | None:
    match budget.per:
        case "session":
            return place.session
        case "run":
            return ""
        case "agent":
            return place.agent or "(unnamed)"
        case "edge":
            return place.edge

"""Whether an agent does what untrusted text told it, and its user did not.

The text comes in as it was read; of each call is asked which of its values stand in an order of such text and nowhere
else. Memory is bounded: of orders, of text, and of calls the oldest are forgotten.
"""

import re
from collections import OrderedDict
from typing import Any, NamedTuple

from ledger.audit.directive_words import DELEGATIONS, ORDERS, PASSWORDS, fold, overrides
from ledger.audit.directives import MAY_LEAD, Directive, actions_of, part
from ledger.audit.provenance import (
    PASSWORD,
    Known,
    Leaf,
    Source,
    chunks,
    compact,
    dates,
    is_address,
    joined,
    leaves,
    names_outsider,
    tells_apart,
)
from ledger.effects.classes import classify, command_in
from ledger.effects.words import words_of
from ledger.events.tool_call import EffectClass

_MOST_ORDERS = 150
_MOST_USER_SENTENCES = 400
_LEAST_QUOTED = 20
_FETCHING = frozenset({"visit", "get"})
_ANYTHING = frozenset({"do"})
_SETTING = frozenset({"change", "create"})
_LEAST_NAMED = 5
_LEAST_SENTENCE = 5
_LEAST_WRITING = 12
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


class Obeyed(NamedTuple):
    """A call does what an order in untrusted text says."""

    carrier: int
    """Where the text came in."""

    order: str
    """The order."""

    names: tuple[str, ...]
    """Arguments whose values come from it."""

    is_delegated: bool
    """Whether the user had handed over to that text."""

    is_step: bool
    """Whether the order is a step of instructions for whoever reads them, on what the user is after."""

    is_addressed: bool
    """Whether the order speaks to an agent."""


class _Order(NamedTuple):
    seq: int
    directive: Directive
    source: Source
    is_delegated: bool
    told: tuple[tuple[str, frozenset[str]], ...]
    said: str

    def is_quoted(self, whole: str, does: frozenset[str]) -> bool:
        """Whether a value, or values put together, hold the very order that the call would carry out: it is passed
        on, and not obeyed. Other orders of the same text may be what it was told to write.
        """
        return any(
            one in whole and (place == 0 or bool(actions & does))
            for place, (one, actions) in enumerate(self.told)
        )


class _Orders:
    """The orders that are remembered, the oldest forgotten; found again by what a call has in common with them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Order] = OrderedDict()
        self._by_trace: dict[str, dict[str, None]] = {}

    def add(self, order: _Order) -> None:
        """One more; one that was there already stays with the place at which it came first."""
        name = order.source.whole
        if name in self._kept:
            self._kept.move_to_end(name)
            return
        self._kept[name] = order
        for trace in order.source.traces():
            self._by_trace.setdefault(trace, {})[name] = None
        if len(self._kept) > _MOST_ORDERS:
            oldest, forgotten = self._kept.popitem(last=False)
            for trace in forgotten.source.traces():
                del self._by_trace[trace][oldest]
                if not self._by_trace[trace]:
                    del self._by_trace[trace]

    def about(self, found: list[Leaf]) -> list[_Order]:
        """Those that have something in common with the values, in the order in which they came."""
        names: dict[str, None] = {}
        for leaf in found:
            for trace in leaf.traces():
                names |= self._by_trace.get(trace, {})
        return sorted((self._kept[name] for name in names), key=lambda order: (order.seq, order.source.whole))


class _Call(NamedTuple):
    leaves: list[Leaf]
    whole: str
    is_read: bool
    does: frozenset[str]
    verbs: frozenset[str]


class _Named(NamedTuple):
    """What the user asks for where he names something: in the same sentence, and in those around it."""

    asked: frozenset[str] = frozenset()
    asked_near: frozenset[str] = frozenset()


class _Match(NamedTuple):
    names: tuple[str, ...]
    score: int


class Trail:
    """One session: what its user said, what came in from outside, what its calls carry out."""

    def __init__(self) -> None:
        self._user = Known(100_000)
        self._user_chunks: set[str] = set()
        self._task_chunks: set[str] = set()
        self._user_dates: set[tuple[int, int]] = set()
        self._user_actions: set[str] = set()
        self._user_named: OrderedDict[str, _Named] = OrderedDict()
        self._delegations: list[tuple[str, frozenset[str]]] = []
        self._known = Known()
        self._orders = {True: _Orders(), False: _Orders()}

    def trusts(self, text: str, *, is_task: bool = True) -> None:
        """Words of the user, or of the one who runs the agent."""
        self._user.add(text)
        self._user_chunks.update(chunks(text))
        self._user_dates |= dates(text)
        if not is_task:
            return
        self._task_chunks.update(chunks(text))
        self._user_actions |= actions_of(text)
        sentences = [fold(one) for one in _SENTENCE.split(text) if one.strip()]
        for place, one in enumerate(sentences):
            around = " ".join(sentences[max(0, place - 1) : place + 2])
            for value in (compact(word) for word in one.split() if names_outsider(word)):
                named = self._user_named.get(value, _Named())
                self._user_named[value] = _Named(
                    named.asked | actions_of(one), named.asked_near | actions_of(around)
                )
            if DELEGATIONS.search(one):
                self._delegations.append((compact(around), frozenset(chunks(around))))
        del self._delegations[:-_MOST_USER_SENTENCES]
        while len(self._user_named) > _MOST_USER_SENTENCES:
            self._user_named.popitem(last=False)

    def reads(self, text: str, seq: int, asked: Any = None) -> None:
        """Text from outside; `asked` are the arguments of the call that fetched it."""
        parted = part(text)
        self._known.add(parted.rest)
        is_delegated = bool(parted.directives) and self._is_handed_over(asked)
        for directive in parted.directives:
            # What only announces an order, such as "from me, Mark, to you", is not the order that would be quoted.
            orders = [one for one in directive.orders if not overrides(one[0])] or directive.orders
            quoted = ((compact(one), actions) for one, actions in orders)
            told = tuple(one for one in quoted if len(one[0]) >= _LEAST_QUOTED)
            source = Source(directive.text)
            self._orders[directive.is_addressed].add(
                _Order(seq, directive, source, is_delegated, told, _said(directive, source))
            )

    def _is_handed_over(self, asked: Any) -> bool:
        """Whether a user's sentence that delegates names what the call asked for."""
        if not self._delegations:
            return False
        for leaf in leaves(asked):
            if not leaf.is_short:
                continue
            named = [leaf.whole, *chunks(leaf.text)]
            for whole, words in self._delegations:
                if any(len(one) >= _LEAST_NAMED and (one in words or one in whole) for one in named):
                    return True
        return False

    def acts(self, tool: str, arguments: Any, declared: EffectClass | None = None) -> Obeyed | None:
        """A call: the order that it carries out, if any; one that speaks to an agent before one that does not."""
        found = leaves(arguments)
        if not found:
            return None
        fields = arguments if isinstance(arguments, dict) else {}
        is_read = classify(tool, arguments, declared=declared).effect_class == "read"
        words = words_of(tool)
        verbs = frozenset().union(*(ORDERS.get(word, frozenset()) for word in words))
        whole = "".join(leaf.whole for leaf in found)
        call = _Call(found, whole, is_read, actions_of(" ".join(words)), verbs - _ANYTHING)
        best: tuple[int, _Order, _Match] | None = None
        # What a manual tells people to type is typed by agents all day: for a shell only an order to agents counts.
        for is_addressed in (True,) if command_in(tool, fields) else (True, False):
            for order in self._orders[is_addressed].about(call.leaves):
                match = self._match(call, order)
                if match is not None:
                    is_plain = not (order.is_delegated or self._is_a_step(order))
                    rank = match.score + 4 * order.directive.is_addressed + 2 * is_plain
                    if best is None or rank > best[0]:
                        best = rank, order, match
        if best is None:
            return None
        _, order, match = best
        is_addressed = order.directive.is_addressed
        return Obeyed(
            order.seq,
            order.directive.text,
            match.names,
            order.is_delegated and not is_addressed,
            self._is_a_step(order) and not is_addressed,
            is_addressed,
        )

    def _is_a_step(self, order: _Order) -> bool:
        """Whether an order is of a manual, and has a word in common with what the user said."""
        return order.directive.is_manual and any(
            len(word) >= _LEAST_NAMED and word in self._task_chunks and word not in MAY_LEAD
            for word in order.source.chunks
        )

    # -- one call against one order ------------------------------------------------------------------------

    def _match(self, call: _Call, order: _Order) -> _Match | None:
        source, actions = order.source, order.directive.actions
        # A text that names what an order names is no more than a mention of it, where the call does something else.
        may_hold = not call.does or not actions or bool(call.does & actions)
        whole: list[Leaf] = []
        within: list[Leaf] = []
        for leaf in call.leaves:
            if leaf.is_short and source.holds(leaf):
                whole.append(leaf)
            elif may_hold and self._has_telling(leaf, source):
                within.append(leaf)
        if _is_passed_on(call, order):
            # Who obeys "send all mails to X" passes on the mail with that order as well: then X has it.
            outsiders = [leaf for leaf in whole if names_outsider(leaf.text) and leaf.whole in source.telling]
            has_it = [leaf for leaf in outsiders if self._is_new(leaf.whole)]
            is_told = order.directive.is_addressed and bool(call.does & actions - _ANYTHING)
            return _Match(_names(has_it), 3) if has_it and is_told and not call.is_read else None
        if call.is_read:
            if not order.directive.actions & _FETCHING:
                return None
            visited = [leaf for leaf in whole if is_address(leaf.text) and self._is_new(leaf.whole)]
            visited = visited or list(self._joined(call, order, is_sure=False))
            return _Match(_names(visited), 3) if visited else None
        is_alike = bool(call.does & actions - _ANYTHING)
        is_sure = order.directive.is_addressed or is_alike
        is_only_theirs = is_alike and not call.does & self._user_actions
        new = [leaf for leaf in whole if self._is_specific(leaf, order) and self._is_new(leaf.whole)]
        if new and (is_sure or any(names_outsider(leaf.text) for leaf in new)):
            return _Match(_names(new), 3 + len(new))
        turned = [leaf for leaf in whole if self._is_turned(leaf, call, order)]
        if turned and not all(self._is_said(leaf) for leaf in call.leaves):
            return _Match(_names(turned), 2)
        close = [leaf for leaf in within if leaf.is_short or source.covers(leaf)]
        if close and (is_sure or any(self._has_outsider(leaf, source) for leaf in close)):
            return _Match(_names(close), 3)
        if pair := self._joined(call, order, is_sure=is_sure):
            return _Match(_names(pair), 3)
        run = [leaf for leaf in call.leaves if leaf.is_short and self._has_run(leaf, order.said)]
        if run and is_sure:
            return _Match(_names(run), 2)
        dated = [leaf for leaf in call.leaves if self._is_new_date(leaf, source)]
        asked = [leaf for leaf in whole if leaf not in dated and not self._is_said(leaf)]
        if dated and (len(dated) + len(asked) >= 2 or is_only_theirs):
            return _Match(_names(dated + asked), 2)
        if len(whole) == len(call.leaves):
            fresh = [leaf for leaf in asked if leaf.whole.isdigit() or self._is_new(leaf.whole)]
            if asked and (is_only_theirs or (fresh and may_hold and order.directive.is_addressed)):
                return _Match(_names(asked), 1 + is_only_theirs)
            if is_only_theirs and order.directive.is_addressed:
                return _Match(_names(whole), 1)
        hidden = [leaf for leaf in call.leaves if leaf.is_hidden and self._is_told_to_set(leaf, order)]
        if hidden and (is_alike or (order.directive.is_addressed and order.directive.actions & _SETTING)):
            return _Match(_names(hidden), 2)
        targets = [leaf for leaf in call.leaves if leaf.is_short and leaf not in within]
        is_users = bool(targets) and all(self._is_said(leaf) for leaf in targets)
        if within and not is_users and (order.directive.is_addressed or (asked and is_alike)):
            return _Match(_names(within), 2)
        return None

    def _is_new(self, value: str) -> bool:
        return value not in self._user and value not in self._known

    def _is_said(self, leaf: Leaf) -> bool:
        return leaf.whole in self._user_chunks or (len(leaf.whole) > 3 and leaf.whole in self._user)

    def _is_turned(self, leaf: Leaf, call: _Call, order: _Order) -> bool:
        """Whether the user named an address or account for something else than an order to the agent wants with it."""
        named = self._user_named.get(leaf.whole)
        return (
            named is not None
            and order.directive.is_addressed
            and bool(call.does & order.directive.actions - _ANYTHING)
            and not call.does & named.asked
            and not call.verbs & named.asked_near
            and leaf.whole not in self._known
        )

    def _is_told_to_set(self, leaf: Leaf, order: _Order) -> bool:
        """Whether an order names a secret as a call's argument does, and the user never spoke of such a one. The
        secret itself is not kept; that it came from other data would show in the marker.
        """
        named = leaf.calls_it & order.source.chunks
        return bool(named) and not named & self._user_words() and self._is_new(leaf.whole)

    def _user_words(self) -> set[str]:
        return self._user_chunks | ({PASSWORD} if self._user_chunks & PASSWORDS else set())

    def _is_specific(self, leaf: Leaf, order: _Order) -> bool:
        """Whether a value is of the kind that hardly stands in two places by chance; a sentence only where an order
        says it, or dictates it: else it is of the text around.
        """
        words = leaf.text.split()
        if len(words) >= _LEAST_SENTENCE:
            return leaf.whole in order.said or order.source.dictates(leaf)
        if len(words) >= 2:
            return len(leaf.whole) >= 8
        return tells_apart(leaf.text) or (
            len(leaf.whole) >= 5 and not leaf.whole.isdigit() and f"'{leaf.text}'" in order.source.text
        )

    def _has_telling(self, leaf: Leaf, source: Source) -> bool:
        return any(one in source.telling and self._is_new(one) for one in chunks(leaf.text))

    def _has_run(self, leaf: Leaf, said: str) -> bool:
        """Whether at least half of a value, and three words of it, are words of an order in their order."""
        words = leaf.text.split()
        size = max(3, (len(words) + 1) // 2)
        for start in range(len(words) - size + 1):
            run = compact(" ".join(words[start : start + size]))
            if len(run) >= 12 and run in said and self._is_new(run):
                return True
        return False

    def _is_new_date(self, leaf: Leaf, source: Source) -> bool:
        named = dates(leaf.text) if leaf.is_short else set()
        return bool(named) and named <= source.dates and not named & self._user_dates

    def _has_outsider(self, leaf: Leaf, source: Source) -> bool:
        return any(
            names_outsider(word) and compact(word) in source.whole and self._is_new(compact(word))
            for word in leaf.text.split()
        )

    def _joined(self, call: _Call, order: _Order, *, is_sure: bool) -> tuple[Leaf, ...]:
        found = joined(call.leaves, order.source)
        if found is None:
            return ()
        first, second, value = found
        if not self._is_new(value) or not (is_sure or value in order.source.telling):
            return ()
        return first, second


def _said(directive: Directive, source: Source) -> str:
    """The orders of a text, compacted; with all that follows them where one dictates what to write."""
    orders = " ".join(text for text, _ in directive.orders)
    return source.whole if ":" in orders else compact(orders)


def _is_passed_on(call: _Call, order: _Order) -> bool:
    """Whether a call holds the text of the order itself, or much of it: by that alone nothing is obeyed."""
    if order.is_quoted(call.whole, call.does):
        return True
    for leaf in call.leaves:
        is_writing = len(leaf.text.split()) >= _LEAST_WRITING and not order.source.dictates(leaf)
        if order.source.repeats(leaf) or (is_writing and overrides(fold(leaf.text))):
            return True
    return False


def _names(found: list[Leaf] | tuple[Leaf, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(leaf.name for leaf in found))

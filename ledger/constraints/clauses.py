"""What a sentence rules: its ideas in parts, each part demanded or refused, how strictly, on which condition. Pure.

A part has a sign: 1 demanded, -1 refused. Words inside it may turn what they are about (`without approval`, `outside
the company`, `more than 50`): these are marks. `No deployment without approval` and `deployments need approval` have
the same sign in the end, and so do `never ... outside` and `only ... inside`.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from ledger.constraints import signals
from ledger.constraints.lexicon import idea, is_function, is_known, rephrased, single
from ledger.constraints.parts import Part, parts_of, reach
from ledger.constraints.quantities import counted, value_of
from ledger.constraints.signals import AUXILIARY, IF, WHO, is_negative, tokens

Force = Literal["demand", "forbid", "permit", "release", "none"]
"""What a sentence does: `release` takes a demand back; `none`: it only tells."""

_QUOTED = re.compile(r"\"([^\"]{3,300})\"|(?<!\w)'([^']{8,300})'(?!\w)")
_MOSTLY_QUOTED = 0.6
_REMARK = re.compile(
    r"\b(not?|none|n/a|though|although|already|done|see|yet|so far|since|because|was|were)\b"
)
_NONE_OF = re.compile(r"no (?!exception|matter)[\w-]+(?: [\w-]+)?(?:, no [\w-]+(?: [\w-]+)?)*")
_SAYS_MORE = re.compile(
    r"\b(?:is|are) (?:forbidden|out|prohibited|banned|allowed|permitted)\b"
    r"|\bnot (?:wanted|allowed|permitted|acceptable|welcome|to be used)$"
)
_IS_OUT = re.compile(r"^((?!is |are )[\w' -]+?(?<! are)(?<! is)) out$")
_OF_ALL = re.compile(r"\w{2,}ed")
_FOR_ALL = re.compile(r"\b(?:throughout|instead|everywhere|always)$")
_WITHOUT = re.compile(r"\b(?:without|no) [\w' -]*$")
_EXAMPLE = re.compile(r"(?:e\.g\.|eg|for example|for instance|like|such as),? [^a-z]+")
_APART = re.compile(r"\(([^()]*)\)")
_ENDS = frozenset("before after when if while so because unless until once".split())
_TURN_IF_REFUSED = frozenset(("unless", "except"))
_FIRST_COMES = re.compile(r"^(before|until)\b")
_WAITS = re.compile(r"\b(wait|hold|pause|stop|stay)")
_COMES_FIRST = re.compile(r"(?<!the )(?<!for )(?<!at )(?<!your )\bfirst$|^(please )?first\b")
_COMES_SECOND = re.compile(
    r"^(and )?(only )?(then|afterwards|later|after that|subsequently)\b|\b(afterwards|later|after that)$"
)
_ONLY_AFTER = frozenset("after once if when with".split())
_BEFORE_NO = frozenset("with has have had contain contains assume assumes assuming".split())
_COMPARED = {"excess": -1, "least": -1, "most": 1}
_SAYS_NOTHING = frozenset(("unneeded", "excess", "only", ","))
_NOT_TURNED = frozenset("unit unite under until unless union unique universal universe uniform".split())
_SHORTEST_TURNED = 6


class Term(NamedTuple):
    """One idea in a sentence."""

    idea: str
    """What the word stands for; an amount is `#` and its dimension."""

    sign: int
    """1: demanded; -1: refused; 0: neither, it only must come second."""

    segment: int
    """The part of the sentence."""

    place: int
    """Number of its word in the sentence."""

    before: str | None
    """The word before it."""

    marks: tuple[int, ...] = ()
    """Which marks turn it."""

    is_condition: bool = False
    """Whether it stands in a condition or an exception."""

    value: float | None = None
    """Of an amount."""

    order: int = 0
    """1: must come first; 2: second, as the deployment in `approval before deployment`; 0: nothing is said of that."""


class Clause(NamedTuple):
    """A sentence, taken apart."""

    text: str
    """It, normalised."""

    terms: tuple[Term, ...]
    """Its ideas in order."""

    words: tuple[str, ...]
    """Its words in order."""

    parts: tuple[Part, ...]
    """Its parts in order."""

    marks: tuple[int, ...]
    """What each mark does to the sign: -1 for all but those that say what stays inside."""

    compared: frozenset[int]
    """Which marks say of an amount that it is the least, the most, or too much."""

    force: Force
    """What it does."""

    is_soft: bool
    """Whether it may be outweighed."""

    is_mild: bool
    """Whether it says `should`."""

    is_strict: bool
    """Whether it says `must`, `never` or the like."""

    is_gate: bool
    """Whether it lets one thing happen only on a condition: `C before A`, `no A without C`."""

    has_exception: bool
    """Whether it lets something out."""

    is_only: bool
    """Whether it says `only`."""

    is_withdrawal: bool
    """Whether it says that a rule is no longer in force."""

    has_contrast: bool
    """Whether it says `this, not that`."""

    literals: tuple[str, ...]
    """What it quotes."""


@lru_cache(maxsize=4096)
def clause(text: str, *, is_ruled: bool = False) -> Clause:
    """Take a normalised sentence apart. `is_ruled`: it stands where only rules stand."""
    literals = tuple(one or other for one, other in _QUOTED.findall(text) if len((one or other).split()) > 2)
    plain = text
    if sum(map(len, literals)) < _MOSTLY_QUOTED * len(text):
        for literal in literals:
            plain = plain.replace(literal, " ")
    else:
        literals = ()
    plain = _APART.sub(_apart, plain)
    plain = " ".join(rephrased(counted(single(plain.replace('"', " ")))).split())
    is_told = signals.is_reported(plain)
    parts = tuple(
        parts_of(plain, is_ruled=is_ruled, is_told=is_told, is_question=text.rstrip().endswith("?"))
    )
    reader = _Reader()
    for number, part in enumerate(parts):
        reader.read(part, number)
    reader.set_order(parts)
    return Clause(
        plain,
        tuple(reader.terms),
        tuple(reader.words),
        parts,
        tuple(reader.marks),
        frozenset(reader.compared),
        _force(parts, signals.is_withdrawal(plain)),
        signals.is_soft(plain),
        signals.is_mild(plain),
        signals.is_strict(plain),
        signals.is_gate(plain),
        signals.has_exception(plain),
        signals.is_only(plain),
        signals.is_withdrawal(plain),
        {part.sign for part in parts if not part.is_condition} == {1, -1},
        literals,
    )


def _apart(found: re.Match[str]) -> str:
    """Words in brackets: examples belong to what is said, remarks do not."""
    inner = found[1]
    if _EXAMPLE.fullmatch(inner):
        return " "
    if _NONE_OF.fullmatch(inner):
        return f" without {inner.removeprefix('no ').replace(', no ', ' or ')} "
    inner = _IS_OUT.sub(r"\1 are out", inner)
    if _WITHOUT.search(found.string[: found.start()]):
        if _OF_ALL.fullmatch(inner):
            return f" ; must be {inner} "
        if _FOR_ALL.search(inner):
            return f" ; {inner} "
    if _SAYS_MORE.search(inner):
        return f" ; {inner} "
    is_remark = _REMARK.search(inner) is not None and not signals.has_exception(inner)
    return " " if is_remark else f" {inner.replace(',', ' or')} "


def _force(parts: tuple[Part, ...], is_withdrawal: bool) -> Force:
    main = [part for part in parts if part.is_rule and not part.is_condition]
    if is_withdrawal:
        return "permit"
    if not main:
        return "none"
    if all(signals.is_release(part.text) for part in main):
        return "release"
    if all(part.is_permit for part in main):
        return "permit"
    return "forbid" if any(part.sign < 0 for part in main) else "demand"


class _Reader:
    """Reads parts one after the other and gathers their terms and marks."""

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.words: list[str] = []
        self.marks: list[int] = []
        self.compared: set[int] = set()

    def read(self, part: Part, number: int) -> None:
        """Read a part, with its number."""
        words = tokens(part.text)
        here: tuple[int, ...] = ()  # the marks in force
        amount: int | None = None  # a mark that waits for an amount
        is_condition = part.is_condition
        clause_at: int | None = None  # a clause on what stands before begins at this word
        clause_terms = 0
        first = len(self.terms)
        for at, word in enumerate(words):
            before = words[at - 1] if at else None
            opener = "" if clause_at is None else words[clause_at]
            if word in WHO or word in IF or word == "even":
                clause_at, clause_terms = (at if at or word in IF else None), len(self.terms)
            elif opener in WHO and word in AUXILIARY and at - (clause_at or 0) > reach(opener):
                clause_at, opener = None, ""
            turns = word in ("without", "outside") or _turns(part, word)
            turns = turns or (word == "no" and before in _BEFORE_NO)
            if opener and word in ("not", "never", "cannot"):
                turns, clause_at = True, None
                for place in range(clause_terms, len(self.terms)):
                    self._mark(place, len(self.marks))
            if (word in AUXILIARY and not _joins(before)) or (word in _ENDS and not turns):
                here = ()
            if turns:
                self.marks.append(-1)
                here = (*here, len(self.marks) - 1) if word == "not" else (len(self.marks) - 1,)
            if word in ("unless", "except") and part.sign > 0:
                is_condition, here = True, ()
            if word in _COMPARED:
                self.marks.append(_COMPARED[word])
                amount = len(self.marks) - 1
                self.compared.add(amount)
            if word != ",":
                self.words.append(word)
            if is_function(word) or is_negative(word) or word in _SAYS_NOTHING:
                continue
            value = value_of(word)
            if value is None:
                for piece in _pieces(word):
                    name, is_turned = _base(piece)
                    own = here
                    if is_turned:
                        self.marks.append(-1)
                        own = (*here, len(self.marks) - 1)
                    self._add(Term(name, part.sign, number, len(self.words) - 1, before, own, is_condition))
            else:
                own = here if amount is None else (*here, amount)
                amount = None
                name = f"#{value[0]}"
                self._add(
                    Term(name, part.sign, number, len(self.words) - 1, before, own, is_condition, value[1])
                )
        if amount is not None:  # `25 words at most`, or of what was said before: `it may be exceeded`
            same = [place for place in range(first, len(self.terms)) if self.terms[place].value is not None]
            some = same
            if not same and ("excess" in words or words[-2:] == ["most", "it"]):
                some = [place for place in range(first) if self.terms[place].value is not None]
            self.marks[amount] *= 1 if same else part.sign
            for place in some[-1:]:
                self._mark(place, amount)

    def set_order(self, parts: tuple[Part, ...]) -> None:
        """Say of all terms what must come first: `ask before you install`, `install nothing until you have asked`."""
        opening = _opening(parts)
        has_before = any(part.is_condition and _FIRST_COMES.match(part.text) for part in parts)
        gates = {segment: self._gate_of(segment, parts) for segment in {term.segment for term in self.terms}}
        for place, term in enumerate(self.terms):
            part = parts[term.segment]
            at = gates[term.segment]
            is_after = at is not None and term.place > at
            if at is None:
                if opening is not None and not has_before:
                    self.terms[place] = term._replace(order=1 if term.segment <= opening else 2)
                if not has_before:
                    continue
                is_after = part.is_condition
                is_only = False
            else:
                is_only = self.words[at] in _ONLY_AFTER
            is_first = is_after if part.sign < 0 or is_only else not is_after
            if at is not None and self.words[at] == "until" and part.sign > 0:
                is_first = is_after
            if signals.is_release(part.text):
                is_first = not is_after
                sign = term.sign if is_first else 0
            elif is_first:
                sign = part.sign if is_only else 1
            else:
                sign = 0
            self.terms[place] = term._replace(order=1 if is_first else 2, sign=sign)

    def _gate_of(self, segment: int, parts: tuple[Part, ...]) -> int | None:
        """The word in a part after which stands what must come first, or second."""
        places = [term.place for term in self.terms if term.segment == segment]
        if not places or parts[segment].is_condition:
            return None
        is_open = parts[segment].sign > 0 and not _WAITS.search(parts[segment].text)
        for at in range(places[0], places[-1]):
            word = self.words[at]
            is_date = self.words[at + 1].startswith("#")
            if word == "until" and (is_date or is_open):
                continue  # `secret until May`: how long, and not what comes first
            if word in ("before", "until"):
                return at
            if word in _ONLY_AFTER and at and self.words[at - 1] == "only":
                return at
        return None

    def _add(self, term: Term) -> None:
        self.terms.append(term)

    def _mark(self, place: int, mark: int) -> None:
        term = self.terms[place]
        self.terms[place] = term._replace(marks=(*term.marks, mark))


def _opening(parts: tuple[Part, ...]) -> int | None:
    """The part after which all others come later: `do this first, then that`."""
    for at in range(len(parts) - 1):
        if _COMES_FIRST.search(parts[at].text) or _COMES_SECOND.search(parts[at + 1].text):
            return at
    return None


def _joins(word: str | None) -> bool:
    """Whether a verb after it goes on what it began: `that cannot be`."""
    return word is not None and (word in WHO or word in AUXILIARY or word in ("not", "never"))


def _turns(part: Part, word: str) -> bool:
    """Whether a word turns what stands after it in a part that refuses: `nothing before the approval`."""
    return word in _TURN_IF_REFUSED and part.sign < 0 and not signals.is_release(part.text)


def _pieces(word: str) -> list[str]:
    """A word, or the words that a hyphen joins; `non-` is read as `un`."""
    if word.startswith("non-"):
        word = f"un{word.removeprefix('non-')}"
    if "-" not in word or not all(piece.isalpha() for piece in word.split("-")) or is_known(word):
        return [word.rstrip("/")]
    return [piece for piece in word.split("-") if not is_function(piece)]


def _base(word: str) -> tuple[str, bool]:
    """The idea of a word, and whether `un-` turns it."""
    if is_known(word):
        return idea(word), False
    is_turned = word.startswith("un") and not word.startswith(("under", "uni")) and word not in _NOT_TURNED
    if is_turned and len(word) >= _SHORTEST_TURNED:
        return idea(word[2:]), True
    return idea(word), False

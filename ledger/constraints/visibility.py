"""How a rule fares in a text: said word for word, in other words, weaker, narrower, reversed, or not at all. Pure.

No model is asked: a sentence of the text says the rule when it orders, shares its ideas, and demands and refuses the
same ones.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ledger.constraints.clauses import clause
from ledger.constraints.enumerating import members
from ledger.constraints.judging import COPIED, judged
from ledger.constraints.lexicon import MADE, SIGNS, idea, is_function, near, opposites, single, weight
from ledger.constraints.narrowing import DAYS, HARMLESS, NARROWING
from ledger.constraints.seen import KEPT as KEPT
from ledger.constraints.seen import Seen as Seen
from ledger.constraints.seen import Visibility as Visibility
from ledger.constraints.wanted import Wanted, wanted
from ledger.constraints.wording import Sentence, bare, normal, sentences

_CLEAR = 0.8
_SOME = 0.4
_FEW = 0.3
_EACH = 0.2
_LITERAL = 0.3
_REFUSES = re.compile(
    r"\b(no|not|never|nobody|nothing|none|forbidden|prohibited|banned|unneeded|no longer|stop"
    r"|refuses?|declines?|avoid|wrong|skip|pointless|useless|unnecessary|optional|lifted|waived|dropped)\b"
)
_NOT_FORGET = re.compile(
    r"\b(no|not|never|nobody|nothing)\b.*\b(forget|fail|hesitate|omit|neglect|skip|only|but|avoid|optional|negotiable)"
    r"|\bexceptions?\b|\bnothing but\b"
)
_GIVES_REASON = re.compile(
    r",? ?(and|also|as (?!long|soon|far)|because|since|so|per|which|that|for the reason|in order"
    r"|due|by order|according|see|source|says?|said)\b"
)
_MEANT = 0.7
_SAYS = (" said", " says", " told", " wrote", " asked", " stated", " demanded")
_NOTHING = frozenset[str]()
_REFERS = re.compile(
    r"^(it|they|this|these|those|such|he|she|both)\b|\b(for|of|from|to|on|in|about) (it|them|that)\b(?! \w)"
    r"|\bthere\b(?= (is|are|and|or)|\W*$)|(?<!the )\bones (are|is|must)\b"
)
"""What takes up something of the sentence before."""
_EMBEDS = re.compile(r"\b(of|from|in|for|about|with|by|on|the|an?|all|these|our|your) $")
"""Where the words before a copy do not end: `papers from the` personnel files."""
_EMPHASIS = re.compile(rf"\b(?:{SIGNS['emphasis']})\b")
_DENIED = re.compile(r"\b(not|never|no longer|stop|without|nobody|n't)$")


def see(rule: str, text: str, *, is_ruled: bool = False) -> Seen:
    """How a rule fares in a text. `is_ruled`: the text holds nothing but rules."""
    return _see(wanted(rule), text, is_ruled)


def see_any(rule: str, texts: Iterable[str]) -> Seen:
    """How a rule fares in several texts, the last ones counting most where they contradict each other."""
    found = Seen("absent", 0.0)
    for text in texts:
        found = later(found, see(rule, text))
    return found


def later(before: Seen, after: Seen) -> Seen:
    """Two texts one after the other: the last word on a rule counts, a word for word copy stays what it is."""
    if after.visibility == "absent":
        return before if before.visibility != "absent" or before.share >= after.share else after
    if before.visibility in KEPT and after.visibility in ("weakened", "narrowed"):
        return before
    if before.visibility == "verbatim" and after.visibility == "paraphrase":
        return before
    if before.visibility in KEPT and after.visibility == "inverted":
        # A task that goes against the rule takes nothing back; nor does a leave for something else.
        return after if after.is_leave and after.share >= _CLEAR else before
    return after


def _see(rule: Wanted, text: str, is_ruled: bool) -> Seen:
    found = Seen("absent", 0.0)
    is_copied = False
    said, ideas, all_ideas, plain = _read(text)
    needed = _needed(rule.text)
    if not _may_say(needed, all_ideas, _SOME) and rule.bare not in plain:
        return found
    at_once = max(1, min(3, rule.sentences))
    is_there = bool(rule.bare) and rule.bare in plain
    for size in range(1, at_once + 1):  # first what each says by itself
        for start in range(len(said) - size + 1):
            there = ideas[start] if size == 1 else ideas[start].union(*ideas[start + 1 : start + size])
            window = said[start : start + size]
            before = ideas[start - 1] if start and _REFERS.search(window[0].text) else _NOTHING
            if not _may_say(needed, there | before if before else there, _FEW):
                continue
            told = " ; ".join(one.text.rstrip(".!;") for one in window) if size > 1 else window[0].text
            if size > 1 and not _is_joint(rule, is_there, told, window, needed, ideas[start:]):
                continue
            one = _judge(rule, told, is_ruled or window[0].is_ruled, _meant(needed, there, before))
            if size == 1:
                one = _of_members(rule, one, told, needed, is_ruled=is_ruled or window[0].is_ruled)
            is_copied = is_copied or one.share == COPIED
            if not (size > 1 and _is_said_alone(found, one)):
                found = _better(found, one)
    if not is_copied and rule.bare and f" {rule.bare} " in f" {plain} ":
        return _better(found, Seen("verbatim", COPIED, rule.bare))
    return found


def _is_said_alone(found: Seen, joint: Seen) -> bool:
    """Whether one sentence says a rule by itself, and the one beside it adds nothing but words of something else."""
    is_turned = joint.visibility == "inverted" and not joint.is_leave
    return (
        is_turned
        and found.visibility in KEPT
        and found.share >= joint.share
        and found.words.rstrip(".!;") in joint.words
    )


def _of_members(
    rule: Wanted, whole: Seen, told: str, needed: tuple[tuple[float, frozenset[str]], ...], *, is_ruled: bool
) -> Seen:
    """What a sentence makes of a rule, if it enumerates rules: what the one that is about it does."""
    mine = [part for part in rule.whole.parts if not part.is_condition]
    if whole.share == COPIED or (len(mine) > 1 and "instead_of" not in rule.whole.text):
        return whole
    enumerated = members(told, is_ruled=is_ruled)
    some = []
    there = [ideas_in(text) for text in enumerated.texts]
    for at, text in enumerate(enumerated.texts):
        others = frozenset[str]().union(*there[:at], *there[at + 1 :])
        if not _may_say(needed, there[at], _FEW) or any(
            words.isdisjoint(there[at]) and not words.isdisjoint(others) for _, words in needed if words
        ):
            continue  # not about it, or the rule is said by several of them
        seen = _judge(rule, text, enumerated.is_ruled)
        if seen.visibility != "absent":
            some.append(seen)
    if not some or any(seen.visibility == "inverted" for seen in some):
        turned = [seen for seen in some if seen.visibility == "inverted" and seen.share >= _CLEAR]
        return turned[0] if turned and len(turned) == len(some) else whole
    best = next((seen for seen in some if seen.visibility in KEPT), whole)
    return best if whole.visibility not in KEPT else whole


def _is_joint(
    rule: Wanted,
    is_there: bool,
    told: str,
    window: tuple[Sentence, ...],
    needed: tuple[tuple[float, frozenset[str]], ...],
    ideas: tuple[frozenset[str], ...],
) -> bool:
    """Whether sentences may say a rule of several sentences together: all of them order, and each says a part of it."""
    if is_there:
        return rule.bare in _bare(told)
    return all(
        _may_say(needed, its, _EACH) and (one.is_ruled or clause(one.text, is_ruled=False).force != "none")
        for one, its in zip(window, ideas, strict=False)
    )


class _Read(NamedTuple):
    said: tuple[Sentence, ...]
    ideas: tuple[frozenset[str], ...]
    all_ideas: frozenset[str]
    plain: str


@lru_cache(maxsize=256)
def _read(text: str) -> _Read:
    """A text, read once for all rules: sentences, what the words of each stand for, and of all, and its bare words."""
    said = sentences(text)
    ideas = tuple(ideas_in(one.text) for one in said)
    return _Read(said, ideas, frozenset[str]().union(*ideas), bare(text))


@lru_cache(maxsize=2048)
def _needed(rule: str) -> tuple[tuple[float, frozenset[str]], ...]:
    """For each idea of a rule its weight, and what may stand for it; nothing: it cannot be told from single words."""
    found = []
    for one, heavy in wanted(rule).ideas.items():
        is_open = one in MADE or one.startswith("#") or not near(one).isdisjoint(MADE)
        words = {one, *opposites(one), *near(one), *([one[:5]] if len(one) >= 5 else [])}
        found.append((heavy, frozenset[str]() if is_open else frozenset(words)))
    return tuple(found)


def _may_say(needed: tuple[tuple[float, frozenset[str]], ...], ideas: frozenset[str], share: float) -> bool:
    """Whether words have enough of a rule's ideas at all: most have not, and need no closer look."""
    if "action" in ideas:
        return True
    there = sum(heavy for heavy, words in needed if not words or not words.isdisjoint(ideas))
    return there >= share * sum(heavy for heavy, _ in needed)


@lru_cache(maxsize=8192)
def ideas_in(text: str) -> frozenset[str]:
    """What the words of a normalised sentence stand for, roughly."""
    words = {word.strip(".,;:!?()[]\"'") for word in single(text).split()}
    words |= {part for word in words if "-" in word or "/" in word for part in re.split("[-/]", word)}
    words |= {word[2:] for word in words if word.startswith("un") and len(word) > 5}
    known = {idea(word) for word in words if word}
    return frozenset(known | {one[:5] for one in known if len(one) >= 5})


def _better(found: Seen, one: Seen) -> Seen:
    if one.visibility == "absent":
        return found if found.visibility != "absent" or found.share >= one.share else one
    if found.visibility == "absent":
        return one
    if one.visibility == "inverted":
        # Said and taken back in one text: it is not in force.
        return one if found.visibility not in KEPT or one.share >= min(0.8, found.share) else found
    if found.visibility == "inverted":
        return found if found.share >= 0.8 or one.share < found.share else one
    order: tuple[Visibility, ...] = ("verbatim", "paraphrase", "narrowed", "weakened")
    if order.index(one.visibility) != order.index(found.visibility):
        return min(found, one, key=lambda seen: order.index(seen.visibility))
    return max(found, one, key=lambda seen: seen.share)


_bare = lru_cache(maxsize=8192)(bare)


def _meant(
    needed: tuple[tuple[float, frozenset[str]], ...], there: frozenset[str], before: frozenset[str]
) -> float:
    """How much of a rule a sentence says by `it` or `they`: what stands only in the sentence before it."""
    if not before:
        return 0.0
    some = sum(heavy for heavy, words in needed if words.isdisjoint(there) and not words.isdisjoint(before))
    return _MEANT * some / (sum(heavy for heavy, _ in needed) or 1.0)


def _judge(rule: Wanted, told: str, is_ruled: bool, bonus: float = 0.0) -> Seen:
    """One sentence. `bonus`: so much of the rule is said by what its pronouns stand for."""
    plain = _bare(told)
    if rule.bare and f" {rule.bare} " in f" {plain} ":
        before, _, after = plain.partition(rule.bare)
        if _is_refused(rule, told):
            return Seen("inverted", COPIED, told, True)
        return Seen(_copied(rule, before.strip(), after.strip(), told), COPIED, told, True)
    said = clause(told, is_ruled=is_ruled)
    if rule.whole.literals and not all(bare(one) in plain for one in rule.whole.literals):
        return Seen("absent", 0.0, told)
    seen = judged(rule, said, told)
    if bonus and seen.visibility == "absent":
        meant = judged(rule, said, told, bonus=bonus)
        seen = meant if meant.visibility in KEPT else seen
    if rule.whole.literals and seen.share >= _LITERAL:
        return judged(rule, said, told, bonus=_LITERAL)
    return seen


def _goes_on(rule: Wanted, after: str, told: str) -> bool:
    """Whether its sentence goes on after a copy and says more of it: `... written by interns`."""
    rest = told.partition(normal(rule.text).rstrip(".!"))[2].strip(" \"'")
    if not after or rest[:1] in (".", ";", ":", "!", "(", ")", "-", "]", "}") or _GIVES_REASON.match(rest):
        return False
    return any(_says(word) for word in after.split())


def _says(word: str) -> bool:
    return not is_function(word) and idea(word) not in HARMLESS and weight(idea(word)) >= 1


def _is_refused(rule: Wanted, told: str) -> bool:
    """Whether the words right before a copy take it back: `nobody has to ...`, `it is forbidden to ...`."""
    at = told.find(normal(rule.text).rstrip(".!"))
    before = told[: max(0, at)].rstrip().removesuffix(":")
    lead = re.split(r"[,;:.]", before)[-1]
    return _REFUSES.search(lead) is not None and _NOT_FORGET.search(lead) is None


def _copied(rule: Wanted, before: str, after: str, told: str) -> Visibility:
    """What the words around a copy make of it."""
    before, after = (" ".join(_EMPHASIS.sub(" ", one).split()) for one in (before, after))
    around = [clause(one) for one in (before, after) if one]
    if any(one.is_withdrawal or one.force == "release" for one in around):
        return "inverted"
    if _DENIED.search(before):
        return "inverted"
    if any(one.has_exception or (one.is_soft and one.force != "none") for one in around):
        return "weakened"
    lead = re.split(r"[,;:] ", told.partition(normal(rule.text).rstrip(".!"))[0])[-1]
    if _EMBEDS.search(lead) and any(_says(word) for word in lead.split()):
        return "narrowed"
    is_source = before.startswith(("from ", "by ")) and f"{before.split()[-1]}:" in told
    is_source = is_source or before.endswith(_SAYS)
    narrows = [*([] if is_source else before.split()[:1]), *after.split()[:1]]
    if any(word in NARROWING for word in narrows) or any(DAYS.search(one.text) for one in around):
        return "narrowed"
    if _goes_on(rule, after, told):
        return "narrowed"
    last = before.rpartition(" ")[2]
    is_joined = bool(last) and re.search(rf"{re.escape(last)} \w", told) is not None
    return "narrowed" if is_joined and not is_function(last) else "verbatim"

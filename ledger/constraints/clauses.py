"""What a sentence rules: its ideas, each demanded or refused, how strictly, on which condition. Pure; no model."""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from ledger.constraints.lexicon import idea, is_function, is_verb, rephrased, stem

Force = Literal["demand", "forbid", "permit", "release", "none"]
"""What a sentence does: `release` takes a demand back; `none`: it only tells."""

_SOFT = re.compile(
    r"\b(ideally|preferabl[ey]|preferred|preferable|prefer (?!n)|try|tries|trying|tr(y|ies) to"
    r"|(if|where|when|wherever|whenever) (\w+ )?(possible|practical|feasible|convenient|available"
    r"|reasonable|appropriate)"
    r"|if time allows|time permitting|where it fits|if you are unsure|if unsure|consider|generally|usually|typically"
    r"|(is|are|be) (strongly |highly )?recommended|sparingly|discouraged|encouraged|nice to have|would be"
    r" (good|nice|great|best)|optional|could|now and then|be (careful|mindful|cautious)"
    r"|minimum|better|best to|discretion|as needed|if needed|aims?|mostly|often|sometimes|occasionally|tend to"
    r"|good practice|the exception|if (you|they|it|there|at all)\b|if (\w+ )?(can|able)|where it helps"
    r"|appreciated|when it makes sense|minimi[sz]e|limit the)\b"
)
_MILD = re.compile(r"\b(should|ought to)\b")
_AVOID = re.compile(r"\bavoid(ed|s|ing)?\b")
_STRICT = re.compile(
    r"\b(must|never|always|strictly|forbidden|prohibited|shall|mandatory|under no circumstances)\b"
)
_RELEASE = re.compile(
    r"\bno longer (needs?|ha(s|ve)|required?|necessary|must|applies|apply|be|in force|binding|valid|mandatory)\b"
    r"|\bneed not\b|\bneeds? not\b|\b(do|does|did) not (need|have|require)\b|\bnot (required|necessary"
    r"|needed|mandatory)\b"
    r"|\bno need (to|for)\b|\bno [\w -]{1,40}?(is |are |was )?(needed|required|necessary)\b|\bunnecessary\b"
    r"|\bstop \w+ing\b|\bany ?more\b|\bnot (have|need) to\b"
)
_WITHDRAWN = re.compile(
    r"\b(was|were|is|are|has been|have been|got|now) (withdrawn|lifted|dropped|revoked|rescinded|waived|removed"
    r"|cancel(ed|led)|overridden|superseded|relaxed|void|obsolete)\b|\bno longer (applies|apply|in force|valid|binding"
    r"|prohibited|forbidden|banned|restricted)\b|\b(ignore|disregard) (the|this|that|any|all)\b|\bdoes not apply\b"
)
_PERMIT = re.compile(
    r"(?<!if you )(?<!if they )(?<!as you )\b(may|can|might)\b(?! not)|\b(is|are|be|now|was|were) (now "
    r"|also |again )?(allowed|permitted|okay|ok|fine"
    r"|acceptable|free|good|welcome|possible)\b|\b(fine|okay|ok|acceptable) (to|with|now)\b|\bfeel free\b"
    r"|\ballowed to\b"
    r"|\bpermitted to\b|\bno restrictions?\b|\bskip\b|(?<!time )\ballows?\b|\bwhen(ever)? it helps\b"
)
_NOT_PERMITTED = re.compile(
    r"\b(not|never|no longer) (be )?(allowed|permitted|okay|ok|fine|acceptable)\b|\b(may|can|might) (not|never)\b"
    r"|\bcannot\b|\b(no|nothing|nobody|none|neither) [\w' -]{0,60}\b(may|can|allowed|permitted|acceptable)\b"
    r"|\bmost\b.{1,80}\b(may|can|allowed|permitted|acceptable)\b|\b(may|can) .{1,60}\bmost\b|\bnot"
    r" acceptable\b|\bwhat (he|she|it|you) can\b"
)
_NEGATION = re.compile(
    r"\b(never|not|no|cannot|forbidden|prohibit(s|ed|ion)?|disallow(s|ed)?|bans?|banned|off[ -]limits|refrain|nothing"
    r"|nobody|none|neither|nor|be (careful|mindful|cautious)|minimum|minimi[sz]e[sd]?|sparingly"
    r"|exclude[sd]?|discourage[sd]?|stop|omit|decline|refuse|leave alone|untouched)\b"
    r"|\bavoid(ed|s|ing)?\b|\b(keep|kept|stay|stays)\b.{0,80}\b(out of|outside)\b"
)
_ORDER = re.compile(
    r"\b(never|must|always|shall|do not|should|ought|forbidden|prohibited|disallowed|banned|mandatory"
    r"|required|requires"
    r"|need(s|ed)? to|needs|ha(s|ve) to|having to|ensure|make sure|only|(is|are) to( be)?|not allowed|not permitted"
    r"|off[ -]limits|refrain|avoid|cannot|no [\w ]{1,40} without|under no circumstances|strictly|prefers?|limited to"
    r"|not to be|no exceptions?)\b"
)
_BARE_NO = re.compile(
    r"^no (?!\w*(source|result|issue|error|problem|hit|evidence|record|data|further))"
    r"(?!.*\b(found|yet|were|was|is|are|located|provides?|has|have)\b)(\w+ ?){1,7}([.;,]|$)"
)
_REPORTED = re.compile(
    r"\b(users?|customer|operator|admin(istrator)?|client|system|policy|owner|manager|they|he|she)( has| have|'s)?"
    r"( also| explicitly| specifically| originally| previously)?"
    r" (request(ed|s)?|ask(ed|s)? (that|to|for|not|you|me|the)|wants?|wanted|instruct(ed|s)?|requires?"
    r"|required|said|says|told|tells|insist(ed|s)?"
    r"|prefers?|demand(ed|s)?|specified|specifies|stat(ed|es)|forb(ids?|ade)|prohibit(s|ed)|expects?|mandates?)\b"
    r"|\b(as|per) (the )?(user|user's|users|requested|instructed)\b|\benforc(e|es|ed|ing)\b|\bconstraints?:|\brules?:"
    r"|\bstanding (rule|instruction|request|order)|\binstruct(ed|ion|ions)\b|\brequest(ed)? that\b|\bmandate[sd]?\b"
    r"|\bcompl(y|ying|iance) with\b|\badher(e|ing) to\b|\b(as|were|was) (requested|instructed|required)\b"
)
_GERUND_PAST = re.compile(
    r"^(\w+ed|sent|found|wrote|spoke|told|bought|paid|held|kept|put|ran|took|wrote|made|got|read|built"
    r"|began|gave|saw|met|left|kept)\b"
)
_EXCEPTION = re.compile(
    r"\b(except(ing|ions)?|unless|other than|apart from|aside from|excluding|but not for|save for"
    r"|(anyone|anybody|anything|nobody|nothing|none|all) but)\b"
)
_ONLY = re.compile(r"\b(only|solely|exclusively|nothing but)\b")
_CUT = re.compile(
    r"((?:, |; |: |- |\band |\bbut )never\b|,|;|:| - |\bbut\b|\binstead of\b|\b(?:rather|better) than\b"
    r"|\bas opposed to\b|\bwithout\b|\bunless\b"
    r"|\buntil\b|\bbefore\b|\bexcept(?: for)?\b|\bother than\b|\bapart from\b|\band wait\b|\band not\b|\bnot as\b"
    r"|\bonly (?:after|once|with|if|when)\b|\bwhile\b|\bwhich\b|\benforcing\b|\bthat\b)"
)
_QUOTED = re.compile(r"\"([^\"]{3,300})\"|(?<!\w)'([^']{8,300})'(?!\w)")
_REMARK = re.compile(
    r"\b(not?|none|n/a|though|although|already|done|see|yet|so far|since|because|was|were)\b"
)
_APART = re.compile(r"\(([^()]*)\)")
_TOKEN = re.compile(r"[a-z0-9/@$][a-z0-9_./@$%:+-]*[a-z0-9_/%+]|[a-z0-9]")
_NUMBER = re.compile(r"^\d+(?:\.\d+)?$")


class Term(NamedTuple):
    """One idea in a sentence."""

    idea: str
    """What the word stands for."""

    sign: int
    """1: demanded; -1: refused; 0: on what condition, or when."""

    segment: int
    """The part of the sentence."""

    place: int
    """Number of its word in the sentence."""

    before: str | None
    """The word before it."""


class Clause(NamedTuple):
    """A sentence, taken apart."""

    text: str
    """It, normalised."""

    terms: tuple[Term, ...]
    """Its ideas in order."""

    words: tuple[str, ...]
    """Its words in order."""

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

    numbers: frozenset[str]
    """Numbers in it."""

    literals: tuple[str, ...]
    """What it quotes."""


@lru_cache(maxsize=8192)
def clause(text: str, *, is_ruled: bool = False) -> Clause:
    """Take a normalised sentence apart. `is_ruled`: it stands where only rules stand."""
    literals = tuple(one or other for one, other in _QUOTED.findall(text) if len((one or other).split()) > 2)
    plain = text
    for literal in literals:
        plain = plain.replace(literal, " ")
    plain = _APART.sub(_apart, plain)
    plain = " ".join(rephrased(plain.replace('"', " ")).split())
    strict = _STRICT.search(plain) is not None
    is_soft = _SOFT.search(plain) is not None or (_AVOID.search(plain) is not None and not strict)
    is_mild = _MILD.search(plain) is not None
    is_only = _ONLY.search(plain) is not None
    is_withdrawal = _WITHDRAWN.search(plain) is not None
    force = _force(plain, is_only=is_only, is_ruled=is_ruled, is_soft=is_soft or is_mild)
    terms, words, is_gate, has_contrast = _terms(plain, force)
    return Clause(
        plain,
        terms,
        words,
        force,
        is_soft,
        is_mild,
        re.search(r"\b(must|never|strictly|forbidden|prohibited|shall|mandatory)\b", plain) is not None
        or re.search(r"\brequire[sd]?\b|\bhave to\b|\bhas to\b", plain) is not None,
        is_gate,
        _EXCEPTION.search(plain) is not None,
        is_only,
        is_withdrawal,
        has_contrast,
        frozenset(stem(word) for word in words if _NUMBER.match(stem(word))),
        literals,
    )


def _apart(found: re.Match[str]) -> str:
    """Words in brackets: examples belong to what is said, remarks do not."""
    inner = found[1]
    return " " if _REMARK.search(inner) and not _EXCEPTION.search(inner) else f" {inner.replace(',', ' or')} "


def _force(plain: str, *, is_only: bool, is_ruled: bool, is_soft: bool) -> Force:
    if _WITHDRAWN.search(plain):
        return "permit"
    if _RELEASE.search(plain) and not re.search(r"\bnot (be )?(optional|skipped)\b", plain):
        return "release"
    if (
        _PERMIT.search(plain)
        and not _NOT_PERMITTED.search(plain)
        and not is_only
        and not re.search(r"\b(must|never|always)\b", plain)
    ):
        return "permit"
    is_told = (
        _ORDER.search(plain)
        or _BARE_NO.search(plain)
        or _REPORTED.search(plain)
        or is_ruled
        or is_soft
        or _is_order(plain)
    )
    if not is_told and not _NOT_PERMITTED.search(plain):
        return "none"
    if _GERUND_PAST.match(plain) and not _ORDER.search(plain):
        return "none"
    return "forbid" if _NEGATION.search(plain) else "demand"


def _is_order(plain: str) -> bool:
    """Whether it, or a part of it after a comma, begins with a verb that orders."""
    for part in re.split(r"[,;:] | - ", plain):
        word = next(iter(_TOKEN.findall(part.removeprefix("please ").removeprefix("and "))), "")
        if is_verb(word):
            return True
    return False


def _terms(plain: str, force: Force) -> tuple[tuple[Term, ...], tuple[str, ...], bool, bool]:
    pieces = _CUT.split(plain)
    found: list[list[object]] = []  # idea, sign, segment, place, word before
    words: list[str] = []
    sign, is_gate, has_contrast, has_spoken = 1, False, False, False
    segments: list[tuple[str, int, str]] = []
    lead = ""
    for number, piece in enumerate(pieces):
        if number % 2:
            lead = piece.strip()
            continue
        segments.append((piece, number // 2, lead))
    base = -1 if segments and _is_negative(segments[0][0]) else 1
    sign = base
    before_first = (
        segments[0][0].strip() == "" and len(segments) > 1 and segments[1][2] in ("before", "until", "unless")
    )
    for piece, number, lead in segments:
        role = sign
        if lead in ("instead of", "rather than", "better than", "as opposed to", "and not", "not as"):
            role, has_contrast = -1, True
        elif lead.endswith("never"):
            role = sign = -1
            has_contrast = has_contrast or (number > 0 and bool(found))
        elif lead == "without":
            is_gate = True
            role = 1 if _any_negative(found, sign, base) else -1
            _neutral(found)
            sign = role
        elif lead in ("unless", "until", "only after", "only once", "only with", "only if", "only when"):
            is_gate = True
            _neutral(found)
            role = sign = 1
        elif lead == "before":
            if before_first and number == 1:
                role, is_gate, sign = 0, True, 1
            elif sign < 0:
                _neutral(found)
                role, is_gate = 1, True
            else:
                role, is_gate = 0, True
        elif lead in ("except", "except for", "other than", "apart from"):
            role = 0
        elif lead in (",", ";", ":", "-", "but", "and wait", "that", "which", "while", "enforcing"):
            if _is_negative(piece) and sign > 0 and not has_spoken and not is_gate:
                for term in found:
                    term[1] = -1 if term[1] else 0
                sign = -1
            elif before_first and number == 2:
                sign = -1 if _is_negative(piece) else 1
            elif _is_negative(piece):
                has_contrast = has_contrast or (lead in (",", "but", ";", "-") and sign > 0 and bool(found))
                sign = -1
            elif sign < 0 and (_speaks(piece) or lead in ("but", ";")):
                has_contrast = True
                sign = 1
            role = sign if lead != "while" else 0
        if number and lead not in (",", ";", ":") and not piece.strip():
            continue
        has_spoken = has_spoken or _ORDER.search(piece) is not None or _is_order(piece.strip())
        if _is_negative(piece) and role > 0 and lead not in ("without", "unless", "until"):
            role = sign = -1
        previous: str | None = None
        for word in _TOKEN.findall(piece):
            words.append(word)
            if not is_function(word) and not is_function(stem(word)):
                found.append([idea(word), role, number, len(words) - 1, previous])
            previous = word
    if force == "release":
        for term in found:
            term[1] = -1 if term[1] else 0
    signs = {term[1] for term in found}
    terms = tuple(
        Term(
            str(one[0]),
            int(str(one[1])),
            int(str(one[2])),
            int(str(one[3])),
            None if one[4] is None else str(one[4]),
        )
        for one in found
    )
    return terms, tuple(words), is_gate, has_contrast and {1, -1} <= signs


def _is_negative(piece: str) -> bool:
    return _NEGATION.search(piece) is not None


def _speaks(piece: str) -> bool:
    """Whether a part of a sentence orders something of its own."""
    return _is_order(piece.strip()) or _ORDER.search(piece) is not None


def _any_negative(found: list[list[object]], sign: int, base: int) -> bool:
    return sign < 0 or base < 0 or any(term[1] == -1 for term in found)


def _neutral(found: list[list[object]]) -> None:
    for term in found:
        term[1] = 0

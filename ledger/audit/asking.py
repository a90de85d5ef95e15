"""Whether a person asked for a change of what governs the agent, or told it not to. In doubt nobody did."""

import re
from typing import Literal, NamedTuple

from ledger.audit.bounding import SENTENCE_END

Asked = Literal["asked", "refused", "unasked"]
"""`asked`: a person wants the file changed; `refused`: a person does not; `unasked`: nobody spoke of changing it."""

_FLAGS = re.IGNORECASE
_CHANGES = re.compile(
    r"\b(add|append|adapt|adjust|allow|amend|apply|block|bump|change|clean|commit|configure|correct"
    r"|create|delete|deny"
    r"|disable|document|draft|drop|edit|enable|extend|fix|forbid|generate|improve|init(iali[sz]e)?"
    r"|insert|install|keep"
    r"|give|list|loosen|make|mention|need|want|migrate|modify|move|note|permit|put|record|refactor"
    r"|register|relax|remember|remove"
    r"|rename|replace|reset|restore|revert|rewrite|save|say|set|set up|shorten|store|switch|tidy"
    r"|tighten|translate|turn"
    r"|update|upgrade|wire|write|empty|truncate|wipe|purge|stop|unset|ignore|open|lower|raise|increase"
    r"|decrease|rotate|exempt|whitelist|widen)(e?s|e?d|ing)?\b|\bset ?up\b|\b(should|must) (say|be)\b"
    r"|\b(ergänz|erweiter|änder|aktualisier|schreib|entfern|lösch|streich|erstell|leg|füg|trag|setz"
    r"|erlaub|notier|merk"
    r"|ajout|modifi|supprim|cré|écri|agreg|añad|actualiz|cambi|elimin|quit|crea|escrib|borr)\w*",
    _FLAGS,
)
_REFUSES = re.compile(
    r"\b(do not|don['\u2019]?t|never|must not|mustn['\u2019]?t|should not|without|avoid|no need to|nicht"
    r"|kein(e|en)?|ohne|ne pas|no)\b(?! (forget|hesitate|vergiss))",
    _FLAGS,
)
_LEAVES = re.compile(r"\b(leave|keep)\b.{0,60}\b(alone|as (it|they) (is|are)|untouched|unchanged)\b", _FLAGS)
_TOUCHES = re.compile(
    r"\b(touch|edit|change|modify|alter|overwrite|update|write|remove|delete|anfass|änder)\w*", _FLAGS
)
_ONLY_NAMED = re.compile(
    r"\b(according to|as per|per|as in|as|following|follow|follows|obey|respect|see|check|read|reread"
    r"|consult|like"
    r"|in line with|based on|look at|look in(to)?|cat|open|show|described in|stated in|given in"
    r"|documented in|rules in"
    r"|conventions in|guidelines in|instructions in|laut|gemäß|siehe|lies|nach)\s+(?:(?:the|our|my"
    r"|your|der|die)\s+)?"
    r"(?:(?:rules|conventions|guidelines|instructions) (?:in|of)\s+)?[`\"'@./\w-]*$",
    _FLAGS,
)
_FROM = re.compile(r"\bfrom\s+(?:(?:the|our|my|your)\s+)?[`\"'@./\w-]*$", _FLAGS)
_TAKES_AWAY = re.compile(r"\b(remove|drop|delete|strike|cut|move|take (out|away))\b", _FLAGS)
_SPEAKS = re.compile(
    r"^[`\"']?\s*(says?|demands?|requires?|describes?|tells?|wants?|explains?|already|applies)\b", _FLAGS
)
_CONFIRMS = re.compile(
    r"^\W*(y|yes|yep|yeah|sure|ok|okay|do it|do that|go ahead|go for it|please( do)?|fine|sounds good"
    r"|great|agreed"
    r"|correct|continue|go on|proceed|ja|gerne|mach das|weiter|oui|sí|si|vale)\b",
    _FLAGS,
)
_ADDS = re.compile(
    r"\b(add|append|mention|note|put|insert|document|record|remember|ergänz\w*|füg\w*)\b", _FLAGS
)
_ALTERS = re.compile(
    r"\b(remove|drop|delete|strike|relax|loosen|allow|permit|skip|shorten|tidy|clean|rewrite|replace"
    r"|update|change|edit"
    r"|revise|refactor|fix|migrate|rename|translate|reset|restore|revert|simplify|overhaul|trim|merge"
    r"|no longer)\b"
    r"|\b(entfern|änder|lösch|streich)\w*",
    _FLAGS,
)
_OFFERS = re.compile(
    r"\?|\bI(['\u2019]d| would) (like|suggest|propose)|\b(shall|should|can|may) I\b|\bI (can|could"
    r"|suggest|propose)\b"
    r"|\blet me\b|\bI(['\u2019]ll| will)\b",
    _FLAGS,
)
_GOES_ON = re.compile(r"^\W*(continue|go on|proceed|keep going|weiter|next)\b", _FLAGS)
_TURNS_OFF = re.compile(
    r"\b(stop|kill|disable[sd]?|disabling|turn\w*\b[^.]{0,40}\boff|switch\w*\b[^.]{0,40}\boff|restart|reload"
    r"|remov\w*|delete[sd]?|deleting|shut|unset|drop|loosen|relax|lower|skip\w*|bypass\w*"
    r"|ignor\w*|overrid\w*|dismiss|clear|flush|reset|empt(y|ied)|truncate[sd]?|truncating|open|allow|approv\w*|use"
    r"|using|unload|grant|give|vacuum|clean|wipe|purge"
    r""
    r"|lift|take|migrat\w*|switch|mov(e|ing)|swap|without|no longer"
    r"|change|edit|add|set|replace|free|update|upgrade|rotate|exempt"
    r"|let)\b|--\w|\b(abschalt|entfern|lösch|deaktivier)\w*",
    _FLAGS,
)
_REFUSES_OFF = re.compile(
    r"\b(do not|don['\u2019]?t|never|must not|nicht|kein(e|en)?)\b(?! (let|block))", _FLAGS
)
_SHOULD = re.compile(r"\b(should|must|needs? to|has to|have to)\b", _FLAGS)
_ANYWHERE = frozenset(
    "etc usr opt var lib home root local share conf config rules system user users library default "
    "state logs services main policy settings".split()
)
_LONGEST_YES = 60
_LONGEST = 20_000
_CLAUSE = re.compile(r"[,:]|\bbut\b|\band\b|\bthen\b|\baber\b|\bund\b", _FLAGS)


class _Sort(NamedTuple):
    """Files of one sort, and what people call them."""

    path: re.Pattern[str]
    words: re.Pattern[str]


def _sort(path: str, *words: str) -> _Sort:
    return _Sort(re.compile(path, _FLAGS), re.compile("|".join(words), _FLAGS))


_SORTS = (
    _sort(
        r"(^|/)(memory|memories)(/|\.)|(^|/)SOUL\.md$|(^|/)\.letta/",
        r"\b(remember|memory|memories|memori[sz]e|take (a )?note|note (this|that|down)|merk\w* dir"
        r"|notier\w*)\b",
        r"\bdon['\u2019]?t forget\b",
    ),
    _sort(r"/skills(/|$)", r"\bskills?\b"),
    _sort(r"/agents(/|$)", r"\b(sub-?)?agents?\b"),
    _sort(r"/(commands|prompts)(/|$)", r"\b(commands?|prompts?)\b"),
    _sort(r"/output-styles(/|$)", r"\boutput styles?\b"),
    _sort(r"(^|/)\.?mcp[^/]*\.json$", r"\bMCP\b"),
    _sort(r"/hooks(/|\.json|$)|(^|/)\.husky(/|$)", r"\bhooks?\b|\bhusky\b"),
    _sort(
        r"(settings|config|permissions?|polic(y|ies)|allowlist|requirements)[^/]*$"
        r"|(^|/)\.(claude|codex|gemini)\.json$",
        r"\b(permissions?|settings|allow-?\s?list|hooks?|MCP|sandbox|polic(y|ies)|config(uration)?)\b",
        r"\b(approv\w+|auto-?approve|asking me|ask(ing)? (me )?for permission)\b",
        r"\ballow\w* (you|it|claude|codex)\b",
    ),
    _sort(
        r"\.(md|mdc)$|rules?(/|$)|(^|/)\.(cursorrules|windsurfrules|clinerules|goosehints)$",
        r"\b(agents?|project|coding|house|team|cursor|copilot|claude|codex|gemini|windsurf|your|our"
        r"|the)('s|s')?\s+"
        r"(\w+\s+)?(instructions?|rules?|guide(lines?)?|conventions?)\b",
        r"\b(instructions?|rules?) files?\b",
        r"\b(agents?|claude|codex|cursor|copilot)\b.{0,40}\b(rules|instructions|guidelines)\b",
        r"\b(remember|from now on)\b",
    ),
)
_COMMANDS = (
    (re.compile(r"<command-name>/init</command-name>|^/init\b"), re.compile(r"\.(md|mdc)$", _FLAGS)),
    (
        re.compile(
            r"<command-name>/(memory|remember)</command-name>|^/(memory|remember)\b|\A#[^\n#]{3,200}\Z"
        ),
        re.compile(r"\.md$|memory", _FLAGS),
    ),
    (re.compile(r"<command-name>/agents</command-name>|^/agents\b"), re.compile(r"/agents(/|$)")),
    (
        re.compile(
            r"<command-name>/(permissions|allowed-tools|config|hooks|mcp|update-config)</command-name>"
        ),
        re.compile(r"\.(json|toml)$", _FLAGS),
    ),
)


class Wishes:
    """What the person said last, and what the agent had offered before it."""

    def __init__(self) -> None:
        self.text = ""
        """What counts as the person's words on what is going on now."""
        self._offer = ""
        self._answers = ""

    def said(self, text: str) -> None:
        """A person spoke. A bare yes means what the agent offered; who says to go on wants what was wanted before."""
        text = text[:_LONGEST]
        self._answers = ""
        if _CONFIRMS.match(text) and len(text) <= _LONGEST_YES:
            self._answers = self._offer
            if _GOES_ON.match(text) or not self._offer:
                self.text = f"{self.text}\n{text}"[-_LONGEST:]
                return
        self.text = text

    def offered(self, text: str) -> None:
        """The agent spoke: to its last words a person's yes is the answer."""
        self._offer = text[-_LONGEST:]

    def on(self, path: str) -> Asked:
        """Whether a change of this file was asked for."""
        for command, files in _COMMANDS:
            if command.search(self.text) and files.search(path):
                return "asked"
        found: Asked = "unasked"
        offers = [one for one in SENTENCE_END.split(self._answers) if _OFFERS.search(one)]
        for sentence in [*SENTENCE_END.split(self.text), *offers]:
            said = _said_in(sentence, path)
            if said == "refused":
                return said
            found = said if said == "asked" else found
        return found

    def is_only_to_add(self) -> bool:
        """Whether the person wants something added, and nothing taken away or put in other words."""
        return not self._answers and bool(_ADDS.search(self.text)) and not _ALTERS.search(self.text)

    def names_part(self, path: str) -> bool:
        """Whether the person wants something changed that a part of a path is named after: `auditd`, `/etc/audit/x`."""
        parts = {part.partition(".")[0].lower() for part in path.split("/")} - _ANYWHERE
        names = [part for part in parts if len(part) > 3]
        return any(
            any(name in sentence.lower() for name in names)
            and (_CHANGES.search(sentence) is not None or _SHOULD.search(sentence) is not None)
            and not _REFUSES.search(sentence)
            for sentence in SENTENCE_END.split(self.text)
        )

    def wants_off(self, pattern: re.Pattern[str]) -> bool:
        """Whether the person, or the agent's offer that a yes was the answer to, wants a control off or changed that
        goes by these words.
        """
        offers = [one for one in SENTENCE_END.split(self._answers) if _OFFERS.search(one)]
        return any(
            pattern.search(sentence) and _TURNS_OFF.search(sentence) and not _REFUSES_OFF.search(sentence)
            for sentence in [*SENTENCE_END.split(self.text), *offers]
        )

    def speaks_of(self, pattern: re.Pattern[str]) -> bool:
        """Whether the person's words name something, and not to say no to it."""
        return any(
            pattern.search(sentence) and not _REFUSES.search(sentence[: found.start()])
            for sentence in SENTENCE_END.split(self.text)
            if (found := pattern.search(sentence)) is not None
        )


def _said_in(sentence: str, path: str) -> Asked:
    """What one sentence says of a file, by its name or by the sort of thing that it is."""
    name = path.rstrip("/").rpartition("/")[2].lower()
    place = sentence.lower().find(name) if name else -1
    if place >= 0:
        before, after = sentence[:place], sentence[place + len(name) :]
        clause = _CLAUSE.split(before)[-1]
        if _LEAVES.search(sentence) or (_REFUSES.search(clause) and _TOUCHES.search(clause)):
            return "refused"
        if _ONLY_NAMED.search(before) or _SPEAKS.search(after) or _REFUSES.search(clause):
            return "unasked"
        if _FROM.search(before) and not _TAKES_AWAY.search(before):
            return "unasked"
        return "asked" if _CHANGES.search(sentence) else "unasked"
    for sort in _SORTS:
        if sort.path.search(path) and (found := sort.words.search(sentence)) is not None:
            clause = _CLAUSE.split(sentence[: found.start()])[-1]
            if _REFUSES.search(clause) and _TOUCHES.search(clause):
                return "refused"
            if not _ONLY_NAMED.search(sentence[: found.start()]) and _CHANGES.search(sentence):
                return "asked"
    return "unasked"

"""Memory that turns into instruction: what the agent writes down for later, where it had that from, who follows it."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ledger.audit.bounding import SENTENCE_END, bound, plain, short
from ledger.audit.finding import Found
from ledger.audit.scripts import shell_command
from ledger.effects.words import words_of
from ledger.events.review import Severity

MEMORY = frozenset("memory memories remember memorize memorise recall note notes".split())
"""Words by which tools and files of memory go."""

_LONGEST = 20_000
_MOST = 500
_MOST_HEARD = 5000
_LEAST = 20
_INSTRUCTS = re.compile(
    r"\b(always|never|must|from now on|whenever|do not|don't|every time|instead of|make sure|ignore|skip|before you"
    r"|before every|before any|immer|niemals|ab jetzt|toujours|jamais|siempre|nunca)\b",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"https?://[^\s`\"'<>)]+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,200}|`[^`\n]{4,200}`|\"[^\"\n]{6,200}\""
    r"|(?<![\w/])(?:~|\.{1,2})?/[\w./-]{6,}|(?<![\w-])[\w-]{1,63}(?:\.[\w-]{1,63})+\b|--[a-z][\w-]{3,}"
)
_LOCAL = frozenset("read view cat grep glob ls search find open list get".split())
_GOES_OUT = re.compile(r"\b(curl|wget|https?|gh|glab|ssh|scp|mail|lynx|nc)\b|://", re.IGNORECASE)
_PLACES = frozenset({"file_path", "path", "notebook_path", "filename", "pattern", "glob"})


class _Written(NamedTuple):
    """A sentence of memory that instructs."""

    seq: int
    """Where it was written."""

    heard: int | None
    """The result of a tool in which it had stood."""

    is_local: bool
    """Whether that was a file of the project."""


class Memory:
    """What one session wrote down, and read again."""

    def __init__(self) -> None:
        self._heard: OrderedDict[str, tuple[int, bool]] = OrderedDict()
        self._said = ""
        self._written: OrderedDict[str, _Written] = OrderedDict()
        self._recalled: OrderedDict[str, tuple[int, int | None, bool]] = OrderedDict()

    def said(self, text: str) -> None:
        """A person spoke: what a person says is no order of a stranger's."""
        self._said = f"{self._said}\n{plain(text[:_LONGEST])}"[-_LONGEST:]

    def heard(self, texts: Iterable[str], seq: int, *, is_local: bool) -> None:
        """A tool's result said this."""
        for text in texts:
            for sentence in sentences(text):
                self._heard.setdefault(sentence, (seq, is_local))
        bound(self._heard, _MOST_HEARD)

    def wrote(self, texts: Iterable[str], seq: int) -> Iterator[Found]:
        """The agent wrote this down; what a stranger's text ordered must not get there."""
        for text in texts:
            for sentence in sentences(text):
                if not _INSTRUCTS.search(sentence) or plain(sentence) in self._said:
                    continue
                source = self._source(sentence)
                self._written[sentence] = _Written(seq, *source)
                if source[0] is not None:
                    where = "a file" if source[1] else "the result of a tool"
                    said = short(sentence, 80)
                    message = f"an order that the agent had read in {where} was written to memory: {said!r}"
                    severity: Severity = "info" if source[1] else "medium"
                    yield Found(
                        seq,
                        message,
                        (source[0],),
                        severity=severity,
                        part="memory",
                        key=f"written {sentence}",
                    )
        bound(self._written, _MOST)

    def _source(self, sentence: str) -> tuple[int | None, bool]:
        """Where a sentence had stood: as it is, in a longer one, or cut."""
        if sentence in self._heard:
            return self._heard[sentence]
        for other, (seq, is_local) in self._heard.items():
            if sentence in other or (len(other) > 2 * _LEAST and other in sentence):
                return seq, is_local
        return None, False

    def instructed(self, texts: Iterable[str], seq: int) -> Iterator[Found]:
        """What the agent had written down comes back as an instruction."""
        if not self._written:
            return
        told = plain(" ".join(texts))
        for sentence, written in list(self._written.items()):
            if sentence not in told:
                continue
            del self._written[sentence]
            self._recalled[sentence] = written.seq, written.heard, written.heard is None or written.is_local
            source = " it had read it in the result of a tool;" if written.heard is not None else ""
            message = f"what the agent had written down now instructs it:{source} {short(sentence, 80)!r}"
            severity: Severity = "high" if written.heard is not None else "medium"
            yield Found(seq, message, (written.seq,), severity=severity, part="memory")

    def recalled(self, texts: Iterable[str], seq: int) -> None:
        """A tool gave memory back."""
        for text in texts:
            for sentence in sentences(text):
                if not _INSTRUCTS.search(sentence) or sentence in self._said:
                    continue
                written = self._written.get(sentence)
                if written is None:
                    self._recalled.setdefault(sentence, (seq, None, True))
                else:
                    self._recalled[sentence] = (
                        written.seq,
                        written.heard,
                        written.heard is None or written.is_local,
                    )
        bound(self._recalled, _MOST)

    def acted(self, tool: str, arguments: str, seq: int) -> Iterator[Found]:
        """A call that does what memory says: a value that stands there stands in its arguments."""
        if not self._recalled:
            return
        given = plain(arguments)
        for sentence, (at, heard, is_own) in list(self._recalled.items()):
            values = (one.strip("`\"'.,;") for one in _VALUE.findall(sentence))
            value = next((one for one in values if len(one) > 3 and one in given), None)
            if value is None:
                continue
            del self._recalled[sentence]
            whose = (
                "which it had from the result of a tool"
                if heard is not None
                else "and no person had said so here"
            )
            message = f"{tool} did what memory says, {whose}: {short(sentence, 80)!r}"
            severity: Severity = "low" if is_own else "high"
            witnesses = tuple(one for one in (heard, at) if one is not None)
            yield Found(seq, message, witnesses, severity=severity, part="memory")


def is_memory(name: str) -> bool:
    """Whether a tool or a file is one of memory, by its name."""
    return bool(MEMORY & set(words_of(name)))


def is_local(tool: str, arguments: Any) -> bool:
    """Whether a call reads what lies beside the agent: a file, not a page or a message."""
    script = shell_command(tool, arguments)
    if script is not None:
        return _GOES_OUT.search(script) is None
    fields = set(arguments) if isinstance(arguments, dict) else set()
    return bool(_LOCAL & set(words_of(tool))) and bool(_PLACES & fields)


def sentences(text: str) -> list[str]:
    """The sentences of a text, in small letters, without the marks of lists."""
    parts = (plain(part).strip("-*#• .!") for part in SENTENCE_END.split(text[:_LONGEST]))
    return [part for part in parts if len(part) >= _LEAST]

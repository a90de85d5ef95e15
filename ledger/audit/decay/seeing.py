"""How rules fare in what a model was sent: each message is read once for each rule, however often it comes again."""

from collections import OrderedDict
from collections.abc import Iterable

from ledger.audit.decay.outcome import Where
from ledger.audit.reader import Reader
from ledger.constraints.speakers import Said, said_in, texts_in
from ledger.constraints.visibility import KEPT, Seen, later, see
from ledger.constraints.wording import bare
from ledger.events import ContentRef

_MOST = 50_000
_LONG = 4_000
NOT_SEEN = Seen("absent", 0.0)
"""What is said of a rule that nothing says anything of."""


class Eyes:
    """Reads contexts of one session."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._said: OrderedDict[str, list[Said]] = OrderedDict()
        self._seen: OrderedDict[tuple[str, str], Seen] = OrderedDict()
        self.sizes: OrderedDict[str, int] = OrderedDict()
        """Characters of messages, by digest."""

    def see(
        self, rule: str, system: ContentRef | None, messages: Iterable[str], without: tuple[str, ...] = ()
    ) -> Seen:
        """How a rule fares in a request; `without`: texts that were pinned to it and do not count."""
        return self.look(rule, system, messages, without)[0]

    def look(
        self, rule: str, system: ContentRef | None, messages: Iterable[str], without: tuple[str, ...] = ()
    ) -> tuple[Seen, Where | None]:
        """How a rule fares in a request, and where it shows."""
        found, where = NOT_SEEN, None
        if system is not None:
            if without:
                text = self.system_text(system)
                for pinned in without:
                    text = text.replace(pinned, " ")
                found = later(found, see(rule, text))
            else:
                found = later(found, self._of(rule, system.digest, self._of_system(system)))
            if found is not NOT_SEEN and found.share:
                where = Where(system.digest, True, found.words)
        for digest in messages:
            after = later(found, self._of(rule, digest, self.said(digest)))
            if after is not found:
                found, where = after, Where(digest, False, after.words)
        return found, where

    def said(self, digest: str) -> list[Said]:
        """What a message says."""
        if digest in self._said:
            self._said.move_to_end(digest)
            return self._said[digest]
        found = said_in(self._reader.message(digest))
        self.sizes[digest] = sum(len(one.text) for one in found)
        self._keep(self._said, digest, found, 2_000)
        if len(self.sizes) > _MOST:
            self.sizes.popitem(last=False)
        return found

    def size(self, digest: str) -> int:
        """Characters of a message."""
        if digest not in self.sizes:
            self.said(digest)
        return self.sizes.get(digest, 0)

    def system_text(self, system: ContentRef) -> str:
        """The system prompt as one text."""
        value = self._reader.value(system)
        if isinstance(value, dict) and "content" in value:
            value = value["content"]
        if isinstance(value, list):
            value = [block.get("text", block) if isinstance(block, dict) else block for block in value]
        return "\n".join(texts_in(value))

    def _of_system(self, system: ContentRef) -> list[Said]:
        return [Said("system", self.system_text(system))]

    def _of(self, rule: str, digest: str, said: list[Said]) -> Seen:
        key = rule, digest
        known = self._seen.get(key)
        if known is None:
            known = NOT_SEEN
            for one in said:
                known = later(known, _heard(rule, one))
            self._keep(self._seen, key, known, _MOST)
        return known

    @staticmethod
    def _keep(where: OrderedDict, key: object, value: object, most: int) -> None:  # type: ignore[type-arg]
        where[key] = value
        if len(where) > most:
            where.popitem(last=False)


def _heard(rule: str, said: Said) -> Seen:
    """How a rule fares in the words of one speaker. What an agent or a tool says takes no rule back."""
    if said.who == "tool" and len(said.text) > _LONG:
        return Seen("verbatim", 1.0) if bare(rule) in bare(said.text) else NOT_SEEN
    found = see(rule, said.text)
    if said.who in ("assistant", "tool") and found.visibility not in KEPT:
        return NOT_SEEN
    return found

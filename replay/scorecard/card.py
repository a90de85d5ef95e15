"""The scorecard of a session, and those of all sessions by harness."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ledger.events.session import SessionStarted
from ledger.store import EventStore
from ledger.views.findings import reader_of
from replay.proving import Tell
from replay.scorecard.answer import NO_EVIDENCE, QUESTIONS, Answer, Asker, Card, Witness
from replay.scorecard.leaving import Leaving
from replay.scorecard.pauses import Pauses
from replay.scorecard.rebuilding import rebuilding
from replay.scorecard.restart import Restart
from replay.scorecard.riding import Riding
from replay.scorecard.sight import Sight

Prove = Callable[[EventStore, str, Tell], Answer]
"""Answers whether a session can be rebuilt."""

_MOST_PLACES = 3


def card_of(
    store: EventStore, session: str, tell: Tell = lambda seq: None, prove: Prove = rebuilding
) -> Card:
    """The answers of one session: one pass over its records, and the proofs."""
    reader = reader_of(store)
    askers: tuple[Asker, ...] = (
        Restart(),
        Sight(reader),
        Pauses(reader),
        Riding(store),
        Leaving(reader),
    )
    harness: str | None = None
    for record in store.read(session):
        if isinstance(record.event, SessionStarted):
            harness = record.event.harness
        for asker in askers:
            asker.take(record)
        tell(record.seq)
    answers = {answer.question: answer for answer in (asker.answer() for asker in askers)}
    answers["rebuild"] = prove(store, session, tell)
    return Card(session, harness, tuple(answers[question] for question in QUESTIONS))


class HarnessCard:
    """What the sessions of one harness answer."""

    def __init__(self, harness: str) -> None:
        self.harness = harness
        """The harness."""
        self.sessions = 0
        """Its sessions."""
        self.answers: dict[str, Counter[str]] = {question: Counter() for question in QUESTIONS}
        """Sessions by question and answer."""
        self._examples: dict[tuple[str, str], list[Witness]] = {}
        self._turns: Counter[str] = Counter()

    def add(self, card: Card) -> None:
        """Take in a session."""
        self.sessions += 1
        for one in card.answers:
            self.answers[one.question][one.answer] += 1
            kept = self._examples.setdefault((one.question, one.answer), [])
            kept += one.witnesses[: max(0, _MOST_PLACES - len(kept))]
            if one.question == "capability":
                for turn in one.facts["turns"]:
                    self._turns["turns"] += 1
                    if turn["schemas"] is not None:
                        self._turns["schema_turns"] += 1
                        self._turns["schema_turn_bytes"] += turn["bytes"]
                    for name in ("bytes", "schemas", "results", "calls"):
                        self._turns[name] += turn[name] or 0

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        turns = self._turns
        return {
            "harness": self.harness,
            "sessions": self.sessions,
            "answers": [
                {
                    "question": question,
                    "asks": asks,
                    "answers": [
                        {
                            "answer": answer,
                            "sessions": count,
                            "evidence": [
                                {"place": one.place, "what": one.what}
                                for one in self._examples[question, answer]
                            ],
                        }
                        for answer, count in sorted(
                            self.answers[question].items(),
                            key=lambda item: (item[0] == NO_EVIDENCE, -item[1], item[0]),
                        )
                    ],
                }
                for question, asks in QUESTIONS.items()
            ],
            "a_turn": {
                "turns": turns["turns"],
                "bytes": _mean(turns["bytes"], turns["turns"]),
                "schema_turns": turns["schema_turns"],
                "schema_turn_bytes": _mean(turns["schema_turn_bytes"], turns["schema_turns"]),
                "schemas": _mean(turns["schemas"], turns["schema_turns"]),
                "results": _mean(turns["results"], turns["turns"]),
                "calls": _mean(turns["calls"], turns["turns"]),
            },
        }


def by_harness(cards: Iterable[Card]) -> list[HarnessCard]:
    """Cards put together, by name of the harness."""
    found: dict[str, HarnessCard] = {}
    for card in cards:
        name = card.harness or "(unknown)"
        found.setdefault(name, HarnessCard(name)).add(card)
    return [found[name] for name in sorted(found)]


def _mean(total: int, count: int) -> int | None:
    return round(total / count) if count else None

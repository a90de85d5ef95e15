"""Labelled sessions, and how a detector and its trivial baseline do on them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ledger.audit import Detector, Finding, Reader
from ledger.audit.intervals import Share
from ledger.events import Record
from ledger.importers._intake import import_paths
from ledger.views.findings import reader_of
from tests.ledger.audit.histories import History, Told


class Labelled(NamedTuple):
    """One case of a corpus: a session written by hand, or a file that is imported, and what is true of it."""

    name: str
    """What to call it."""

    is_bad: bool
    """Whether the detector ought to flag it."""

    events: list[Told] | None = None
    """The session, as in `histories`."""

    path: Path | None = None
    """Or the file. The label must not be seen by the detector: neither in the file nor in its name."""

    group: str = "all"
    """Which part of the corpus it is of: shown apart."""


class Corpus(Protocol):
    """What a module in `corpora` offers. It may also offer `counts(finding)`: whether a finding is of this corpus."""

    DETECTOR: str
    """The detector, or one of its parts, such as `approval.stale`."""

    TITLE: str
    """What the corpus holds, in a few words."""

    BASELINE: str
    """What the baseline does, in a few words."""

    def cases(self) -> Iterator[Labelled]:
        """The cases; none where what they are made of is not there."""

    def baseline(self, records: list[Record], reader: Reader) -> bool:
        """Whether the trivial rule flags a session."""


@dataclass
class Counts:
    """How a rule did."""

    hits: int = 0
    """Bad ones flagged."""

    missed: list[str] = field(default_factory=list)
    """Bad ones not flagged."""

    false: list[str] = field(default_factory=list)
    """Good ones flagged."""

    quiet: int = 0
    """Good ones not flagged."""

    def add(self, name: str, *, is_bad: bool, is_flagged: bool) -> None:
        """One more case."""
        if is_bad:
            self.hits += is_flagged
            if not is_flagged:
                self.missed.append(name)
        else:
            self.quiet += not is_flagged
            if is_flagged:
                self.false.append(name)

    @property
    def precision(self) -> Share:
        """Of those flagged, the bad ones."""
        return Share(self.hits, self.hits + len(self.false))

    @property
    def recall(self) -> Share:
        """Of the bad ones, those flagged."""
        return Share(self.hits, self.hits + len(self.missed))

    @property
    def false_alarms(self) -> Share:
        """Of the good ones, those flagged."""
        return Share(len(self.false), len(self.false) + self.quiet)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 where nothing was hit."""
        return 2 * self.hits / max(1, 2 * self.hits + len(self.false) + len(self.missed))


class Measurement(NamedTuple):
    """A detector on a corpus, with its baseline beside it, by group and over all (`all`)."""

    detector: dict[str, Counts]
    """The detector."""

    baseline: dict[str, Counts]
    """The trivial rule."""


def measure(corpus: Corpus, detectors: dict[str, Detector], home: Path) -> Measurement | None:
    """Run a corpus; None where it has no cases here."""
    counts: Callable[[Finding], bool] = getattr(corpus, "counts", lambda finding: True)
    done = Measurement({}, {})
    detector = detectors[corpus.DETECTOR.partition(".")[0]]
    with History(home) as history:
        cases = [(case, _sessions(history, case, number)) for number, case in enumerate(corpus.cases())]
        report = history.report([detector])
        reader = reader_of(history.ledger.store)
        flagged = {
            finding.session
            for finding in report.findings
            if finding.is_at_least("low") and _is_of(finding, corpus.DETECTOR) and counts(finding)
        }
        for case, sessions in cases:
            trivial = any(
                corpus.baseline(list(history.ledger.store.read(session)), reader) for session in sessions
            )
            for group in dict.fromkeys(("all", case.group)):
                for table, is_flagged in (
                    (done.detector, bool(flagged & set(sessions))),
                    (done.baseline, trivial),
                ):
                    table.setdefault(group, Counts()).add(
                        case.name, is_bad=case.is_bad, is_flagged=is_flagged
                    )
    return done if done.detector else None


def _is_of(finding: Finding, detector: str) -> bool:
    return finding.detector == detector or finding.detector.startswith(f"{detector}.")


def _sessions(history: History, case: Labelled, number: int) -> list[str]:
    if case.events is not None:
        return sorted({session for session, _ in history.add(case.events, prefix=f"{number:05}-")})
    assert case.path is not None
    entry = import_paths(history.ledger.recorder, [case.path]).as_json()["files"][0]
    return list(entry.get("sessions", ()))


def call(number: int, tool: str, arguments: Any, result: Any = "done", **more: Any) -> Iterable[Told]:
    """A tool call with its result, for corpora that are written by hand."""
    outcome = more.pop("outcome", "returned")
    yield {
        "type": "tool_call.requested",
        "call_id": f"c{number}",
        "tool": tool,
        "arguments": arguments,
        **more,
    }
    yield {"type": "tool_call.settled", "call_id": f"c{number}", "outcome": outcome, "result": result}

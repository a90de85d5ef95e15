"""One agent against several, on the same tasks: what runs cost, how they ended, and how they failed.

A run's task is what its first message says, or what a file declares; its number of agents is that of its sessions or of
the agents that acted in them by name, whichever is more.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ledger.audit.intervals import Share
from ledger.effects.yaml_file import read_yaml
from ledger.errors import ContentMissingError, InputError
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallFailed
from ledger.events.policy import BreakerTripped, BudgetExceeded
from ledger.events.session import SessionLinked
from ledger.store import EventStore
from ledger.store.content import content_digest
from ledger.views.edges import RunEdges, all_runs
from ledger.views.search_text import readable
from ledger.views.session_row import SessionRow
from ledger.views.sessions import SessionsView

FEW = 10
"""Below so many runs in a group, nothing is said of a difference."""

_FAILURES = (ModelCallFailed.TYPE, BreakerTripped.TYPE, BudgetExceeded.TYPE)
_ENDS = ("completed", "failed", "aborted", "cancelled")
_LONGEST_TITLE = 60

Group = Literal["one", "several"]
"""Whether a run had one agent, or more."""


class Tasks(BaseModel):
    """Which session worked on which task, as a file declares it: `tasks: {refund-7: [3f2a, 77c0]}`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    tasks: dict[str, tuple[str, ...]]
    """Sessions, by id or the start of one, by task."""


def load_tasks(path: Path, store: EventStore) -> dict[str, str]:
    """The declared task of each session. Raises InputError; SessionNotFoundError, AmbiguousSessionError."""
    declared: dict[str, str] = {}
    for task, names in read_yaml(Tasks, path).tasks.items():
        for session in map(store.resolve, names):
            if declared.setdefault(session, task) != task:
                raise InputError(
                    f"{path}: expected {session} under one task, found it under {declared[session]!r} and {task!r}"
                )
    return declared


@dataclass
class Run:
    """One run, as it counts here."""

    session: str
    """Session that it began with."""
    task: str
    """Key of its task."""
    title: str
    """The task, for people."""
    agents: int
    """How many worked on it."""
    outcome: str | None
    """How it ended; None where nobody says."""
    cost_usd: Decimal | None
    """Cost of all its sessions; None where none tells it."""
    tokens: int | None
    """Tokens of all its sessions."""
    seconds: float | None
    """From its first time to its last."""
    model_calls: int
    """Model calls of all its sessions."""
    tool_calls: int
    """Tool calls of all its sessions."""
    failures: Counter[str] = field(default_factory=Counter)
    """What failed in it, by kind."""

    @property
    def group(self) -> Group:
        """One agent or several."""
        return "one" if self.agents == 1 else "several"


@dataclass
class Fleet:
    """Runs side by side."""

    runs: list[Run] = field(default_factory=list)
    """The runs with a task, in the order of the ledger."""
    without_task: int = 0
    """Runs of which no message is on record, and none is declared."""
    same_run: int = 0
    """Runs that another session tells of as well: what both tell counts once."""

    def shared(self) -> list[str]:
        """Tasks that one agent and several agents worked on."""
        groups: dict[str, set[Group]] = {}
        for run in self.runs:
            groups.setdefault(run.task, set()).add(run.group)
        return sorted(task for task, found in groups.items() if len(found) == 2)

    def as_json(self) -> dict[str, Any]:
        """The documented form: the tasks that both did, and all runs by their number of agents."""
        shared = set(self.shared())
        same = [run for run in self.runs if run.task in shared]
        numbers = sorted({run.agents for run in self.runs})
        one, several = ([run for run in same if run.group == group] for group in ("one", "several"))
        return {
            "runs": len(self.runs),
            "without_task": self.without_task,
            "same_run": self.same_run,
            "tasks": len({run.task for run in self.runs}),
            "shared_tasks": [
                {
                    "task": task,
                    "title": next(run.title for run in same if run.task == task),
                    "one": _sum_up([run for run in one if run.task == task]),
                    "several": _sum_up([run for run in several if run.task == task]),
                }
                for task in sorted(shared)
            ],
            "same_tasks": {"one": _sum_up(one), "several": _sum_up(several), **_compared(one, several)},
            "by_agents": [
                {"agents": number, **_sum_up([run for run in self.runs if run.agents == number])}
                for number in numbers
            ],
        }


def fleet(
    store: EventStore,
    sessions: SessionsView,
    declared: dict[str, str] | None = None,
    tell: Callable[[int], None] = lambda count: None,
) -> Fleet:
    """The runs of a ledger by task. With declared tasks, only those that are declared."""
    found = Fleet()
    for run in all_runs(store, sessions, deep=False, tell=tell):
        if _is_told_by_another(store, sessions, run.root):
            found.same_run += 1
            continue
        if declared is not None:
            task = next((declared[name] for name in run.sessions if name in declared), None)
            title = task or ""
        else:
            task, title = _task_of(store, run.root)
        if task is None:
            found.without_task += declared is None
            continue
        rows = [row for name in run.sessions if (row := sessions.row(name)) is not None]
        found.runs.append(_run(store, run, rows, task, title))
    return found


def _is_told_by_another(store: EventStore, sessions: SessionsView, session: str) -> bool:
    """Whether a session before it, by id, was found to tell of the same run."""
    return any(
        isinstance(record.event, SessionLinked)
        and record.event.other < session
        and sessions.row(record.event.other) is not None
        for record in store.read(session, names=(SessionLinked.TYPE,))
    )


def _task_of(store: EventStore, session: str) -> tuple[str | None, str]:
    """Key and title of what the first message says, however its protocol spells it."""
    for record in store.read(session, names=(MessageReceived.TYPE,)):
        event = record.event
        if isinstance(event, MessageReceived) and event.origin in ("human", "unknown", "schedule"):
            try:
                text = " ".join(readable(store.content(event.message.digest), event.message.kind).split())
            except ContentMissingError:
                return None, ""
            if text:
                key = content_digest(store.salt, text.casefold().encode("utf-8", "replace")).hex()[:16]
                return key, text[:_LONGEST_TITLE]
    return None, ""


def _run(store: EventStore, run: RunEdges, rows: list[SessionRow], task: str, title: str) -> Run:
    root = rows[0]
    costs = [Decimal(row.cost_usd) for row in rows if row.cost_usd is not None]
    tokens = [count for row in rows for count in row.tokens.values() if count is not None]
    return Run(
        run.root,
        task,
        title,
        max(1, len(run.sessions), len(run.agents)),
        root.outcome if root.outcome in _ENDS else None,
        sum(costs, Decimal(0)) if costs else None,
        sum(tokens) if tokens else None,
        _seconds(rows),
        sum(row.model_calls for row in rows),
        sum(row.tool_calls for row in rows),
        _failures(store, run, rows),
    )


def _seconds(rows: list[SessionRow]) -> float | None:
    times = [time for row in rows for time in (row.started_at, row.last_at) if time is not None]
    try:
        moments = [datetime.fromisoformat(time).timestamp() for time in times]
    except (ValueError, OverflowError, OSError):
        return None  # a time that no clock of ours knows
    return round(max(moments) - min(moments), 3) if len(moments) > 1 else None


def _failures(store: EventStore, run: RunEdges, rows: list[SessionRow]) -> Counter[str]:
    found: Counter[str] = Counter()
    for edge in run.edges.values():
        what = "hand-over" if edge.is_to_agent else "tool call"
        for outcome, count in edge.outcomes.items():
            if outcome in ("failed", "aborted", "denied", "unknown", "not_started"):
                found[f"{what} {outcome.replace('_', ' ')}"] += count
    for outcome in ("failed", "aborted"):
        found[f"run {outcome}"] += rows[0].outcome == outcome
        below = sum(row.outcome == outcome for row in rows[1:])
        # one that failed and whose hand-over says so failed once
        found[f"sub-agent {outcome}"] += max(0, below - found[f"hand-over {outcome}"])
    for name in run.sessions:
        for record in store.read(name, names=_FAILURES):
            found["model call failed" if record.type == ModelCallFailed.TYPE else "stopped by a limit"] += 1
    cut = sum(row.cut_answers for row in rows)
    found["answer cut off"] += cut
    return +found


# -- summed up ------------------------------------------------------------------------------------------------------


def _sum_up(runs: list[Run]) -> dict[str, Any]:
    ends = Counter(run.outcome for run in runs if run.outcome is not None)
    kinds = sorted({kind for run in runs for kind in run.failures})
    return {
        "runs": len(runs),
        "tasks": len({run.task for run in runs}),
        "agents_a_run": _middle([run.agents for run in runs]),
        "completed": Share(ends["completed"], ends.total()).as_json(),
        "outcomes": dict(sorted(ends.items())),
        "outcome_unknown": len(runs) - ends.total(),
        "cost_usd": _middle([None if run.cost_usd is None else float(run.cost_usd) for run in runs]),
        "tokens": _middle([run.tokens for run in runs]),
        "seconds": _middle([run.seconds for run in runs]),
        "model_calls": _middle([run.model_calls for run in runs]),
        "tool_calls": _middle([run.tool_calls for run in runs]),
        "failures": {
            kind: {
                "times": sum(run.failures[kind] for run in runs),
                "runs": Share(sum(run.failures[kind] > 0 for run in runs), len(runs)).as_json(),
            }
            for kind in kinds
        },
        "any_failure": Share(sum(run.failures.total() > 0 for run in runs), len(runs)).as_json(),
        "sessions": [run.session for run in runs[:5]],
    }


def _middle(values: Iterable[float | None]) -> dict[str, Any]:
    """Median, mean and sum of what is known, and of how many that is."""
    known = [value for value in values if value is not None]
    if not known:
        return {"known": 0, "median": None, "mean": None, "sum": None}
    return {
        "known": len(known),
        "median": round(statistics.median(known), 6),
        "mean": round(statistics.fmean(known), 6),
        "sum": round(sum(known), 6),
    }


def _compared(one: list[Run], several: list[Run]) -> dict[str, Any]:
    """Several against one, task by task; and whether so few runs can tell anything."""
    ratios: dict[str, Any] = {}
    for name in ("cost_usd", "tokens", "seconds", "model_calls", "tool_calls"):
        each = list(_ratios(one, several, name))
        ratios[name] = {"tasks": len(each), "median": round(statistics.median(each), 3) if each else None}
    left, right = (_known(runs) for runs in (one, several))
    if min(left.of, right.of) < FEW:
        verdict = f"too few runs with a known end to tell: {left.of} of one agent, {right.of} of several"
    elif left.interval()[0] > right.interval()[1] or right.interval()[0] > left.interval()[1]:
        better = "one agent" if (left.value or 0) > (right.value or 0) else "several agents"
        verdict = f"{better} completed more, and the intervals do not overlap"
    else:
        verdict = "no difference in completion shown: the intervals overlap"
    return {"several_to_one": ratios, "verdict": verdict}


def _known(runs: list[Run]) -> Share:
    ends = [run.outcome for run in runs if run.outcome is not None]
    return Share(ends.count("completed"), len(ends))


def _ratios(one: list[Run], several: list[Run], name: str) -> Iterator[float]:
    """For each task that both did: the mean of several over the mean of one."""
    for task in sorted({run.task for run in one}):
        means = []
        for runs in (one, several):
            values = [getattr(run, name) for run in runs if run.task == task]
            known = [float(value) for value in values if value is not None]
            means.append(statistics.fmean(known) if known else None)
        if means[0] and means[1] is not None:
            yield means[1] / means[0]

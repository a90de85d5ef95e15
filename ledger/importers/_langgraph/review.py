"""Questions that a graph stopped to ask, and the answers it was resumed with. Reads rows; makes no events."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ledger.events.canonical import canonical_json
from ledger.importers._langgraph.messages import ToolRequest, text_or_none
from ledger.importers._langgraph.saver import NULL_TASK, Write
from ledger.importers._langgraph.values import Constructed, plain
from ledger.protocols.interrupts import Action, Outcome, actions_in, edited_in, matching, verdict

INTERRUPT, RESUME, ERROR, TASKS = "__interrupt__", "__resume__", "__error__", "__pregel_tasks"
"""Channels in which tasks say how they ended."""


class Question(NamedTuple):
    """One action that somebody was asked about."""

    approval_id: str
    """The interrupt's own id; with a number where one interrupt asks about several actions."""
    place: int
    """Which action of its interrupt it is about."""
    tool: str | None
    """Tool it is about, where the question says so."""
    call_id: str | None
    """Call it is about."""
    arguments: Any
    """Arguments shown; None when the question shows none."""
    shown: Any
    """The whole question."""
    task: str
    """Task that asked."""


class Answer(NamedTuple):
    """One answer to one question."""

    approval_id: str
    """The question, or a name of its own when it came second."""
    question: Question | None
    """The question, where the rows still hold it."""
    outcome: Outcome
    """What was decided."""
    how: str
    """The decision in the source's words, or what it was when it was no word."""
    edited: Any
    """Arguments that the answer put in place of those asked about; None when it did not."""
    value: Any
    """The whole value."""
    task: str
    """Task that took it; the null task when none did."""

    @property
    def digest(self) -> str:
        """A short name of the value, the same on every import."""
        return _mark(self.value)


@dataclass
class Review:
    """What the rows after one checkpoint say about questions."""

    asked: list[Question] = field(default_factory=list)
    """Questions, in order."""
    taken: list[Answer] = field(default_factory=list)
    """Answers that a task took, in order."""
    pending: list[Answer] = field(default_factory=list)
    """Answers that no task has taken, while none was taken before."""
    second: list[Answer] = field(default_factory=list)
    """Answers given after another one had been taken: the rows keep the last of them."""
    passed: list[Write] = field(default_factory=list)
    """Questions and answers that a sub-graph tells itself."""


class Rows(NamedTuple):
    """The rows of one task, decoded."""

    interrupts: list[Any]
    answers: list[Any]
    finished: bool
    asked_by: Write | None


def reviewed(
    writes: Sequence[Write],
    values: Mapping[tuple[str, int], Any],
    calls: Sequence[ToolRequest],
    below: Mapping[str, list[Any]],
) -> Review:
    """What the rows after a checkpoint say.

    `values` holds decoded values by task and place, `calls` the calls that wait for a result, `below` the answers
    in sub-graphs by the task that ran them.
    """
    review = Review()
    tasks: dict[str, Rows] = {}
    for write in writes:
        value = values.get((write.task, write.place))
        rows = tasks.get(write.task) or Rows([], [], False, None)
        if write.channel == INTERRUPT:
            rows = rows._replace(interrupts=value if isinstance(value, list) else [value], asked_by=write)
        elif write.channel == RESUME:
            rows = rows._replace(answers=value if isinstance(value, list) else [value])
        elif write.place >= 0:
            rows = rows._replace(finished=True)
        tasks[write.task] = rows
    given = next((write for write in writes if write.task == NULL_TASK and write.channel == RESUME), None)
    consumed: list[Any] = [answer for answers in below.values() for answer in answers]
    for task, rows in tasks.items():
        if task == NULL_TASK:
            continue
        consumed.extend(rows.answers)
        if task in below:
            review.passed.extend([rows.asked_by] if rows.asked_by is not None else [])
        else:
            _read_task(review, task, rows, calls)
    if given is not None:
        _read_given(review, values.get((given.task, given.place)), consumed, bool(below), given)
    return review


def _read_task(review: Review, task: str, rows: Rows, calls: Sequence[ToolRequest]) -> None:
    """A task's interrupt row holds its last question only; its answers are all there."""
    current = len(rows.answers) - 1 if rows.finished and rows.answers else len(rows.answers)
    questions: list[Question] = []
    for index, interrupt in enumerate(rows.interrupts):
        questions.extend(_questions(interrupt, f"{task}:{current + index}", task, calls))
    review.asked.extend(questions)
    for index, value in enumerate(rows.answers):
        if index == current and questions:
            review.taken.extend(_answers(questions, value, task))
        else:
            review.taken.append(_answer(f"{task}:{index}", None, value, value, task))


def _read_given(review: Review, value: Any, consumed: list[Any], in_subgraph: bool, row: Write) -> None:
    """The answer that the graph was resumed with last, as it was given."""
    known = {canonical_json(plain(answer)) for answer in consumed}
    if canonical_json(plain(value)) in known:
        return
    if consumed:
        found = (
            _answers(review.asked, value, NULL_TASK)
            if review.asked
            else [_answer("interrupt", None, value, value, NULL_TASK)]
        )
        mark = _mark(value)
        review.second.extend(answer._replace(approval_id=f"{answer.approval_id}/{mark}") for answer in found)
    elif in_subgraph:
        review.passed.append(row)
    elif review.asked:
        review.pending.extend(_answers(review.asked, value, NULL_TASK))
    else:
        review.pending.append(_answer(f"{NULL_TASK}:0", None, value, value, NULL_TASK))


def _mark(value: Any) -> str:
    """A short name of a value, the same on every import."""
    return hashlib.sha256(canonical_json(plain(value))).hexdigest()[:8]


def _questions(interrupt: Any, name: str, task: str, calls: Sequence[ToolRequest]) -> Iterator[Question]:
    fields = interrupt.fields if isinstance(interrupt, Constructed) else interrupt
    fields = fields if isinstance(fields, dict) else {"value": fields}
    shown = plain(fields.get("value"))
    name = text_or_none(fields.get("id")) or text_or_none(fields.get("interrupt_id")) or name
    actions = actions_in(shown)
    left = list(calls)
    for place, (tool, call_id, arguments) in enumerate(actions or [Action(None, None, None)]):
        call = matching(tool, call_id, arguments, left)
        if call is not None:
            left.remove(call)
            tool, call_id = tool or call.tool, call.call_id
        single = f"{name}.{place}" if len(actions) > 1 else name
        yield Question(single, place, tool, call_id, arguments, shown, task)


def _answers(questions: Sequence[Question], value: Any, task: str) -> Iterator[Answer]:
    data = plain(value)
    decisions = data.get("decisions") if isinstance(data, dict) else data
    for question in questions:
        one = data
        if isinstance(decisions, list) and question.place < len(decisions):
            one = decisions[question.place]
        yield _answer(question.approval_id, question, one, value, task)


def _answer(name: str, question: Question | None, one: Any, value: Any, task: str) -> Answer:
    one = plain(one)
    outcome, how = verdict(one)
    return Answer(name, question, outcome, how, edited_in(one), plain(value), task)

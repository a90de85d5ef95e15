"""Questions and answers as events: what was asked, what was decided, and which calls may run under it."""

from collections.abc import Iterator

from ledger.events import Sibling
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.keeping import SourceKept
from ledger.importers import Item
from ledger.importers._langgraph.branch import Branch
from ledger.importers._langgraph.results import Grant
from ledger.importers._langgraph.review import Answer, Question, Review
from ledger.importers._langgraph.scribe import Scribe, Step


def asked_key(step: Step, question: Question) -> str:
    """Item that holds a question."""
    return f"asked:{step.id}:{question.approval_id}"


def answer_key(step: Step, answer: Answer) -> str:
    """Item that holds an answer: the same whether a task has taken it yet or not."""
    return f"answered:{step.id}:{answer.approval_id}:{answer.digest}"


def asked(scribe: Scribe, step: Step, review: Review) -> Iterator[Item]:
    """The questions."""
    for question in review.asked:
        keep = scribe.desk.keep
        event = ApprovalAsked(
            approval_id=question.approval_id,
            call_id=question.call_id,
            tool=question.tool,
            arguments_digest=None
            if question.arguments is None
            else keep.json(question.arguments, "arguments").digest,
            context=keep.json(question.shown, "question"),
        )
        draft = scribe.draft(event, step.id, time=step.time, actor="system")
        yield scribe.item(asked_key(step, question), [draft], step.line)


def decided(scribe: Scribe, step: Step, answers: list[Answer], origin: str | None = None) -> Iterator[Item]:
    """The answers, each with the value that the graph was resumed with. `origin`: the session with the questions."""
    for answer in answers:
        keep, question = scribe.desk.keep, answer.question
        arguments = answer.edited
        if arguments is None and question is not None:
            arguments = question.arguments
        event = ApprovalDecided(
            approval_id=answer.approval_id,
            call_id=None if question is None else question.call_id,
            outcome=answer.outcome,
            decided_by="unknown",
            how=answer.how,
            scope="once",
            arguments_digest=None if arguments is None else keep.json(arguments, "arguments").digest,
        )
        value = SourceKept(
            native_type="write:__resume__", recognized=True, body=keep.json(answer.value, "answer")
        )
        cause = None
        if question is not None:
            known = scribe.desk.lookup(origin or scribe.session, asked_key(step, question))
            if known is not None:
                cause = known.seq if origin is None else f"{origin}#{known.seq}"
        drafts = [
            scribe.draft(event, step.id, cause=cause),
            scribe.draft(value, step.id, cause=Sibling(0)),
        ]
        yield scribe.item(answer_key(step, answer), drafts, step.line)


def grant(branch: Branch, session: str, step: Step, review: Review) -> None:
    """Note which calls may run under which answer."""
    for answer in review.taken:
        if answer.question is not None and answer.question.call_id is not None:
            branch.granted[answer.question.call_id] = Grant(
                answer.approval_id,
                answer.outcome,
                answer.how,
                answer.task,
                session,
                answer_key(step, answer),
            )

"""How a session of a graph begins: of itself, for another graph, or as a fork of one that went on."""

from collections.abc import Iterator

from ledger.events.recovery import BranchOpened
from ledger.events.session import SessionForked, SessionStarted
from ledger.importers import Item
from ledger.importers._langgraph.approvals import asked_key
from ledger.importers._langgraph.branch import Branch
from ledger.importers._langgraph.delegations import Found
from ledger.importers._langgraph.review import Review
from ledger.importers._langgraph.scribe import FORMAT, Scribe, Step
from ledger.importers._langgraph.values import as_text


def _started(branch: Branch, step: Step, found: Found | None) -> SessionStarted:
    namespace = as_text(step.key.namespace)
    return SessionStarted(
        harness=FORMAT,
        agent=step.agent or namespace.rpartition("|")[2].partition(":")[0] or None,
        parent=None if found is None or not found.owner else found.owner,
        parent_call=None if found is None else found.call_id,
    )


def start_item(branch: Branch, step: Step, found: Found | None) -> Item:
    """The start of a graph, or of a sub-graph that another one ran."""
    draft = branch.scribe.draft(_started(branch, step, found), step.id, time=step.time)
    return branch.scribe.item("started", [draft], step.line)


def fork_items(branch: Branch, step: Step, last: Step, origin: str, review: Review) -> Iterator[Item]:
    """The start of a fork, and the note about it in the session that it leaves.

    What both share ends with the checkpoint and the questions that were open there.
    """
    scribe = branch.scribe
    keys = [f"checkpoint:{last.id}", *(asked_key(last, question) for question in review.asked)]
    shared = [known.seq for key in keys if (known := scribe.desk.lookup(origin, key)) is not None]
    at_seq = max(shared) if shared else None
    forked = SessionForked(origin=origin, origin_seq=at_seq, origin_item=last.id)
    drafts = [
        scribe.draft(_started(branch, step, None), step.id, time=step.time),
        scribe.draft(forked, step.id, time=step.time),
    ]
    if at_seq is not None:
        opened = Scribe(scribe.desk, origin, scribe.thread, last.agent, scribe.depth)
        event = BranchOpened(branch=scribe.session, at_seq=at_seq)
        draft = opened.draft(event, step.id, time=step.time)
        yield opened.item(f"opened:{scribe.session}", [draft], step.line)
    yield scribe.item("started", drafts, step.line)

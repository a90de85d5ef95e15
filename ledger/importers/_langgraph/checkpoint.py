"""A checkpoint as a place to return to, with all of its state that is no message; and rows that nothing else tells."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ledger.events import Draft
from ledger.events.canonical import canonical_json
from ledger.events.keeping import SourceKept
from ledger.events.recovery import CheckpointTaken
from ledger.events.tool_call import ToolCallSettled
from ledger.importers import Item
from ledger.importers._langgraph.branch import Branch
from ledger.importers._langgraph.messages import Message
from ledger.importers._langgraph.pending import Pending, sent_call
from ledger.importers._langgraph.results import used
from ledger.importers._langgraph.saver import Damaged, Write, decoded
from ledger.importers._langgraph.scribe import Scribe, Step
from ledger.importers._langgraph.values import Decoder, plain


def checkpoint_items(
    branch: Branch, step: Step, lists: Mapping[str, Sequence[Message]], claim: str
) -> Iterator[Item]:
    """The checkpoint, and what of it could not be read."""
    scribe = branch.scribe
    shape = {channel: [message.ref.digest for message in lists[channel]] for channel in sorted(lists)}
    values = {name: plain(value) for name, value in step.values.items() if name not in lists}
    body = {name: value for name, value in step.body.items() if name != "channel_values"}
    whole = {"checkpoint": plain(body), "metadata": step.saved.metadata}
    check = canonical_json(whole | {"messages": shape, "values": values})
    changed = {name: value for name, value in values.items() if _is_new(branch, name, value)}
    kept = scribe.desk.keep.json(
        whole
        | {"values": changed, "unchanged": sorted(values.keys() - changed.keys())}
        | {"messages": {channel: len(shape[channel]) for channel in shape}},
        "checkpoint",
    )
    lane = branch.lanes.get("messages") or next(iter(branch.lanes.values()), None)
    number = step.metadata.get("step")
    event = CheckpointTaken(
        checkpoint_id=step.id,
        context=None if lane is None else lane.chain.head,
        label=f"{step.source} {number}" if isinstance(number, int) else step.source,
    )
    draft = scribe.draft(event, step.id, time=step.time, actor="system", rest=kept)
    yield scribe.item(f"checkpoint:{step.id}", [draft], step.line, check=check, claim=claim)
    for index, part in enumerate(step.saved.damaged):
        yield _damage(scribe, f"damage:{step.id}:{index}", step.id, step.line, part)


def _is_new(branch: Branch, name: str, value: Any) -> bool:
    """Whether a channel holds something else than at the last checkpoint that was kept here."""
    digest = hashlib.sha256(canonical_json(value)).digest()
    if branch.kept.get(name) == digest:
        return False
    branch.kept[name] = digest
    return True


def _damage(scribe: Scribe, key: str, native: str, line: int, part: Damaged) -> Item:
    event = scribe.desk.damage(line, part.reason, part.content)
    return scribe.item(key, [scribe.draft(event, native)], line)


def damaged_writes(branch: Branch, step: Step, pending: Pending) -> Iterator[Item]:
    """Rows after a checkpoint whose values we may not or cannot read."""
    for write, part in pending.damaged:
        key = f"damage:{step.id}:{write.task}:{write.place}"
        yield _damage(branch.scribe, key, step.id, step.line, part)


def failure_items(branch: Branch, step: Step, pending: Pending) -> Iterator[Item]:
    """Tasks that ended with an error; a tool call that one of them was to run has failed."""
    scribe = branch.scribe
    for write, text in pending.failures():
        drafts: list[Draft] = []
        call_id = sent_call(step, write.path)
        if call_id is not None and branch.knows(call_id):
            grant = branch.granted.get(call_id)
            if grant is not None:
                drafts.append(used(scribe, step, grant, call_id))
            event = ToolCallSettled(
                call_id=call_id,
                outcome="failed",
                error=scribe.desk.keep.scalar(text, "error")[:500],
                details=scribe.desk.keep.text(text, "error"),
            )
            drafts.append(scribe.draft(event, step.id, actor="system"))
        drafts.append(_kept(scribe, step.id, write, text, "write:__error__"))
        cause = branch.call_item(call_id) if call_id is not None else None
        yield scribe.item(f"error:{step.id}:{write.task}", drafts, step.line, cause=cause)


def left_over(
    branch: Branch, step: Step, lists: Mapping[str, Sequence[Message]], before: Pending
) -> Iterator[Item]:
    """What tasks wrote and the next checkpoint does not show."""
    writes = before.others()
    if not writes:
        return
    shown = {canonical_json(plain(value)) for name, value in step.values.items() if name not in lists}
    identities = {message.identity for messages in lists.values() for message in messages}
    results = {message.call_id for messages in lists.values() for message in messages}
    for write in writes:
        messages = before.messages.get((write.task, write.place))
        if messages is not None and all(
            message.kind == "remove"
            or message.id is None
            or message.identity in identities
            or (message.call_id is not None and message.call_id in results)
            for message in messages
        ):
            continue
        value = plain(before.values[write.task, write.place])
        if messages is None and (canonical_json(value) in shown or _is_part(value, step, write.channel)):
            continue
        draft = _kept(branch.scribe, step.id, write, value, "write")
        key = f"write:{step.id}:{write.task}:{write.place}"
        yield branch.scribe.item(key, [draft], step.line)


def _is_part(value: Any, step: Step, channel: str) -> bool:
    """Whether a channel that collects holds what was written to it."""
    held = plain(step.values.get(channel))
    if isinstance(held, list):
        items = {canonical_json(item) for item in held}
        return all(canonical_json(item) in items for item in (value if isinstance(value, list) else [value]))
    if isinstance(held, dict) and isinstance(value, dict):
        return all(name in held and held[name] == value[name] for name in value)
    return False


def waiting_items(branch: Branch, last: Step, pending: Pending) -> Iterator[Item]:
    """What tasks wrote that no checkpoint has taken up yet."""
    yield from branch.ahead(last, pending.messages, pending.authors)
    for write in pending.others():
        if (write.task, write.place) not in pending.messages:
            value = plain(pending.values[write.task, write.place])
            draft = _kept(branch.scribe, last.id, write, value, "write")
            yield branch.scribe.item(f"write:{last.id}:{write.task}:{write.place}", [draft], last.line)


def stray_items(
    scribe: Scribe, namespace: str, checkpoint: str, write: Write, decoder: Decoder
) -> Iterator[Item]:
    """A write whose checkpoint is not in the database."""
    damaged: list[Damaged] = []
    line = scribe.desk.tally.lines
    value = decoded(decoder, write.kind, write.value, "write", damaged)
    name = f"{namespace}:{checkpoint}:{write.task}:{write.place}"
    if damaged:
        yield _damage(scribe, f"damage:{name}", checkpoint, line, damaged[0])
        return
    draft = _kept(scribe, checkpoint, write, plain(value), "write without checkpoint")
    yield scribe.item(f"stray:{name}", [draft], line)


def _kept(scribe: Scribe, native: str, write: Write, value: Any, native_type: str) -> Draft:
    row = {"channel": write.channel, "task": write.task, "path": write.path, "place": write.place}
    body = scribe.desk.keep.json(row | {"value": value}, "write")
    return scribe.draft(SourceKept(native_type=native_type, recognized=True, body=body), native)

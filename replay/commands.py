"""The commands `state`, `diff` and `request`: any moment, what changed, the model request as it was sent."""

import sys
from typing import Annotated, Any

import typer

from ledger.cli.settings import JsonOption, SessionArgument, settings_of
from ledger.cli.terminal import amount, cut, json_text, say, show_json, visible, width
from replay.cli import diff_json, request_json, state_json
from replay.context import rebuild_raw

_MESSAGES = 6
_ENTRIES = 8
_CHANGES = 40
_PARTS = (
    "constraints",
    "artifacts",
    "open_calls",
    "open_model_calls",
    "approvals",
    "budget",
    "modes",
    "files",
    "outside",
    "checkpoints",
    "delegations",
    "abandoned_calls",
)


def add_replay_commands(app: typer.Typer) -> None:
    """Add this file's commands."""
    app.command("state", epilog="Example: loopledger state 3f2a --at 120")(state_command)
    app.command("diff", epilog="Example: loopledger diff 3f2a 100 120")(diff_command)
    app.command("request", epilog="Example: loopledger request 3f2a 17 --body > request.json")(
        request_command
    )


def state_command(
    context: typer.Context,
    session: SessionArgument,
    at: Annotated[
        int | None, typer.Option("--at", metavar="SEQ", help="After this record; by default the last.", min=0)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a session as it stood after a record: conversation, rules, open calls, approvals, budget, files."""
    with settings_of(context).open_existing() as ledger:
        state = state_json(ledger, session, at)
    if as_json:
        show_json(state)
    else:
        _show_state(state)


def diff_command(
    context: typer.Context,
    session: SessionArgument,
    first: Annotated[int, typer.Argument(metavar="A", help="Seq of one state.", min=0, show_default=False)],
    second: Annotated[int, typer.Argument(metavar="B", help="Seq of the other.", min=0, show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Show what changed from one seq to another, and which record changed it."""
    with settings_of(context).open_existing() as ledger:
        changes = diff_json(ledger, session, first, second)
    if as_json:
        show_json(changes)
        return
    for change in changes[:_CHANGES]:
        _show_change(change)
    if len(changes) > _CHANGES:
        say(f"… and {len(changes) - _CHANGES} more; --json lists them")
    if not changes:
        say("nothing changed")


def request_command(
    context: typer.Context,
    session: SessionArgument,
    seq: Annotated[
        int, typer.Argument(metavar="SEQ", help="A record of the call.", min=1, show_default=False)
    ],
    body: Annotated[bool, typer.Option("--body", help="Print only the request body, as JSON.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print the bytes of the body as they were sent, without secrets.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Rebuild a model request as it was sent, as far as it was seen."""
    with settings_of(context).open_existing() as ledger:
        if raw:
            sys.stdout.buffer.write(rebuild_raw(ledger.store, ledger.store.resolve(session), seq))
            return
        request = request_json(ledger, session, seq)
    if body:
        show_json(request["body"])
    elif as_json:
        show_json(request)
    else:
        _show_request(request)


# -- for people ------------------------------------------------------------------------------------------------------


def _show_state(state: dict[str, Any]) -> None:
    say(f"{visible(state['session'])} after record {state['seq']}", bold=True)
    _line("digest", state["digest"][:32] + "…")
    for name in ("harness", "agent", "model", "outcome"):
        if state.get(name) is not None:
            _line(name, state[name])
    usage = state["usage"]
    tokens = ", ".join(
        f"{name.replace('_', ' ')} {amount(count)}"
        for name, count in usage["tokens"].items()
        if count is not None
    )
    _line(
        "usage",
        f"{usage['model_calls']} model calls, {usage['tool_calls']} tool calls; {tokens or 'no tokens told'}",
    )
    offered = state["tools"]["offered_names"]
    if offered:
        _line("tools", ", ".join(offered))
    for name in _PARTS:
        if state.get(name):
            _show_part(name.replace("_", " "), state[name])
    seen = state["context_completeness"]
    note = "" if seen in ("body", "messages") else f" (what the source shows: {seen})"
    say(f"\n{len(state['context'])} messages in context{note}", bold=True)
    _show_messages(state["context"], len(state["context"]) - _MESSAGES)


def _show_part(name: str, entries: dict[str, Any]) -> None:
    say(f"\n{len(entries)} {name}", bold=True)
    for key, entry in list(entries.items())[-_ENTRIES:]:
        told = entry if not isinstance(entry, dict) else _told(entry)
        say(cut(f"  {key}  {told}", width()))


def _told(entry: dict[str, Any]) -> str:
    """The short facts of an entry; digests say nothing to people."""
    words = [
        f"{name} {value}"
        for name, value in entry.items()
        if value is not None and not (isinstance(value, str) and len(value) == 64 and value.isalnum())
    ]
    return ", ".join(words)


def _show_messages(messages: list[Any], first: int) -> None:
    if first > 0:
        say(f"  … {first} before")
    for index, message in enumerate(messages):
        if index >= first:
            say(cut(f"  {index:>4} {_role(message):<10} {_text(message)}", width()))


def _role(message: Any) -> str:
    role = message.get("role") or message.get("type") if isinstance(message, dict) else None
    return str(role or "-")[:10]


def _text(message: Any) -> str:
    """The words of a message, or what stands in their place."""
    content = message.get("content", message.get("parts")) if isinstance(message, dict) else message
    if isinstance(content, str):
        return " ".join(content[:1000].split())
    if content is None and isinstance(message, dict):
        content = [{name: value for name, value in message.items() if name != "role"}]
    if not isinstance(content, list):
        return json_text(content)[:1000]
    return " ".join(_block(block) for block in content[:20])


def _block(block: Any) -> str:
    if isinstance(block, str):
        return block[:500]
    if isinstance(block, dict):
        text = block.get("text") or block.get("thinking")
        if isinstance(text, str):
            return " ".join(text[:500].split())
        if isinstance(name := block.get("name"), str):
            return f"[calls {name}]"
        if isinstance(kind := block.get("type"), str):
            inner = block.get("content", block.get("output"))
            return f"[{kind}] {inner if isinstance(inner, str) else json_text(inner)}"[:500]
    return json_text(block)[:500]


def _show_change(change: dict[str, Any]) -> None:
    sign = {"add": "+", "remove": "-", "replace": "~"}[change["op"]]
    line = f"{sign} {change['path']}  "
    if change["op"] == "replace":
        line += f"{json_text(change['old'])[:200]} -> {json_text(change['new'])[:200]}"
    else:
        line += json_text(change["new"] if change["op"] == "add" else change["old"])[:500]
    say(f"#{change['seq']:<6} " + cut(line, width() - 8))


def _show_request(request: dict[str, Any]) -> None:
    say(f"{visible(request['session'])}#{request['seq']}  model request", bold=True)
    for name in ("call_id", "purpose", "protocol", "model"):
        if request[name] is not None:
            _line(name, request[name])
    _line("shows", _completeness(request))
    if request["not_seen"]:
        _line("not seen", ", ".join(request["not_seen"]))
    if request["system"] is not None:
        _line("system", _text({"content": request["system"]}))
    if isinstance(request["tools"], list):
        _line("tools", f"{len(request['tools'])} schemas")
    if request["parameters"]:
        _line("parameters", json_text(request["parameters"]))
    say(f"\n{len(request['messages'])} messages", bold=True)
    _show_messages(request["messages"], len(request["messages"]) - 2 * _MESSAGES)


def _completeness(request: dict[str, Any]) -> str:
    if request["completeness"] == "body" and request["not_seen"]:
        return "the body, but for what was not seen"
    match request["completeness"], request["body_matches"]:
        case "body", True if request["raw_matches"]:
            return "the whole body, byte for byte; it has the digests that were recorded"
        case "body", True:
            return "the whole body; it has the digest that was recorded"
        case "body", False:
            return "the whole body; it does NOT have the digest that was recorded"
        case "body", _:
            return "the whole body"
        case "messages", _:
            return "all messages, not the whole body"
        case "partial", _:
            return "some of the request"
    return "nothing of the request"


def _line(name: str, value: object) -> None:
    say(cut(f"  {name:<10} {value}", width()))

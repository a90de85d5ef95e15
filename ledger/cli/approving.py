"""The commands `approvals`, `approve`, `deny`, `hold` and `release`: a person's say, from any process."""

import getpass
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import Annotated, Any, Literal, cast, get_args

import orjson
import typer
from pydantic import ValidationError

from ledger.audit import CANNOT_SEE, ApprovalCheck, Finding
from ledger.capture.gates.deciding import Told, Verdict, decide, hold, release
from ledger.capture.gates.questions import Question
from ledger.cli.settings import BAD_NEWS, ByOption, JsonOption, ReasonOption, SessionArgument, settings_of
from ledger.cli.terminal import Column, Table, json_text, say, show_json, visible
from ledger.effects.covering import is_after
from ledger.effects.loop_policy import ApprovalRule, Scope, seconds_of
from ledger.errors import ContentMissingError, InputError
from ledger.events import ContentRef, Record
from ledger.events.canonical import decode_json
from ledger.events.session import SessionForked
from ledger.home import Ledger
from ledger.store import EventStore
from ledger.views.approvals import ApprovalsView

_SHORT = 12
_MOST_AT_ONCE = 10
_HARMLESS = ("info", "low")

ApprovalArgument = Annotated[
    str,
    typer.Argument(
        metavar="APPROVAL", help="Id of a question, or the unambiguous start of one.", show_default=False
    ),
]


def add_approval_commands(app: typer.Typer) -> None:
    """Add this file's commands."""
    app.command("approvals", epilog="Example: loopledger approvals --json | jq '.[].id'")(approvals_command)
    app.command("approve", epilog="Example: loopledger approve 3f2a --scope session --expires 2h")(
        approve_command
    )
    app.command("deny", epilog="Example: loopledger deny 3f2a --reason 'not to this address'")(deny_command)
    app.command("hold", epilog="Example: loopledger hold 3f2a --reason 'it loops'")(hold_command)
    app.command("release", epilog="Example: loopledger release 3f2a")(release_command)


def approvals_command(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Those that are decided, too.")] = False,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="SESSION",
            help="Look at a session for calls that ran under no good answer; exit with 1 when there are any.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the questions that loops wait for, or check how a session kept to the answers."""
    if check is not None:
        _check(context, check, as_json)
        return
    with settings_of(context).open_existing() as ledger:
        found = _queue(ledger, everything)
        if as_json:
            show_json([_as_json(ledger, question) for question in found])
            return
        if not found:
            say("nobody waits for an answer")
            return
        table = Table(
            [Column("APPROVAL", _SHORT), Column("ASKED", 19), Column("STATUS", 9), Column("ABOUT", 0)]
        )
        for question in found:
            asked = question.asked
            about = f"{asked.tool or '-'} {_arguments(ledger, question)}  in {question.session[:13]}"
            time = question.asked_at[:19].replace("T", " ")
            table.row(asked.approval_id[:_SHORT], time, status_of(ledger, question), about)


def _queue(ledger: Ledger, everything: bool) -> list[Question]:
    """What waits, or all that loops ever asked the ledger about, first asked first."""
    with ApprovalsView(ledger.home, ledger.store) as view:
        view.catch_up()
        rows = [row for row in view.rows() if row.is_queued] if everything else view.open_rows()
        return list(view.questions(rows))


def _check(context: typer.Context, name: str, as_json: bool) -> None:
    with settings_of(context).open_existing() as ledger:
        found = findings_of(ledger.store, ledger.store.resolve(name))
    if as_json:
        show_json({"findings": [finding.as_json() for finding in found], "cannot_see": list(CANNOT_SEE)})
    else:
        for finding in found:
            seen = ", ".join([*map(str, finding.witnesses), *finding.elsewhere])
            say(f"{finding.severity:<8} {finding.detector}  seq {visible(seen)}")
            say(f"         {visible(finding.message)}")
        if not found:
            say("no call ran under no good answer, as far as the records show")
        say("this check cannot see:")
        for text in CANNOT_SEE:
            say(f"  - {text}")
    if any(finding.severity not in _HARMLESS for finding in found):
        raise typer.Exit(BAD_NEWS)


def findings_of(store: EventStore, session: str) -> list[Finding]:
    """What a check of a session finds; one that was forked is checked on what it goes on from, too."""
    parts: list[Iterator[Record]] = []
    seen = {session}
    later = session
    while (fork := next(store.read(later, names=(SessionForked.TYPE,)), None)) is not None:
        event = fork.event
        if not isinstance(event, SessionForked) or event.runs_again or event.origin in seen:
            break
        later = event.origin
        seen.add(later)
        parts.append(store.read(later, upto=event.origin_seq))
    check = ApprovalCheck(chain.from_iterable(reversed(parts)), content=store.content)
    for record in store.read(session):
        check.take(record)
    return check.findings()


def approve_command(
    context: typer.Context,
    approval: ApprovalArgument,
    scope: Annotated[
        str, typer.Option("--scope", help="How far it reaches: once, session or rule.")
    ] = "once",
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule",
            metavar="JSON",
            help='With --scope rule: the full rule, such as {"tool": "send_*", "when": {"/to": "a@b.org"}}.',
            show_default=False,
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires", metavar="SPAN", help="How long it counts, such as 15m or 8h.", show_default=False
        ),
    ] = None,
    by: ByOption = None,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say yes to a question; the loop that waits goes on."""
    if scope not in get_args(Scope):
        raise InputError(f"expected a scope of {', '.join(get_args(Scope))}, found {scope!r}")
    if (rule is not None) != (scope == "rule") and rule is not None:
        raise InputError("--rule goes with --scope rule")
    given = None if rule is None else rule_of(rule)
    _decide(context, approval, "approved", cast(Scope, scope), given, expires, by, reason, as_json)


def deny_command(
    context: typer.Context,
    approval: ApprovalArgument,
    by: ByOption = None,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say no to a question; the call that waits is not run."""
    _decide(context, approval, "denied", "once", None, None, by, reason, as_json)


def _decide(
    context: typer.Context,
    name: str,
    outcome: Literal["approved", "denied"],
    scope: Scope,
    rule: ApprovalRule | None,
    expires: str | None,
    by: str | None,
    reason: str | None,
    as_json: bool,
) -> None:
    with settings_of(context).open_existing() as ledger:
        question = _find(ledger, name)
        expires_at = until(ledger.recorder.clock(), expires or lasts_of(ledger, question, scope))
        verdict = Verdict(outcome, by or getpass.getuser(), scope, rule, reason, expires_at)
        told = decide(ledger.recorder, question.session, question.asked.approval_id, verdict)
        if as_json:
            show_json({**_as_json(ledger, told.question), "counts": told.counts, "branch": told.branch})
        else:
            _say_told(told, outcome)
    if not told.counts:
        raise typer.Exit(BAD_NEWS)


def _say_told(told: Told, outcome: str) -> None:
    asked, decided = told.question.asked, told.question.decided
    assert decided is not None
    what = visible(asked.tool or asked.approval_id)
    if told.counts:
        say(f"{outcome}: {what} in session {visible(told.question.session)}")
        return
    who = decided.decider or decided.decided_by
    say(
        f"{what} was decided before: {decided.outcome} by {visible(who)} at {told.question.decided_at}"
        f" (scope {decided.scope}); that answer stands"
    )
    if told.branch is not None:
        say(f"your answer is kept in the branch {visible(told.branch)}")


def _find(ledger: Ledger, name: str) -> Question:
    with ApprovalsView(ledger.home, ledger.store) as view:
        view.catch_up()
        rows = view.named(name, _MOST_AT_ONCE + 1) if name else []
        found = list(view.questions(rows))
    exact = [question for question in found if question.asked.approval_id == name]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        raise InputError(
            f"no question has an id that starts with {name!r}; `loopledger approvals` lists them"
        )
    some = ", ".join(question.asked.approval_id for question in found[:_MOST_AT_ONCE])
    raise InputError(f"{name!r} is the start of several questions: {some}; give more of it")


def rule_of(text: str, name: str = "--rule") -> ApprovalRule:
    """The rule that a person wrote as JSON; calls that it fits need no yes. Raises InputError, by the name given."""
    try:
        return ApprovalRule.model_validate({"ask": False, **orjson.loads(text)})
    except (orjson.JSONDecodeError, TypeError) as error:
        raise InputError(f"{name}: expected a JSON object with a rule, found {text[:80]!r}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(str(step) for step in first["loc"])
        raise InputError(f"{name}: {place}: {first['msg']}") from error


def lasts_of(ledger: Ledger, question: Question, scope: Scope) -> str | None:
    """How long the rule that asked lets an answer of a wider scope count."""
    if scope == "once" or question.asked.rule is None:
        return None
    lasts = decode_json(ledger.store.content(question.asked.rule.digest)).get("lasts")
    return None if lasts is None else str(lasts)


def until(now: str, span: str | None, name: str = "--expires") -> str | None:
    """The time at the end of a span such as 15m. Raises InputError, by the name given."""
    if span is None:
        return None
    try:
        moment = datetime.fromisoformat(now) + timedelta(seconds=seconds_of(span))
    except (ValueError, OverflowError) as error:
        raise InputError(f"{name}: {error}") from error
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def status_of(ledger: Ledger, question: Question) -> str:
    """How a question stands, in one word."""
    if question.decided is not None:
        return "used" if question.used and question.is_approved else question.decided.outcome
    return "lapsed" if is_after(ledger.recorder.clock(), question.asked.expires_at) else "open"


def _as_json(ledger: Ledger, question: Question) -> dict[str, Any]:
    asked, decided = question.asked, question.decided
    return {
        "id": asked.approval_id,
        "session": question.session,
        "seq": question.asked_seq,
        "agent": question.agent,
        "status": status_of(ledger, question),
        "tool": asked.tool,
        "call_id": asked.call_id,
        "target": asked.target,
        "arguments_digest": asked.arguments_digest,
        "context": content_of(ledger, asked.context),
        "rule": content_of(ledger, asked.rule),
        "policy_version": asked.policy_version,
        "asked_at": question.asked_at,
        "expires_at": asked.expires_at,
        "scopes": list(asked.scopes),
        "deciders": list(asked.deciders),
        "used": question.used,
        "decided": None
        if decided is None
        else {
            "outcome": decided.outcome,
            "by": decided.decider or decided.decided_by,
            "at": question.decided_at,
            "seq": question.decided_seq,
            "scope": decided.scope,
            "expires_at": decided.expires_at,
            "rule": content_of(ledger, decided.rule),
            "rule_digest": None if decided.rule is None else decided.rule.digest,
            "reason": content_of(ledger, decided.reason),
        },
    }


def content_of(ledger: Ledger, reference: ContentRef | None) -> Any:
    """What a reference points to; None where it was erased."""
    if reference is None:
        return None
    try:
        content = ledger.store.content(reference.digest)
    except ContentMissingError:
        return None
    return content.decode("utf-8", "replace") if reference.kind == "text" else decode_json(content)


def _arguments(ledger: Ledger, question: Question) -> str:
    shown = content_of(ledger, question.asked.context)
    if not isinstance(shown, dict) or "arguments" not in shown:
        return ""
    return json_text(shown["arguments"])


def hold_command(
    context: typer.Context,
    session: SessionArgument,
    reason: ReasonOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop a recorded loop, and those it delegated to, before its next model or tool call."""
    with settings_of(context).open_existing() as ledger:
        name = ledger.store.resolve(session)
        held = hold(ledger.recorder, name, by or getpass.getuser(), reason)
    if as_json:
        show_json({"session": name, "held": held})
    else:
        say(visible(f"held: {', '.join(held)}; `loopledger release {name}` lets go"))


def release_command(
    context: typer.Context,
    session: SessionArgument,
    reason: ReasonOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a loop that is held go on; a budget that was used up is given once more."""
    with settings_of(context).open_existing() as ledger:
        name = ledger.store.resolve(session)
        released = release(ledger.recorder, name, by or getpass.getuser(), reason)
    if as_json:
        show_json({"session": name, "released": released})
    else:
        say(visible(f"released: {', '.join(released)}" if released else f"nothing holds {name}"))
    if not released:
        raise typer.Exit(BAD_NEWS)

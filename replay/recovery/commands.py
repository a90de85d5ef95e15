"""The commands `effects`, `checkpoint`, `checkpoints` and `rollback`."""

import getpass
from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.cli.settings import BAD_NEWS, JsonOption, SessionArgument, settings_of
from ledger.cli.terminal import amount, counted, cut, moment, say, show_json, visible, width
from ledger.effects.loop_policy import load_loop_policy
from replay.recovery.checkpoints import Wanted, list_checkpoints, take_checkpoint
from replay.recovery.compensations import load_compensator
from replay.recovery.consumers import effects_json
from replay.recovery.plan import find_checkpoint, make_plan
from replay.recovery.rollback import roll_back
from replay.resume.resuming import prepare
from replay.resume.showing import IntoOption, RuntimeOption, show_resumption

_SHOWN = 40

PolicyOption = Annotated[
    Path | None,
    typer.Option(
        "--policy", metavar="FILE", help="Your effect policy (YAML): classes, compensations, tools."
    ),
]


def add_recovery_commands(app: typer.Typer) -> None:
    """Add this file's commands."""
    app.command("effects", epilog="Example: loopledger effects 3f2a --policy effects.yaml")(effects_command)
    app.command("checkpoint", epilog="Example: loopledger checkpoint 3f2a --label before-release")(
        checkpoint_command
    )
    app.command("checkpoints", epilog="Example: loopledger checkpoints 3f2a")(checkpoints_command)
    app.command("rollback", epilog="Example: loopledger rollback 3f2a --to before-release --plan")(
        rollback_command
    )


def effects_command(
    context: typer.Context, session: SessionArgument, policy: PolicyOption = None, as_json: JsonOption = False
) -> None:
    """List what the tool calls of a session did: class, target, end, what takes it back, who used it."""
    rules = None if policy is None else load_loop_policy(policy)
    with settings_of(context).open_existing() as ledger:
        calls = effects_json(ledger.store, ledger.store.resolve(session), rules)
    if as_json:
        show_json(calls)
        return
    for call in calls:
        twice = f", the same as #{call['duplicate_of']}" if call["duplicate_of"] else ""
        how = call["said_by"]
        say(
            cut(
                f"#{call['seq']:<6} {call['class']:<12} {how:<8} {call['outcome']:<8} {visible(call['tool'])}"
                f" {visible(call['target'] or '')}{twice}",
                width(),
            )
        )
    say(f"{amount(len(calls))} calls")


def checkpoint_command(
    context: typer.Context,
    session: SessionArgument,
    at: Annotated[
        int | None, typer.Option("--at", metavar="SEQ", help="This record; by default the last.", min=1)
    ] = None,
    label: Annotated[str | None, typer.Option("--label", help="A name for people.")] = None,
    workspace: Annotated[
        Path | None, typer.Option("--workspace", metavar="DIR", help="Keep the files of this folder with it.")
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore", metavar="NAME", help="Leave out files and folders of this name (may repeat)."
        ),
    ] = None,
    gitignore: Annotated[
        bool, typer.Option("--gitignore", help="Leave out what git ignores, in this and the looks after it.")
    ] = False,
    git: Annotated[
        bool,
        typer.Option(
            "--git",
            help="Keep the commit that is checked out; and a snapshot where the folder is not as in the commit.",
        ),
    ] = False,
    commit: Annotated[
        str | None, typer.Option("--commit", metavar="REF", help="Keep the files of this git commit.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Name a place of a session to return to; with its files, where there is a workspace."""
    wanted = Wanted(workspace, tuple(ignore) if ignore else None, gitignore, git, commit)
    with settings_of(context).open_existing() as ledger:
        name = ledger.store.resolve(session)
        taken = take_checkpoint(ledger, name, at=at, label=label, wanted=wanted, person=_person())
    if as_json:
        show_json(taken)
        return
    files = "with its files" if taken["snapshot"] else "without files"
    if taken["commit"]:
        what = " and a snapshot of the files, which are not as in it" if taken["snapshot"] else ""
        files = f"with git commit {taken['commit'][:12]}{what}"
    say(f"checkpoint {taken['checkpoint']} at record {taken['seq']}, {files}")


def checkpoints_command(
    context: typer.Context, session: SessionArgument, as_json: JsonOption = False
) -> None:
    """List the checkpoints of a session."""
    with settings_of(context).open_existing() as ledger:
        rows = list_checkpoints(ledger, ledger.store.resolve(session))
    if as_json:
        show_json(rows)
        return
    for row in rows:
        files = "files" if row["files"] else "-"
        label = visible(row["label"] or "")
        line = f"#{row['seq']:<6} {visible(row['checkpoint_id'])[:32]:<32} {row['taken_by']:<7} {files:<6}"
        say(cut(f"{line} {moment(row['at'])}  {label}", width()))
    say(counted(len(rows), "checkpoint"))


def rollback_command(
    context: typer.Context,
    session: SessionArgument,
    to: Annotated[
        str, typer.Option("--to", metavar="CHECKPOINT", help="Id, its start, label, or #SEQ that took it.")
    ],
    reason: Annotated[str | None, typer.Option("--reason", help="Why; needed to carry it out.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only show what it would do.")] = False,
    policy: PolicyOption = None,
    run_recorded: Annotated[
        bool, typer.Option("--run-recorded", help="Run compensating commands that the loop registered.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Put files back that somebody else changed since, too.")
    ] = False,
    into: IntoOption = None,
    runtime: RuntimeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go back to a checkpoint: files, compensations, state; exit with 1 where something is not undone."""
    if not plan and not reason:
        raise typer.BadParameter("--reason says why; --plan only shows what would be done")
    if plan and into is not None:
        raise typer.BadParameter("--plan writes nothing: expected --plan or --into, found both")
    if runtime is not None and into is None:
        raise typer.BadParameter("--as goes with --into")
    compensator = load_compensator(policy, run_recorded=run_recorded)
    with settings_of(context).open_existing() as ledger:
        name = ledger.store.resolve(session)
        if plan:
            answer = make_plan(ledger, name, to, compensator, ledger.recorder.keeper()).as_json()
        else:
            # What is refused is refused before anything goes back.
            prepared = (
                None
                if into is None
                else prepare(ledger, name, find_checkpoint(ledger, name, to).seq, into, runtime)
            )
            answer = roll_back(
                ledger,
                name,
                to,
                reason=reason,
                compensator=compensator,
                overwrite=overwrite,
                person=_person(),
            ).as_json()
            if prepared is not None:
                answer["resumption"] = prepared.write()
    if as_json:
        show_json(answer)
    else:
        _show(answer)
        if "resumption" in answer:
            show_resumption(answer["resumption"])
    if not answer["clean"]:
        raise typer.Exit(BAD_NEWS)


def _show(answer: dict[str, Any]) -> None:
    done = answer.get("rolled_back")
    head = f"{visible(answer['session'])} to record {answer['to_seq']}"
    say(f"{head}: rolled back by record {done}" if done else f"{head}: plan", bold=True)
    say(
        f"  abandons   records {answer['abandons']['from']} to {answer['abandons']['to']}, which stay on record"
    )
    if answer["workspace"]:
        say(
            cut(
                f"  files      {len(answer['restores'])} {'put' if done else 'to put'} back in {answer['workspace']}",
                width(),
            )
        )
    for change in answer["restores"][:_SHOWN] if not done else ():
        say(cut(f"    {change['operation']:<7} {change['path']}", width()))
    for kind, sign in (("uncovered_files", "not put back"), ("conflicts", "conflict")):
        for one in answer[kind][:_SHOWN]:
            say(cut(f"  {sign}: {one['path']}: {one['why']}", width()), color="red")
    for effect in answer["effects"]:
        bad = effect["disposition"] in ("not_undone", "unknown")
        used = f", used by {len(effect['consumed_by'])} records" if effect["consumed_by"] else ""
        what = f"{effect['tool']} {effect['target'] or ''}".strip()
        line = f"  #{effect['seq']:<6} {effect['disposition']:<12} {effect['class']:<12} {what}"
        say(cut(line, width()), color="red" if bad else None)
        say(cut(f"          {effect['reason']}{used}", width()))
    for approval in answer["approvals"]:
        say(cut(f"  approval {approval['approval_id']} {approval['becomes']}", width()))
    say("clean" if answer["clean"] else "not clean: something is not undone", bold=True)


def _person() -> str | None:
    """Who sits here, as far as the system knows."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None

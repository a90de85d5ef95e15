"""What going back does about one call: restored, compensated, not undone, or unknown. The one place that says so."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ledger.effects.classes import command_in
from ledger.effects.shell import shell_effects
from replay.recovery.compensations import Prepared
from replay.recovery.effects import CallEffect
from replay.recovery.files import FilePlan

Disposition = Literal["restored", "compensated", "not_undone", "unknown"]
"""What becomes of an effect."""

_REMOVES = frozenset({"rm", "rmdir", "unlink", "truncate", "shred", "find -delete", "delete", "remove"})


class Judgement(NamedTuple):
    """What becomes of an effect, and why."""

    disposition: Disposition
    """What becomes of it."""

    why: str
    """In words."""

    prepared: Prepared | None = None
    """The compensation that is to be run."""


def judge(
    call: CallEffect, arguments: Any, files: FilePlan | None, prepared: Prepared | str
) -> Judgement | None:
    """What going back does about a call; None for one that did nothing."""
    fields = arguments if isinstance(arguments, Mapping) else {}
    if not call.may_have_acted or (call.effect.effect_class == "read" and not call.files):
        return None
    earlier = _earlier(call, prepared)
    if earlier is not None:
        return earlier
    if call.outcome in ("open", "unknown"):
        return Judgement("unknown", "nobody saw how it ended")
    if isinstance(prepared, Prepared) and call.outcome == "returned":
        return Judgement("compensated", prepared.how, prepared)
    if _is_local(call, fields, files):
        return _of_files(call, fields, files)
    if call.outcome == "failed":
        return Judgement("unknown", "it failed, and may have acted before it did")
    return Judgement("not_undone", prepared if isinstance(prepared, str) else "it cannot be taken back")


def _earlier(call: CallEffect, prepared: Prepared | str) -> Judgement | None:
    """What an earlier rollback, or one that was stopped, did about it: nothing is run twice."""
    match call.undone:
        case "compensated":
            how = prepared.how if isinstance(prepared, Prepared) else "its compensation"
            return Judgement("compensated", f"{how}, which has run")
        case "began":
            return Judgement(
                "unknown", "its compensation began and nobody saw how it ended; it is not run again"
            )
        case "failed":
            return Judgement("not_undone", "its compensation has failed; it is not run again")
    return None


def _is_local(call: CallEffect, fields: Mapping[str, Any], files: FilePlan | None) -> bool:
    """Whether all that it did, it did to files here. That somebody declared it irreversible counts."""
    effect = call.effect
    if effect.effect_class in ("read", "write"):
        return True
    if effect.effect_class != "irreversible" or effect.said_by != "inferred":
        return False
    command = command_in(call.tool, fields)
    if command is not None:
        return all(
            effect_class in ("read", "write") or operation in _REMOVES
            for effect_class, operation, _ in shell_effects(command)
        )
    inside = files is not None and effect.target is not None and files.inside(effect.target) is not None
    return effect.operation in _REMOVES and bool(call.files) and inside


def _of_files(call: CallEffect, fields: Mapping[str, Any], files: FilePlan | None) -> Judgement:
    if files is None:
        return Judgement("unknown", "the checkpoint has no files of a workspace")
    for path in call.files:
        if (why := files.covers(path)) is not None:
            return Judgement("not_undone", why)
    outside = [path for path in _written(call, fields) if files.covers(path) is not None]
    if outside:
        return Judgement("unknown", f"it names {outside[0]}, which no snapshot covers")
    if call.files:
        count = len(set(call.files))
        return Judgement(
            "restored", "a file of the snapshot" if count == 1 else f"{count} files of the snapshot"
        )
    target = None if command_in(call.tool, fields) is not None else call.effect.target
    if target is not None and ("/" in target or target in files.now.tree.entries):
        why = files.covers(target)
        if why is not None:
            return Judgement("unknown", why)
        is_restored = any(change.path == files.inside(target) for change in files.restores)
        how = "a file of the snapshot" if is_restored else "it changed nothing in the workspace"
        return Judgement("restored", how)
    return Judgement("unknown", "nothing that it changed was seen")


def _written(call: CallEffect, fields: Mapping[str, Any]) -> list[str]:
    """Absolute paths that a call names as what it writes."""
    command = command_in(call.tool, fields)
    if command is not None:
        named = [target for effect_class, _, target in shell_effects(command) if effect_class != "read"]
    else:
        named = [call.effect.target]
    return [
        path for path in named if path is not None and path.startswith(("/", "~")) and path != "/dev/null"
    ]

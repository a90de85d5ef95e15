"""The plan of a rollback as people read it, from the plan that was made or the one that a rollback keeps."""

from typing import Any

from webui.page import Context

_MOST_EFFECTS = 60
_MOST_FILES = 60
_MOST_CONSUMERS = 8
_LONGEST = 200


class Place(Context):
    """A record that used a result."""

    session: str
    """Its session."""
    seq: int
    """The record."""
    how: str
    """`message`: a model was shown it; `call`, `session`, `approval`: it went into one."""


class Effect(Context):
    """An effect after the checkpoint, and what becomes of it."""

    session: str
    """Session of the call."""
    seq: int
    """Its record."""
    tool: str
    """Tool."""
    target: str
    """What it was done on."""
    effect_class: str
    """What kind of effect it is."""
    said_by: str
    """Who says so."""
    outcome: str
    """How the call ended."""
    disposition: str
    """restored, compensated, not_undone, unknown."""
    reason: str
    """Why."""
    consumers: list[Place]
    """Who used its result since, or some of them."""
    total_consumers: int
    """How many there are."""
    duplicate_of: int | None
    """An earlier call that did the same."""


class FileLine(Context):
    """What becomes of a file."""

    path: str
    """Path below the workspace."""
    told: str
    """What is done, or why not."""


class ApprovalLine(Context):
    """What becomes of an approval."""

    id: str
    """Its id."""
    tool: str
    """Tool that it is about."""
    becomes: str
    """How it stands then."""


class PlanTold(Context):
    """A plan."""

    to: str
    """Checkpoint."""
    to_seq: int
    """State is that after this record."""
    label: str
    """Label of the checkpoint."""
    head: int
    """Last record of the session when the plan was made."""
    first_abandoned: int
    """First record that is left behind; it stays on record."""
    workspace: str | None
    """Folder whose files are put back; None where the checkpoint has none."""
    restores: list[FileLine]
    """Files that are put back, or some of them."""
    total_restores: int
    """How many there are."""
    uncovered: list[FileLine]
    """Files that are other than they were and cannot be put back."""
    conflicts: list[FileLine]
    """Files that somebody else changed."""
    effects: list[Effect]
    """Effects after the checkpoint: first those that stay, then the others."""
    total_effects: int
    """How many there are."""
    stays: int
    """Effects that are not undone, or nobody knows."""
    approvals: list[ApprovalLine]
    """Approvals that lapse, and questions that are open again."""
    state_digest: str
    """Digest of what goes back."""
    files_digest: str | None
    """Digest of the files that come back."""
    is_clean: bool
    """Whether everything after the checkpoint is undone."""


def plan_told(plan: dict[str, Any]) -> PlanTold:
    """A plan for people. Raises KeyError, TypeError, AttributeError or ValueError for what is no plan."""
    effects = sorted(plan["effects"], key=lambda one: one["disposition"] in ("restored", "compensated"))
    stays = [one for one in effects if one["disposition"] not in ("restored", "compensated")]
    return PlanTold(
        to=_word(plan["to"]),
        to_seq=plan["to_seq"],
        label=_word(plan["label"]),
        head=plan["head"],
        first_abandoned=plan["abandons"]["from"],
        workspace=plan["workspace"],
        restores=[
            FileLine(path=one["path"], told=one["operation"]) for one in plan["restores"][:_MOST_FILES]
        ],
        total_restores=len(plan["restores"]),
        uncovered=_files(plan["uncovered_files"]),
        conflicts=_files(plan["conflicts"]),
        effects=[_effect(one) for one in effects[:_MOST_EFFECTS]],
        total_effects=len(effects),
        stays=len(stays),
        approvals=[
            ApprovalLine(id=_word(one["approval_id"]), tool=_word(one["tool"]), becomes=_word(one["becomes"]))
            for one in plan["approvals"][:_MOST_FILES]
        ],
        state_digest=plan["state_digest"],
        files_digest=plan["files_digest"],
        is_clean=plan["clean"],
    )


def _effect(one: dict[str, Any]) -> Effect:
    consumers = one["consumed_by"]
    return Effect(
        session=one["session"],
        seq=one["seq"],
        tool=_word(one["tool"]),
        target=_word(one["target"]),
        effect_class=_word(one["class"]),
        said_by=_word(one["said_by"]),
        outcome=_word(one["outcome"]),
        disposition=one["disposition"],
        reason=_word(one["reason"]),
        consumers=[Place(**place) for place in consumers[:_MOST_CONSUMERS]],
        total_consumers=len(consumers),
        duplicate_of=one["duplicate_of"],
    )


def _files(found: list[dict[str, Any]]) -> list[FileLine]:
    return [FileLine(path=one["path"], told=_word(one["why"])) for one in found[:_MOST_FILES]]


def _word(value: Any) -> str:
    return "" if value is None else str(value)[:_LONGEST]

"""Standing permissions, from strict to lax, and whether a change relaxed one. Pure."""

from dataclasses import dataclass, field

from ledger.events.governance import ModeChanged

_RANKS: dict[str, dict[str, int]] = {
    "approval": {
        # Codex
        "untrusted": 0,
        "on-request": 1,
        "on-failure": 2,
        "never": 3,
        # Claude Code
        "plan": 0,
        "default": 1,
        "acceptEdits": 2,
        "dontAsk": 2,
        "bypassPermissions": 3,
        # others
        "ask": 0,
        "auto": 3,
        "yolo": 3,
    },
    "sandbox": {"read-only": 0, "workspace-write": 1, "danger-full-access": 2, "external-sandbox": 2},
}
_RANKS["permission"] = {**_RANKS["approval"], **_RANKS["sandbox"]}


def relaxes(event: ModeChanged) -> bool:
    """Whether the change lets the agent do more unasked. Words that nobody knows are no relaxation."""
    ranks = _RANKS.get(event.mode, {})
    old, new = ranks.get(event.old or ""), ranks.get(event.new)
    return old is not None and new is not None and new > old


def tightens(event: ModeChanged, than: ModeChanged) -> bool:
    """Whether a change takes back what another one gave."""
    ranks = _RANKS.get(event.mode, {})
    return event.mode == than.mode and ranks.get(event.new, 0) < ranks.get(than.new, 0)


@dataclass
class Relaxed:
    """A permission that was relaxed in mid-session, and what ran under it."""

    event: ModeChanged
    """The change."""

    seq: int
    """Where."""

    turn: str | None
    """The turn that it came with."""

    ran: int = 0
    """Tool calls that ran under it."""

    first: list[int] = field(default_factory=list)
    """Where the first of them ran."""


def laxness(value: str | None) -> int:
    """How much a setting lets pass unasked; 0 for words that nobody knows."""
    return max((ranks.get(value or "", 0) for ranks in _RANKS.values()), default=0)

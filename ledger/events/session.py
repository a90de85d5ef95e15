"""The life of a session: one agent loop from its start to its end."""

from typing import Literal

from ledger.events.record import ContentRef, Digest, Event, Part


class ArtifactInForce(Part):
    """One governing artifact as it stood: prompt, rule file, tool schema, policy, memory, hook or mode."""

    artifact: str
    """Stable name, such as `system_prompt`, `file:CLAUDE.md` or `tool:Bash`."""

    digest: Digest
    """Digest of its content."""


class SessionStarted(Event, name="session.started"):
    """An agent loop began."""

    harness: str
    """Program that ran the loop, such as `claude-code`, `codex`, or the name of one's own loop."""

    harness_version: str | None = None
    """Its version, as it says itself."""

    name: str | None = None
    """Title for people, where the source has one."""

    agent: str | None = None
    """Name or role of the agent."""

    model: str | None = None
    """Model asked for when it started."""

    cwd: str | None = None
    """Working directory."""

    parent: str | None = None
    """Session that delegated to this one."""

    parent_call: str | None = None
    """Id of the call in the parent that started this one."""

    charter: tuple[ArtifactInForce, ...] = ()
    """Governing artifacts in force at the start."""

    environment: ContentRef | None = None
    """What the source tells of the surroundings (git branch, platform, entry point)."""


class SessionResumed(Event, name="session.resumed"):
    """A stopped session went on."""

    how: str | None = None
    """Way of resuming, in the source's words."""

    environment: ContentRef | None = None
    """What the source tells of the surroundings now (run id, trace id)."""


class SessionEnded(Event, name="session.ended"):
    """The session ended."""

    outcome: Literal["completed", "failed", "aborted", "cancelled", "unknown"]
    """How it ended; `unknown` when the source stops without saying."""

    reason: str | None = None
    """Reason, in the source's words."""


class SessionForked(Event, name="session.forked"):
    """This session continues another one from a point in its past."""

    origin: str
    """Session that it continues."""

    origin_seq: int | None = None
    """Last seq of the origin that still counts here; None when the source does not tell."""

    origin_item: str | None = None
    """Native id of that point in the source."""

    runs_again: bool = False
    """Whether this session runs what it shares again, on recorded answers: its own records then repeat it."""


class SessionLinked(Event, name="session.linked"):
    """Another session was found to tell of the same run: an import beside what was recorded live, or the reverse.

    Both sessions get one. What both tell of happened once: whoever adds up over sessions counts it in one of them.
    """

    other: str
    """The session that tells of the same run."""

    how: tuple[Literal["response_id", "call_id", "session_id", "trace_id", "run_id"], ...]
    """By which identifiers they were found to belong together."""

    matched: int
    """Calls of models and tools that both tell of."""

    only_here: int
    """Calls that only this session tells of."""

    only_there: int
    """Calls that only the other tells of."""

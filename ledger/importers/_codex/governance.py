"""What governs a Codex session: approval and sandbox modes, prompt, rule files, and how they change."""

from collections.abc import Iterator
from typing import Any, Literal

from ledger.events import ContentRef, Draft
from ledger.events.capability import CapabilityLoaded, CapabilityUnloaded
from ledger.events.governance import ArtifactChanged, ModeChanged
from ledger.events.session import ArtifactInForce
from ledger.importers._codex.context import rule_file
from ledger.importers._codex.row import Row, Scribe, text_or_none

ArtifactKind = Literal["prompt", "rule_file", "skill"]


class Governance:
    """Modes and artifacts in force."""

    def __init__(self, scribe: Scribe) -> None:
        self._scribe = scribe
        self._artifacts: dict[str, str] = {}
        self._changed: dict[str, str] = {}
        self._tools: set[str] = set()
        self.modes: dict[str, str] = {}
        self.system: ContentRef | None = None
        """The base instructions."""
        self.reasoning: dict[str, Any] = {}
        """Reasoning settings of the turn."""

    def take_changed(self) -> tuple[ArtifactInForce, ...]:
        """Artifacts that changed since the last call of this method."""
        changed, self._changed = self._changed, {}
        return tuple(ArtifactInForce(artifact=name, digest=digest) for name, digest in changed.items())

    def base_instructions(self, row: Row) -> Iterator[Draft]:
        """The system prompt, from `session_meta`."""
        base = row.payload.get("base_instructions")
        text = base.get("text") if isinstance(base, dict) else base
        text = text if isinstance(text, str) else row.payload.get("instructions")
        if isinstance(text, str) and text:
            kept = self._scribe.keep.text(text, "base instructions")
            if isinstance(base, dict | str):
                self.system = kept
            named = "system_prompt" if isinstance(base, dict | str) else "user_instructions"
            yield from self._artifact(row, named, "prompt", kept)

    def rules(self, row: Row, name: str, text: str | None) -> Iterator[Draft]:
        """A rule file, as a message or a snapshot shows it."""
        kept = self._scribe.keep.text(text, name) if text is not None else None
        yield from self._artifact(row, name, "rule_file", kept)

    def _artifact(
        self, row: Row, name: str, kind: ArtifactKind, content: ContentRef | None
    ) -> Iterator[Draft]:
        old = self._artifacts.get(name)
        if (content.digest if content is not None else None) == old:
            return
        if content is None:
            self._artifacts.pop(name, None)
        else:
            self._artifacts[name] = self._changed[name] = content.digest
        event = ArtifactChanged(
            artifact=name,
            kind=kind,
            old=old,
            content=content,
            cause="harness" if kind == "prompt" else "unknown",
        )
        yield self._scribe.draft(row, event)

    def turn_context(self, row: Row) -> Iterator[Draft]:
        """Modes of a turn. What they were before the first is not known; who changed them is not logged."""
        payload = row.payload
        collaboration = payload.get("collaboration_mode")
        collaboration = collaboration if isinstance(collaboration, dict) else {}
        settings = collaboration.get("settings")
        effort = payload.get("effort") or (
            settings.get("reasoning_effort") if isinstance(settings, dict) else None
        )
        self.reasoning = {"effort": effort} if isinstance(effort, str) else {}
        if isinstance(payload.get("summary"), str) and payload["summary"] != "none":
            self.reasoning["summary"] = payload["summary"]
        found = (
            ("approval", _word(payload.get("approval_policy")), payload.get("approval_policy")),
            ("sandbox", _word(payload.get("sandbox_policy")), _sandbox(payload)),
            ("model", text_or_none(payload.get("model")), None),
            ("effort", text_or_none(effort), None),
            ("collaboration", text_or_none(collaboration.get("mode")), None),
            ("cwd", text_or_none(payload.get("cwd")), None),
        )
        for mode, new, detail in found:
            yield from self._mode(row, mode, new, detail)

    def _mode(self, row: Row, mode: str, new: str | None, detail: Any) -> Iterator[Draft]:
        old = self.modes.get(mode)
        if new is None or new == old:
            return
        self.modes[mode] = new
        event = ModeChanged(
            mode=mode,
            old=old,
            new=new,
            cause="startup" if old is None else "unknown",
            detail=self._scribe.keep.json(detail, mode) if isinstance(detail, dict) else None,
        )
        yield self._scribe.draft(row, event)

    def world_state(self, row: Row) -> Iterator[Draft]:
        """A snapshot of what the harness tells the model about its surroundings, or a change of it."""
        state = row.payload.get("state")
        if not isinstance(state, dict):
            return
        full = row.payload.get("full") is True
        rules = state.get("agents_md")
        if isinstance(rules, dict):
            text = rules.get("text")
            name = rule_file(text_or_none(rules.get("directory")))
            yield from self.rules(row, name, text if isinstance(text, str) else None)
        elif full or "agents_md" in state:
            for name in [known for known in self._artifacts if known.endswith("/AGENTS.md")]:
                yield from self.rules(row, name, None)
        skills = state.get("host_skills")
        if isinstance(skills, dict) and isinstance(skills.get("body"), str):
            yield from self._artifact(
                row, "skills", "skill", self._scribe.keep.text(skills["body"], "skills")
            )
        if isinstance(state.get("tools"), dict):
            yield from self._namespaces(row, state["tools"], full)

    def _namespaces(self, row: Row, tools: dict[str, Any], full: bool) -> Iterator[Draft]:
        """Tool namespaces that the model can have loaded."""
        for name, text in tools.items():
            if text is None:
                self._tools.discard(name)
                yield self._scribe.draft(row, CapabilityUnloaded(kind="tool", capability=name))
            elif name not in self._tools:
                self._tools.add(name)
                definition = self._scribe.keep.text(text, "tool") if isinstance(text, str) else None
                event = CapabilityLoaded(
                    kind="tool", capability=name, when="on_demand", definition=definition
                )
                yield self._scribe.draft(row, event)
        if full:
            for name in sorted(self._tools - tools.keys()):
                self._tools.discard(name)
                yield self._scribe.draft(row, CapabilityUnloaded(kind="tool", capability=name))


def _word(policy: Any) -> str | None:
    """One word for a policy: a plain one, the type or mode of an object, or its only key."""
    if isinstance(policy, str):
        return policy or None
    if not isinstance(policy, dict):
        return None
    word = policy.get("type") or policy.get("mode")
    return word if isinstance(word, str) else "+".join(sorted(policy)) or None


def _sandbox(payload: dict[str, Any]) -> Any:
    names = ("sandbox_policy", "permission_profile", "file_system_sandbox_policy", "network")
    detail = {name: payload[name] for name in names if payload.get(name) is not None}
    return detail if any(isinstance(value, dict) for value in detail.values()) else None

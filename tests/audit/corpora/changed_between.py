"""Pairs of sessions from a seed: a rule file that changed between them by nobody's act, or as the record tells."""

import random
from collections.abc import Iterator

from ledger.audit import Reader
from ledger.events import Record
from ledger.events.governance import ArtifactChanged
from tests.audit.labelled import Labelled, call
from tests.ledger.audit.histories import Told

DETECTOR = "changed_between"
TITLE = "pairs of sessions from a seed: changed between; the same, by a person, by a call, another folder, a prompt"
BASELINE = "the digests of an artifact differ"

_BAD = ("rule dropped", "rule added", "policy changed")
_GOOD = ("the same", "by a person", "by a call before", "another folder", "a prompt with a date")
_RULES = ("Never push to main.", "Always run the tests.", "Ask before you delete.", "Keep the API stable.")


def cases() -> Iterator[Labelled]:
    """160 pairs."""
    chance = random.Random(31)
    for number in range(160):
        kind = (*_BAD, *_GOOD)[number % 8]
        yield Labelled(f"{kind} {number}", kind in _BAD, list(_pair(chance, kind, number)), group=kind)


def _pair(chance: random.Random, kind: str, number: int) -> Iterator[Told]:
    rules = chance.sample(_RULES, 3)
    after = {"rule dropped": rules[:2], "the same": rules}.get(kind, [*rules, "Be quick."])
    artifact = "file:policy.yaml" if kind == "policy changed" else "file:AGENTS.md"
    sort = "policy" if kind == "policy changed" else "rule_file"
    if kind == "a prompt with a date":
        artifact, sort = "system_prompt", "prompt"
    for session, lines, cause in (
        ("first", rules, "harness"),
        ("second", after, "human" if kind == "by a person" else chance.choice(["harness", "unknown"])),
    ):
        folder = f"/work/{number}/{session if kind == 'another folder' else 'project'}"
        yield {"@session": session, "type": "session.started", "harness": "coder", "cwd": folder}
        yield {
            "@session": session,
            "type": "governance.artifact_changed",
            "artifact": artifact,
            "kind": sort,
            "content": "\n".join(lines),
            "cause": cause,
        }
        command = "echo 'Be quick.' >> AGENTS.md" if kind == "by a call before" else "make test"
        for event in call(1, "Bash", {"command": command}):
            yield {"@session": session, **event}


def baseline(records: list[Record], reader: Reader) -> bool:
    """A version that is not the first one: every first one has three lines."""
    found = [record.event for record in records if isinstance(record.event, ArtifactChanged)]
    return any(len(reader.text(event.content).splitlines()) != len(_RULES) - 1 for event in found)

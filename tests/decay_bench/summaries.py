"""Summaries as compactors write them: a sentence on a rule among other rules and much other matter. Deterministic."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

_FOLDER = Path(__file__).parents[2] / "fixtures" / "constraints"
_LENGTHS = (5, 7, 9, 12, 16, 20)
_BESIDE = 0.7


class Matter(NamedTuple):
    """What a summary is made of."""

    paragraphs: list[str]
    """What was done and found: other matter."""

    rules: list[str]
    """The sentence on the rule, and other rules."""

    steps: list[str]
    """What comes next."""


def laid_out() -> list[dict[str, str]]:
    """All pairs of `rule_sentences.jsonl`, each sentence in a summary of its own."""
    other = json.loads((_FOLDER / "other_matter.json").read_text(encoding="utf-8"))
    lines = (_FOLDER / "rule_sentences.jsonl").read_text(encoding="utf-8").splitlines()
    chances: dict[str, random.Random] = {}
    found = []
    for number, line in enumerate(map(json.loads, lines)):
        chance = chances.setdefault(line["set"], random.Random(line["set"]))
        summary = _FORMS[number % len(_FORMS)](_matter(chance, other, line))
        found.append({"set": line["set"], "rule": line["rule"], "summary": summary, "label": line["label"]})
    return found


def _matter(chance: random.Random, other: dict[str, Any], line: dict[str, str]) -> Matter:
    paragraphs = chance.sample(other["paragraphs"], chance.choice(_LENGTHS))
    rules = [line["sentence"], *chance.sample(other["rules"], chance.choice((1, 2, 3)))]
    if "beside" in line and chance.random() < _BESIDE:
        rules.append(line["beside"])
    chance.shuffle(rules)
    return Matter(paragraphs, rules, chance.sample(other["steps"], 3))


def _points(lines: list[str], mark: str = "- ") -> str:
    return "".join(f"{mark}{line}\n" for line in lines)


def _headed(matter: Matter) -> str:
    half = len(matter.paragraphs) // 2
    return (
        "## Goal\n- Bring the running task to its end.\n\n## Constraints & Preferences\n"
        f"{_points(matter.rules)}\n## Progress\n### Done\n{_points(matter.paragraphs[:half], '- [x] ')}\n"
        f"## Key Decisions\n{_points(matter.paragraphs[half:], '- **Point**: ')}\n## Next Steps\n"
        f"{_points(matter.steps, '1. ')}"
    )


def _sections(matter: Matter) -> str:
    return (
        f"<summary>\n1. Primary Request and Intent:\n   {matter.paragraphs[0]}\n\n2. Errors and fixes:\n"
        f"{_points(matter.paragraphs[1:], '   - ')}\n3. Rules given by the user:\n{_points(matter.rules, '   - ')}\n"
        f"4. Pending Tasks:\n{_points(matter.steps, '   - ')}</summary>"
    )


def _prose(matter: Matter) -> str:
    half = len(matter.paragraphs) // 2
    return "\n\n".join([*matter.paragraphs[:half], " ".join(matter.rules), *matter.paragraphs[half:]])


def _notes(matter: Matter) -> str:
    half = len(matter.paragraphs) // 2
    told = " ".join(f"I continued. {one}" for one in matter.paragraphs[:half])
    rest = " ".join(matter.paragraphs[half:])
    return f"Progress notes. {told}\n\n{' '.join(matter.rules)}\n\nNext I will {matter.steps[0]}. {rest}"


def _json(matter: Matter) -> str:
    told = {"goal": matter.paragraphs[0], "constraints": matter.rules, "done": matter.paragraphs[1:]}
    return json.dumps({**told, "next_steps": matter.steps}, indent=1)


def _numbered(matter: Matter) -> str:
    half = len(matter.paragraphs) // 2
    lines = [*matter.paragraphs[:half], *matter.rules, *matter.paragraphs[half:]]
    return "Summary of the conversation:\n" + "".join(f"{at}. {line}\n" for at, line in enumerate(lines, 1))


def _tagged(matter: Matter) -> str:
    return (
        f"<state_snapshot>\n <overall_goal>{matter.paragraphs[0]}</overall_goal>\n <key_knowledge>\n"
        f"{_points(matter.rules, '  - ')} </key_knowledge>\n <recent_actions>\n"
        f"{_points(matter.paragraphs[1:], '  - ')} </recent_actions>\n</state_snapshot>"
    )


_FORMS: tuple[Callable[[Matter], str], ...] = (
    _headed, _sections, _prose, _notes, _json, _numbered, _tagged,
)  # fmt: skip

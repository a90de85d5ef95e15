"""`edges`, `scorecard` and `fleet`, as a user and a program run them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import FIXTURES, answer, run

DESIGN = """
edges:
  - {from: main, to: general-purpose, kind: delegation, at_once: 1}
  - {from: general-purpose, to: "*", kind: tool}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with agents in it."""
    home = tmp_path_factory.mktemp("agents")
    sources = [FIXTURES / "claude-code" / "subagents-2.1.197", FIXTURES / "proxy-recording"]
    result = run(home, "import", *sources, FIXTURES / "a2a-messages", FIXTURES / "codex" / "subagents")
    assert result.exit_code == 0, result.output
    return home


def some_session(home: Path) -> str:
    """The session that delegates."""
    parents: set[str | None] = {
        row["parent"] for row in answer(home, "sessions") if row["harness"] == "claude-code"
    }
    return next(name for name in sorted(filter(None, parents)))


def test_edges_shows_the_five_answers(home: Path) -> None:
    session = some_session(home)
    text = run(home, "edges", session).stdout
    for word in ("acted", "reach", "crossed", "cost", "evidence", "general-purpose"):
        assert word in text
    told = answer(home, "edges", session)
    assert told["design"] is None
    assert told["runs"] == 1
    for edge in told["edges"]:
        assert edge.keys() == {
            "from", "kind", "to", "uses", "places", "acted", "reach", "crossed", "cost", "evidence",
        }  # fmt: skip


def test_edges_of_the_whole_ledger(home: Path) -> None:
    told = answer(home, "edges")
    assert {"delegation", "a2a", "tool"} <= {edge["kind"] for edge in told["edges"]}
    assert "clerk" in told["agents"]


def test_a_run_beyond_its_design_is_bad_news(home: Path, tmp_path: Path) -> None:
    design = tmp_path / "graph.yaml"
    design.write_text(DESIGN)
    session = some_session(home)
    result = run(home, "edges", session, "--designed", design)
    assert result.exit_code == 1
    assert "uses were open at once; at most 1 may be" in result.stdout
    design.write_text(DESIGN.replace("at_once: 1", "at_once: 9"))
    result = run(home, "edges", session, "--designed", design)
    assert result.exit_code == 0, result.stdout
    assert "what ran is what was designed" in result.stdout


def test_the_audit_takes_a_design(home: Path, tmp_path: Path) -> None:
    design = tmp_path / "graph.yaml"
    design.write_text(DESIGN)
    arguments = ("audit", "--detector", "edge", "--designed", design, "--no-keep")
    told = answer(home, *arguments)
    parts = {finding["detector"] for finding in told["findings"]}
    assert {"designed_edge.at_once", "designed_edge.undesigned"} <= parts
    assert run(home, *arguments, "--fail-on", "high").exit_code == 1


def test_a_design_that_is_none_is_a_mistake_of_the_user(home: Path, tmp_path: Path) -> None:
    result = run(home, "edges", "--designed", tmp_path / "missing.yaml")
    assert result.exit_code == 2
    assert "missing.yaml cannot be read" in result.output


def test_scorecard_answers_six_questions_with_places(home: Path) -> None:
    session = some_session(home)
    told = answer(home, "scorecard", session)
    assert [one["question"] for one in told["answers"]] == [
        "restart", "sight", "pauses", "capability", "rebuild", "leaving",
    ]  # fmt: skip
    for one in told["answers"]:
        assert bool(one["evidence"]) == (one["answer"] != "no evidence")
        for witness in one["evidence"]:
            assert witness["place"].startswith(f"{session}#")
    text = run(home, "scorecard", session).stdout
    assert "Can a run be rebuilt from its traces?" in text


def test_scorecard_by_harness(home: Path) -> None:
    told = answer(home, "scorecard")
    assert {"a2a-client", "claude-code", "codex"} <= {one["harness"] for one in told["harnesses"]}
    assert "A turn carries" in run(home, "scorecard").stdout


def test_fleet_says_when_there_is_nothing_to_compare(home: Path) -> None:
    told = answer(home, "fleet")
    assert told["runs"] > 1
    assert told["same_tasks"]["verdict"].startswith("too few")
    assert "AGENTS" in run(home, "fleet").stdout


README = Path(__file__).parents[1] / "README.md"
BY_DATA = {"actors", "decided", "reached", "contents", "outcomes", "failures", "facts", "by_severity"}
"""Keys below which the keys are names out of the ledger, or are told in words."""


def keys_of(value: Any) -> Iterator[str]:
    """All keys of a JSON value, but for those that are data."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield name
            if name not in BY_DATA:
                yield from keys_of(below)
    elif isinstance(value, list):
        for one in value:
            yield from keys_of(one)


@pytest.mark.parametrize(
    "asked", [["audit", "--no-keep"], ["edges"], ["scorecard"], ["fleet"], ["detectors"]], ids=" ".join
)
def test_every_key_of_the_json_is_in_the_readme(home: Path, tmp_path: Path, asked: list[str]) -> None:
    design = tmp_path / "graph.yaml"
    design.write_text(DESIGN)
    more = ["--designed", design] if asked == ["edges"] else []
    told = json.loads(run(home, *asked, *more, "--json").stdout)
    readme = README.read_text(encoding="utf-8")
    missing = sorted({name for name in keys_of(told) if f'"{name}"' not in readme})
    assert not missing, f"say in README.md what these keys of `{asked[0]} --json` are: {missing}"

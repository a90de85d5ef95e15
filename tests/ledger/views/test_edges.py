"""The edges of real formats: sub-agents, hand-offs, A2A and MCP; and the lake's table of edges says the same."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ledger.home import Ledger, open_ledger
from ledger.importers._intake import import_paths
from ledger.lake.feed import Stored
from ledger.lake.memory import MemoryLake
from ledger.views.edges import all_runs, edges_json, run_edges
from ledger.views.lake import lake_feed
from ledger.views.sessions import SessionsView
from tests.commands import FIXTURES

SOURCES = (
    "a2a-messages",
    "agent-framework",
    "autogen",
    "claude-code/subagents-2.1.197",
    "claude-code/subagents-2.0.60",
    "codex/subagents",
    "deepseek-harness/delegation",
    "google-adk/events",
    "inspect/agents",
    "mcp-messages",
    "openai-agents",
    "otlp/agents",
    "trueforge/events",
)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """A ledger with runs of two and more agents."""
    with open_ledger(tmp_path_factory.mktemp("edges")) as opened:
        import_paths(opened.recorder, [FIXTURES / source for source in SOURCES])
        yield opened


@pytest.fixture
def view(ledger: Ledger) -> Iterator[SessionsView]:
    """The list of its sessions."""
    with SessionsView(ledger.home, ledger.store) as opened:
        opened.catch_up()
        yield opened


def test_every_kind_of_edge_is_found(ledger: Ledger, view: SessionsView) -> None:
    told = edges_json(all_runs(ledger.store, view))
    kinds = {edge["kind"] for edge in told["edges"]}
    assert kinds == {"tool", "mcp", "a2a", "delegation", "handoff"}
    names = {(edge["from"], edge["kind"], edge["to"]) for edge in told["edges"]}
    assert {
        ("main", "a2a", "clerk"),
        ("main", "mcp", "workshop/poem"),
        ("main", "delegation", "general-purpose"),
        ("triage", "handoff", "procurement"),
    } <= names


def test_a_sub_agent_of_a_harness_is_joined_with_its_session(ledger: Ledger, view: SessionsView) -> None:
    told = edges_json(all_runs(ledger.store, view))
    edge = next(edge for edge in told["edges"] if edge["to"] == "general-purpose")
    assert edge["evidence"]["sessions"]
    assert edge["cost"]["tokens"] > 0
    assert edge["cost"]["at_once"] == 2
    assert "Read" in edge["reach"]["used"]


def test_the_edges_of_the_lake_are_the_same(ledger: Ledger, view: SessionsView) -> None:
    lake = MemoryLake(lake_feed(ledger.store).contents)
    store: Any = ledger.store
    for session in store.sessions():
        stored = store.recorder.select_events(session)
        lake.add(
            session, [Stored(row.id, session, row.originator_version, row.topic, row.state) for row in stored]
        )
    asked = "select session, kind, coalesce(to_agent, '?'), outcome, other_session from edges"
    rows: list[tuple[str, str, str, str, str]] = lake.connection.execute(asked).fetchall()
    in_lake = Counter((session, agent) for session, kind, agent, *_ in rows if kind == "delegated")
    back_in_lake = Counter((session, outcome) for session, kind, _, outcome, _ in rows if kind == "returned")
    children_in_lake = {
        session for session, kind, *_, other in rows if kind == "child_of" and view.row(other)
    }

    ours: Counter[tuple[str, str]] = Counter()
    back: Counter[tuple[str, str]] = Counter()
    for session in ledger.store.sessions():
        for edge in run_edges(ledger.store, view, session, whole=False).edges.values():
            if edge.is_to_agent:
                ours[session, edge.name.target] += edge.uses
                for outcome, count in edge.outcomes.items():
                    back[session, outcome] += count
    children = {
        child
        for run in all_runs(ledger.store, view, deep=False)
        for edge in run.edges.values()
        for child in edge.children
    }
    assert ours == in_lake
    assert back == back_in_lake
    assert children == children_in_lake


def test_runs_do_not_depend_on_whether_contents_are_looked_at(ledger: Ledger, view: SessionsView) -> None:
    deep, quick = (
        [(run.root, run.sessions, [(name, edge.uses) for name, edge in run.edges.items()]) for run in runs]
        for runs in (all_runs(ledger.store, view), all_runs(ledger.store, view, deep=False))
    )
    assert deep == quick

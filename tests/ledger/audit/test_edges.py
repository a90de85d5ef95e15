"""Edges: the five answers of each, told by the records; and the graph that was designed beside the one that ran."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.audit import Reader, fold_session
from ledger.audit.designed import Design, design_detector, load_design
from ledger.audit.edge_fold import EdgeFold
from ledger.audit.edges import Edge, Name
from ledger.errors import InputError
from ledger.views.edges import RunEdges, all_runs, edges_json, run_edges
from ledger.views.findings import reader_of
from ledger.views.sessions import SessionsView
from tests.audit.labelled import call
from tests.ledger.audit.histories import History, Told

SECRET = {"password": "made-up-51c9a0d2f3b7Qz"}


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A ledger of the test's own."""
    with History(tmp_path) as opened:
        yield opened


def asked(number: int, *tools: str, **more: Any) -> Told:
    """A request that offers tools."""
    return {
        "type": "model_call.requested",
        "call_id": f"m{number}",
        "protocol": "anthropic.messages",
        "completeness": "body",
        "tools": [{"name": tool} for tool in tools],
        **more,
    }


def answered(number: int, cost: str, **more: Any) -> Told:
    """Its answer."""
    return {
        "type": "model_call.answered",
        "call_id": f"m{number}",
        "message": {"role": "assistant", "content": "well"},
        "cost_usd": cost,
        "usage": {"input_tokens": 100, "output_tokens": 20},
        **more,
    }


def two_agents() -> list[Told]:
    """`main` hands work to `clerk`, whose session is its own."""
    clerk: dict[str, Any] = {"@session": "clerk-1"}
    return [
        {"type": "session.started", "harness": "own"},
        asked(1, "Task", "look"),
        *call(1, "look", {"at": "this"}, "seen", effect_class="read"),
        {"type": "tool_call.requested", "call_id": "t", "tool": "Task", "arguments": {"do": "count"}},
        {
            "type": "delegation.started",
            "delegation_id": "d",
            "to_agent": "clerk",
            "to_session": "clerk-1",
            "how": "tool",
            "call_id": "t",
            "budget_usd": "0.01",
        },
        {"type": "session.started", "harness": "own", "agent": "id-77", "parent": "main"} | clerk,
        asked(2, "count") | clerk,
        answered(2, "0.02") | clerk,
        *(one | clerk for one in call(2, "count", {}, 3, effect_class="read")),
        *(one | clerk for one in call(3, "erase", {"path": "/x"}, effect_class="irreversible")),
        {
            "type": "delegation.returned",
            "delegation_id": "d",
            "outcome": "returned",
            "from_session": "clerk-1",
            "result": "three",
        },
        {"type": "tool_call.settled", "call_id": "t", "outcome": "returned", "result": "three"},
    ]


def edges_of(history: History, *, deep: bool = True) -> RunEdges:
    """The edges of the run that begins with `main`."""
    ledger = history.ledger
    with SessionsView(ledger.home, ledger.store) as view:
        view.catch_up()
        return run_edges(ledger.store, view, "main", deep=deep)


def edge(run: RunEdges, target: str) -> Edge:
    """The edge to a target."""
    return next(one for name, one in run.edges.items() if name.target == target)


def test_an_edge_to_an_agent_gives_the_five_answers(history: History) -> None:
    history.add(two_agents())
    run = edges_of(history)
    told = edge(run, "clerk").as_json()

    assert run.sessions == ["main", "clerk-1"]
    assert run.agents == {"main", "clerk"}
    assert (told["from"], told["kind"], told["uses"], told["places"]) == ("main", "delegation", 1, ["main#6"])
    assert told["reach"]["may"] == ["count"]
    assert told["reach"]["used"] == ["count", "erase"]
    assert told["reach"]["reached"] == {"irreversible": 1, "read": 1}
    assert any("not offered to it: erase" in one for one in told["reach"]["exceeding"])
    assert any("cost 0.02 USD of a budget of 0.01" in one for one in told["reach"]["exceeding"])
    assert told["crossed"]["bytes_out"] == len('{"do":"count"}')
    assert told["crossed"]["bytes_back"] == len("three")
    assert (told["cost"]["usd"], told["cost"]["tokens"], told["cost"]["tool_calls"]) == (0.02, 120, 2)
    assert told["evidence"]["sessions"] == ["clerk-1"]
    assert told["evidence"]["missing"] == []


def test_the_call_that_hands_over_is_no_edge_of_its_own(history: History) -> None:
    history.add(two_agents())
    assert {str(name) for name in edges_of(history).edges} == {
        "main -> look (tool)",
        "main -> clerk (delegation)",
        "clerk -> count (tool)",
        "clerk -> erase (tool)",
    }


def test_a_list_loads_no_content(history: History) -> None:
    history.add(two_agents())

    def refuse(digest: str) -> Any:
        raise AssertionError(f"content {digest} was loaded")

    store = history.ledger.store
    fold = EdgeFold("main", None)
    Reader(refuse, refuse, store.read)
    for record in store.read("main"):
        fold.take(record)
    assert [one.name.target for one in fold.used()] == ["look", "clerk"]
    run = edges_of(history, deep=False)
    assert edge(run, "clerk").reached == {"irreversible": 1, "read": 1}  # as declared
    assert edge(run, "clerk").may is None


def test_a_session_whose_handing_over_nobody_told_is_an_edge_too(history: History) -> None:
    history.add(
        [
            {"type": "session.started", "harness": "own"},
            {"type": "session.started", "@session": "b", "harness": "own", "agent": "lost", "parent": "main"},
        ]
    )
    told = edge(edges_of(history), "lost").as_json()
    assert told["evidence"]["missing"] == ["1 of 1 hand-overs are not on record: only the session behind is"]


def test_sessions_that_claim_to_be_each_others_parents_are_one_run(history: History) -> None:
    for name, parent in (("main", "zeta"), ("zeta", "main"), ("leaf", "zeta"), ("self", "self")):
        history.add([{"type": "session.started", "@session": name, "harness": "own", "parent": parent}])
    ledger = history.ledger
    with SessionsView(ledger.home, ledger.store) as view:
        view.catch_up()
        runs = list(all_runs(ledger.store, view))
    assert sorted((run.root, sorted(run.sessions)) for run in runs) == [
        ("main", ["leaf", "main", "zeta"]),
        ("self", ["self"]),
    ]


def test_evidence_that_is_not_there_is_named(history: History) -> None:
    history.add(
        [
            {"type": "delegation.started", "delegation_id": "d", "to_agent": "far", "how": "message"},
            {"type": "delegation.started", "delegation_id": "e", "to_agent": "near", "how": "spawn"},
            {"type": "delegation.returned", "delegation_id": "e", "outcome": "unknown"},
        ]
    )
    run = edges_of(history)
    assert edge(run, "far").name.kind == "a2a"
    assert edge(run, "far").missing() == [
        "1 of 1 uses have no end",
        "what was handed over of 1 uses is not kept",
        "what the other agent did is on no record here",
    ]
    assert edge(run, "near").missing()[0] == "1 of 1 ended, and nobody knows how"


def test_secrets_that_cross_are_told_by_their_digest_alone(history: History) -> None:
    history.add([*call(1, "read", {}, SECRET, server="vault"), *call(2, "post", SECRET, server="board")])
    run = edges_of(history)
    came, went = (edge(run, name).as_json()["crossed"]["secrets"] for name in ("vault/read", "board/post"))
    assert [(one["out"], one["back"]) for one in (*came, *went)] == [(0, 1), (1, 0)]
    assert came[0]["digest"] == went[0]["digest"]
    assert "51c9a0d2f3b7" not in str(came + went)


def test_how_far_it_fanned_out_is_counted(history: History) -> None:
    def given(number: int) -> Told:
        return {
            "type": "delegation.started",
            "delegation_id": f"d{number}",
            "to_agent": "worker",
            "how": "spawn",
        }

    def back(number: int) -> Told:
        return {"type": "delegation.returned", "delegation_id": f"d{number}", "outcome": "returned"}

    history.add([given(1), back(1), given(2), given(3), back(2), back(3), asked(1), given(4)])
    found = edge(edges_of(history), "worker")
    assert (found.uses, found.at_once, found.burst) == (4, 2, 3)


def test_who_acts_after_a_hand_off_is_the_one_it_went_to(history: History) -> None:
    history.add(
        [
            {"type": "delegation.started", "delegation_id": "d", "to_agent": "buyer", "how": "handoff"},
            *call(1, "buy", {"what": "paint"}),
        ]
    )
    assert edge(edges_of(history), "buy").name == Name("buyer", "tool", "buy")


# -- designed -------------------------------------------------------------------------------------------------------

DESIGN = """
edges:
  - {from: main, to: clerk, kind: delegation, may: [read], tools: [count], cost_usd: 0.01, secrets: false}
  - {from: main, to: "lo*", kind: tool}
  - {from: clerk, to: count, kind: tool}
  - {from: clerk, to: nobody}
"""


@pytest.fixture
def design(tmp_path: Path) -> Design:
    """A design."""
    path = tmp_path / "graph.yaml"
    path.write_text(DESIGN)
    return load_design(path)


def test_what_ran_is_compared_with_what_was_designed(history: History, design: Design) -> None:
    history.add(two_agents())
    told = edges_json([edges_of(history)], design)["design"]
    assert [(one["from"], one["to"]) for one in told["undesigned"]] == [("clerk", "erase")]
    assert told["unused"] == [{"from": "clerk", "kind": None, "to": "nobody"}]
    assert [one["what"] for one in told["exceeding"]] == [
        "reached irreversible; may reach read",
        "the agent behind it used erase, which it may not",
        "cost 0.02 USD; at most 0.01 are allowed",
    ]


def test_a_design_is_a_detector(history: History) -> None:
    design = Design.model_validate(
        {"edges": [{"to": "look", "may": ["read"], "uses": 1}, {"to": "clerk", "secrets": False}]}
    )
    history.add(
        [
            *call(1, "look", {}, effect_class="read"),
            *call(2, "look", {}, effect_class="external"),
            *call(3, "erase", {}),
            {"type": "tool_call.requested", "call_id": "t", "tool": "Task", "arguments": SECRET},
            {
                "type": "delegation.started",
                "delegation_id": "d",
                "to_agent": "clerk",
                "call_id": "t",
                "how": "tool",
            },
        ]
    )
    store = history.ledger.store
    found = fold_session("main", store.read("main"), [design_detector(design)], reader_of(store))
    assert [(one.seq, one.detector) for one in found] == [
        (3, "designed_edge.capability"),
        (3, "designed_edge.uses"),
        (5, "designed_edge.undesigned"),
        (9, "designed_edge.secret"),  # the secret that was taken out has a record of its own before it
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("edges: [{from: a}]", "edges/0/to"),
        ("edges: [{to: a, may: [everything]}]", "edges/0/may/0"),
        ("- a", "expected a list of rules under 'edges'"),
        ("edges: [{to: a, colour: red}]", "colour"),
    ],
)
def test_a_design_that_cannot_be_meant_is_refused_with_its_place(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "graph.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=told):
        load_design(path)

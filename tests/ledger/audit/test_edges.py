"""Edges: the five answers of each, told by the records."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.audit import Reader
from ledger.audit.designed import Design
from ledger.audit.edge_fold import EdgeFold
from ledger.audit.edges import Name
from ledger.views.edges import all_runs, edges_json
from ledger.views.sessions import SessionsView
from tests.audit.labelled import call
from tests.ledger.audit.handing_over import SECRET, asked, edge, edges_of, handed, two_agents
from tests.ledger.audit.histories import History, Told


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A ledger of the test's own."""
    with History(tmp_path) as opened:
        yield opened


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


ASKED: list[Told] = [
    {"type": "tool_call.started", "call_id": "t"},
    {"type": "approval.asked", "approval_id": "q", "call_id": "t"},
    {
        "type": "approval.decided",
        "approval_id": "q",
        "call_id": "t",
        "outcome": "approved",
        "decided_by": "human",
    },
    {"type": "tool_call.settled", "call_id": "t", "outcome": "returned", "result": "yours", "duration_ms": 7},
]
"""What is told of the call `t`."""


@pytest.mark.parametrize("before", range(len(ASKED) + 1))
def test_what_is_told_of_the_call_that_hands_over_is_told_of_the_edge(history: History, before: int) -> None:
    call_of: Told = {"type": "tool_call.requested", "call_id": "t", "tool": "over", "arguments": {"do": "it"}}
    call_of["@actor"] = "agent"
    history.add(
        [
            call_of,
            *ASKED[:before],
            handed(),
            *ASKED[before:],
            *call(2, "over", {"do": "all"}, "ours"),
        ]
    )
    run = edges_of(history)
    told, tool = edge(run, "clerk").as_json(), edge(run, "over").as_json()
    assert told["acted"]["actors"] == {"agent": 1}
    assert (told["acted"]["asked"], told["acted"]["decided"]) == (1, {"approved by human": 1})
    assert (told["evidence"]["started"], told["evidence"]["results"]) == (1, 1)
    assert (told["crossed"]["bytes_out"], told["crossed"]["bytes_back"]) == (11, 5)
    assert (tool["uses"], tool["evidence"]["outcomes"]) == (1, {"returned": 1})
    assert (tool["evidence"]["started"], tool["acted"]["decided"]) == (0, {})
    assert (tool["crossed"]["bytes_out"], tool["crossed"]["bytes_back"]) == (12, 4)
    assert (tool["cost"]["ms"], tool["evidence"]["missing"]) == (None, [])


def test_who_hands_over_is_who_called_whatever_the_hand_over_itself_says(history: History) -> None:
    history.add(
        [
            {
                "type": "tool_call.requested",
                "call_id": "t",
                "tool": "ask",
                "arguments": {},
                "@agent": "buyer",
            },
            handed(how="tool") | {"@agent": "clerk"},
        ]
    )
    assert edge(edges_of(history), "clerk").name == Name("buyer", "delegation", "clerk")


def test_a_call_that_ended_twice_ended_as_was_told_last(history: History) -> None:
    ended: Told = {"type": "tool_call.settled", "call_id": "c1", "outcome": "returned", "result": "paid"}
    history.add([*call(1, "pay", {}, "needs a yes", outcome="denied"), ended | {"duration_ms": 5}])
    told = edge(edges_of(history), "pay").as_json()
    assert (told["uses"], told["evidence"]["outcomes"], told["cost"]["ms"]) == (1, {"returned": 1}, 5)


def test_tools_that_a_request_does_not_show_are_not_held_against_its_calls(history: History) -> None:
    hidden = asked(1, completeness="messages", not_seen=["system", "tools"])
    history.add([hidden | {"tools": []}, *call(1, "erase", {}, effect_class="write")])
    told = edge(edges_of(history), "erase").as_json()
    assert (told["reach"]["offered"], told["reach"]["not_offered"]) == (None, [])


@pytest.mark.parametrize("offered", ["mcp__db__query", "query"])
def test_a_tool_of_a_server_is_known_by_all_its_names(history: History, offered: str) -> None:
    clerk: dict[str, Any] = {"@session": "clerk-1"}
    used = [one | clerk for one in call(1, "query", {}, server="db", effect_class="read")]
    began: Told = {"type": "session.started", "harness": "own", "parent": "main"}
    history.add([handed(to_session="clerk-1"), began | clerk, asked(1, offered) | clerk, *used])
    run = edges_of(history)
    assert edge(run, "clerk").used == {"db/query"}
    assert edge(run, "clerk").exceeding() == []
    for spelling in ("db/*", "mcp__db__query"):
        design = Design.model_validate({"edges": [{"to": "clerk", "tools": [spelling]}, {"to": "db/*"}]})
        told = edges_json([run], design)["design"]
        assert (told["undesigned"], told["exceeding"]) == ([], [])

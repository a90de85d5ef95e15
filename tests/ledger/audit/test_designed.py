"""The graph that was designed beside the one that ran: what is not in it, what is never used, what does too much."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.audit import fold_session
from ledger.audit.designed import Design, design_detector, load_design
from ledger.errors import InputError
from ledger.views.edges import edges_json
from ledger.views.findings import reader_of
from tests.audit.labelled import call
from tests.ledger.audit.handing_over import SECRET, edges_of, handed, two_agents
from tests.ledger.audit.histories import History


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A ledger of the test's own."""
    with History(tmp_path) as opened:
        yield opened


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


def test_an_edge_the_other_way_round_is_another_and_is_told_so(history: History) -> None:
    design = Design.model_validate({"edges": [{"from": "clerk", "to": "main"}]})
    history.add([handed()])
    told = edges_json([edges_of(history)], design)["design"]
    assert [(one["from"], one["to"], one["turned"]) for one in told["undesigned"]] == [
        ("main", "clerk", True)
    ]
    assert told["unused"] == [{"from": "clerk", "kind": None, "to": "main"}]
    store = history.ledger.store
    (found,) = fold_session("main", store.read("main"), [design_detector(design)], reader_of(store))
    assert found.message.endswith("the design has no such edge; it has one the other way round")


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
        ("edges: [{from: a}]", "yaml:1: edges.1.to: expected 'to', found none"),
        ("edges: [{to: a, may: [everything]}]", "yaml:1: edges.1.may.1: expected 'read'"),
        ("- a", "expected a list of rules under 'edges'"),
        ("edges:\n- to: a\n  colour: red", "yaml:3: edges.1.colour: expected a known word"),
    ],
)
def test_a_design_that_cannot_be_meant_is_refused_with_its_place(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "graph.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=told):
        load_design(path)

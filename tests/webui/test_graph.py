"""The layout of a graph: total, the same each time, without overlaps; forth from left to right."""

from hypothesis import given
from hypothesis import strategies as st

from webui.graph import NODE_HEIGHT, NODE_WIDTH, Layout, layout

NAMES = st.lists(st.text(max_size=6), max_size=16, unique=True)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str]]]:
    """Names, and arrows between them: cycles, loops and doubles, too."""
    names = draw(NAMES)
    if not names:
        return [], []
    name = st.sampled_from(names)
    return names, draw(st.lists(st.tuples(name, name), max_size=40))


@given(graphs())
def test_every_name_and_every_pair_has_a_place(graph: tuple[list[str], list[tuple[str, str]]]) -> None:
    names, arrows = graph
    drawn = layout(names, arrows)
    assert [node.name for node in drawn.nodes] == names
    assert [(arrow.source, arrow.target) for arrow in drawn.arrows] == list(dict.fromkeys(arrows))


@given(graphs())
def test_no_two_nodes_overlap_and_all_lie_inside(graph: tuple[list[str], list[tuple[str, str]]]) -> None:
    drawn = layout(*graph)
    for place, one in enumerate(drawn.nodes):
        assert 0 <= one.x <= drawn.width - NODE_WIDTH and 0 <= one.y <= drawn.height - NODE_HEIGHT
        for other in drawn.nodes[place + 1 :]:
            assert abs(one.x - other.x) >= NODE_WIDTH or abs(one.y - other.y) >= NODE_HEIGHT


@given(graphs())
def test_the_same_graph_gives_the_same_layout(graph: tuple[list[str], list[tuple[str, str]]]) -> None:
    assert layout(*graph) == layout(*graph)


@given(st.integers(1, 30), st.data())
def test_without_cycles_every_arrow_leads_to_the_right(size: int, data: st.DataObject) -> None:
    names = [str(number) for number in range(size)]
    pair = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(
        lambda pair: pair[0] < pair[1]
    )
    arrows = [] if size == 1 else [(str(a), str(b)) for a, b in data.draw(st.lists(pair, max_size=60))]
    drawn = layout(names, arrows)
    left = {node.name: node.x for node in drawn.nodes}
    assert all(left[source] < left[target] for source, target in arrows)


def test_names_that_nobody_gave_get_no_arrow() -> None:
    assert layout(["a"], [("a", "b")]).arrows == []
    assert layout([], []) == Layout(24, 24, [], [])


def test_a_tree_is_drawn_in_its_ranks() -> None:
    drawn = layout(["boss", "a", "b", "c"], [("boss", "a"), ("boss", "b"), ("a", "c"), ("boss", "c")])
    assert {node.name: (node.x, node.y) for node in drawn.nodes} == {
        "boss": (12, 60),
        "a": (288, 12),
        "b": (288, 108),
        "c": (564, 60),
    }
    assert drawn.arrows[0].d == "M168 76C228 76 228 28 288 28"

"""Agents of a run: the graph, the edges with their answers, the lanes."""

from pathlib import Path

from starlette.testclient import TestClient

from tests.webui.site import PLAIN, site
from tests.webui.team import BOSS, fill_team


def test_a_run_is_shown_as_graph_edges_and_lanes(tmp_path: Path) -> None:
    with site(tmp_path, fill=fill_team) as made:
        client = made.client()
        found = client.get(f"/api/v1/sessions/{BOSS}/agents").json()
        html = client.get(f"/sessions/{BOSS}/agents").text
    assert (found["sessions"], found["agents"]) == (5, 5)
    ways = {(arrow["source"], arrow["target"]) for arrow in found["graph"]["arrows"]}
    assert ways == {("boss", "reader"), ("boss", "writer"), ("boss", "checker"), ("reader", "fetcher")}
    to_reader = next(edge for edge in found["edges"] if edge["target"] == "reader")
    assert (to_reader["source"], to_reader["kind"], to_reader["uses"]) == ("boss", "delegation", 1)
    assert "returned 1" in to_reader["evidence"] and "0.0600 USD" in to_reader["cost"]
    lanes = {lane["name"]: lane for lane in found["lanes"]["lanes"]}
    assert found["lanes"]["at_once"] == 4
    assert (lanes["fetcher"]["seconds"], lanes["boss"]["handed_over"]) == (30.0, 3)
    assert lanes["reader"]["x"] < lanes["fetcher"]["x"] < lanes["checker"]["x"]
    assert 'href="/sessions/team-reader"' in html
    assert len(html.encode()) < 40_000


def test_a_run_of_one_agent_shows_its_tools(browser: TestClient) -> None:
    found = browser.get(f"/api/v1/sessions/{PLAIN}/agents").json()
    assert [node["name"] for node in found["graph"]["nodes"]] == ["shopkeeper"]
    (edge,) = found["edges"]
    assert (edge["target"], edge["kind"], edge["uses"]) == ("shelf", "tool", 40)

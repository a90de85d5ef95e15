"""The page SQL: a question is a link, its rows are safe to look at and to open, and it is recorded who asked."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from ledger.events import Draft, Event
from ledger.events.input import MessageReceived
from ledger.events.review import QueryAsked
from ledger.events.tool_call import ToolCallRequested
from ledger.home import Ledger
from ledger.lake.sandbox import Limits
from tests.webui.pages.test_importing import done
from tests.webui.site import PLAIN, Site, form_token, site
from webui.acts import SESSION as ACTS
from webui.rows_out import harmless
from webui.settings import WebSettings

FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "  =1")


def _fill(ledger: Ledger) -> None:
    keeper = ledger.recorder.keeper()
    events: list[Event] = [
        MessageReceived(origin="human", message=keeper.json("<script>window.__xss = 1</script>")),
        *(
            ToolCallRequested(call_id=f"call_{number}", tool=text, arguments=keeper.json({}))
            for number, text in enumerate(FORMULAS)
        ),
    ]
    ledger.recorder.append("wild-0001", [Draft(event) for event in events], keeper)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose queries may give so many rows, and take any time on a machine that is busy."""
    told = WebSettings(catches_up=False, queries=Limits(seconds=600, rows=300))
    with site(tmp_path_factory.mktemp("sql"), fill=_fill, settings=told) as found:
        yield found


@pytest.fixture
def client(made: Site) -> TestClient:
    """A browser that is logged in."""
    return made.client(raises=False)


def test_a_question_is_a_link_and_names_of_records_are_links(client: TestClient) -> None:
    answer = client.get(
        "/sql", params={"q": "select session, seq, tool from events where tool = 'shelf' order by seq"}
    )
    assert answer.status_code == 200
    assert f'href="/sessions/{PLAIN}"' in answer.text
    assert f'href="/sessions/{PLAIN}/events/7"' in answer.text
    assert len(answer.content) <= 40_000


def test_parameters_are_fields(client: TestClient) -> None:
    question = {"q": "select count(*) as n from events where tool = $which"}
    page = client.get("/sql", params=question)
    assert 'name="p.which"' in page.text and "parameter which is not given" in page.text
    told = client.get("/api/v1/sql", params=question | {"p.which": "shelf"}).json()
    assert told["answer"]["rows"][0][0]["text"] == "40"
    stranger = client.get("/sql", params=question | {"p.which": "shelf", "p.other": "1"})
    assert "no parameter" in stranger.text


def test_a_saved_query_runs_by_its_name_with_its_parameters(client: TestClient) -> None:
    told = client.get("/api/v1/sql", params={"saved": "slowest_calls", "p.least": "10"}).json()
    assert told["refused"] == ""
    assert told["answer"]["total"] > 0
    assert told["title"] == "Slowest calls"
    wrong = client.get("/api/v1/sql", params={"saved": "slowest_calls", "p.least": "x"}).json()
    assert "takes a" in wrong["refused"]
    assert client.get("/sql", params={"saved": "nothing"}).status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        "drop view events",
        "select 1; select 2",
        "select * from read_csv('/etc/passwd')",
        "from duckdb_databases()",
        "copy (select 1) to '/tmp/x'",
        "attach 'x.db'",
        "select getenv('HOME')",
        "selec",
    ],
)
def test_what_may_not_run_is_refused_with_a_reason(client: TestClient, query: str) -> None:
    told = client.get("/api/v1/sql", params={"q": query}).json()
    assert told["answer"] is None
    assert told["refused"]
    assert str(Path.home()) not in told["refused"]


def test_a_query_that_never_ends_is_stopped_and_says_so(tmp_path: Path) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    with site(tmp_path, settings=WebSettings(catches_up=False, queries=Limits(seconds=2))) as made:
        client = made.client()
        answer = client.get("/sql", params={"q": endless})
        assert "stopped after 2 s" in answer.text
        assert "No row fits" not in answer.text
        file = client.get("/sql/file", params={"q": endless})
        assert file.status_code == 400 and "stopped after 2 s" in file.text


def test_more_rows_than_allowed_are_left_out_and_that_is_said(client: TestClient) -> None:
    question = {"q": "select unnest(range(1000)) as n"}
    page = client.get("/sql", params=question)
    assert "more than 300 rows" in page.text and "100 of 300 rows shown" in page.text
    lines = client.get("/sql/file", params=question | {"as": "ndjson"}).text.splitlines()
    assert json.loads(lines[299]) == {"n": 299}
    assert json.loads(lines[300])["truncated"] is True
    assert "# more than 300 rows" in client.get("/sql/file", params=question).text


def test_a_wide_answer_keeps_the_page_small(client: TestClient) -> None:
    answer = client.get("/sql", params={"q": "select repeat('<&>', 3000) as text, * from range(200)"})
    assert answer.status_code == 200
    assert len(answer.content) <= 60_000
    assert "rows shown" in answer.text


def test_cells_are_only_shown(client: TestClient) -> None:
    answer = client.get(
        "/sql", params={"q": "select text, 1 as \"<b>x</b>\" from events where session = 'wild-0001'"}
    )
    assert "<script>window" not in answer.text and "&lt;script&gt;" in answer.text
    assert "<b>x</b>" not in answer.text


def test_no_cell_of_a_csv_is_a_formula(client: TestClient) -> None:
    question = {
        "q": "select tool, -seq as minus from events where session = 'wild-0001' and tool is not null"
    }
    file = client.get("/sql/file", params=question)
    assert file.headers["content-disposition"] == 'attachment; filename="rows.csv"'
    rows = list(csv.reader(io.StringIO(file.text, newline="")))
    assert [row[0] for row in rows[1:]] == [f"'{text}" for text in FORMULAS]
    assert rows[1][1].startswith("-")  # a number stays one


def test_a_text_that_is_no_formula_stays_as_it_is() -> None:
    assert harmless("a = b") == "a = b"
    assert harmless("\uff1d1") == "'\uff1d1"


def test_rows_come_as_json_and_parquet(client: TestClient) -> None:
    question = {"q": "select seq, type from events where session = 'wild-0001' order by seq"}
    whole = client.get("/sql/file", params=question | {"as": "json"}).json()
    assert [row["seq"] for row in whole["rows"]] == list(range(1, 8))
    assert whole["truncated"] is False
    file = client.get("/sql/file", params=question | {"as": "parquet"})
    assert pq.read_table(io.BytesIO(file.content)).column("seq").to_pylist() == list(range(1, 8))


def test_what_is_asked_is_recorded_with_who_asked(made: Site, client: TestClient) -> None:
    client.get("/sql/file", params={"q": "select 41 + $one", "p.one": "1", "as": "json"})
    client.get("/sql", params={"q": "drop table events"})
    *_, file, refused = made.ledger.store.read(ACTS, names=(QueryAsked.TYPE,))
    for record in (file, refused):
        assert isinstance(record.event, QueryAsked)
        assert record.actor is not None and (record.actor.kind, record.actor.id) == ("human", "ana")
    assert isinstance(file.event, QueryAsked) and isinstance(refused.event, QueryAsked)
    assert made.ledger.store.content(file.event.query.digest) == b"select 41 + $one"
    assert (file.event.form, refused.event.rows) == ("json", 0)
    assert refused.event.stopped is not None and "expected SELECT" in refused.event.stopped


def test_a_query_that_is_too_long_is_a_wrong_parameter(client: TestClient) -> None:
    answer = client.get("/api/v1/sql", params={"q": "select 1" + " " * 8000})
    assert answer.status_code == 400
    assert "'q'" in answer.json()["sentence"]


def test_without_a_lake_it_says_how_to_make_one_and_makes_it(tmp_path: Path) -> None:
    with site(tmp_path, lake=False) as made:
        browser = made.client()
        page = browser.get("/sql", params={"q": "select 1"})
        assert "loopledger export" in page.text
        answer = browser.post("/sql/lake", data={"form_token": form_token(page.text)})
        assert answer.status_code == 200 and "Export to the lake" in answer.text
        assert done(browser, "/jobs/latest")["state"] == "done"
        told = browser.get("/api/v1/sql", params={"q": "select count(*) from events"}).json()
        assert int(told["answer"]["rows"][0][0]["text"]) > 200
        assert next(record.type for record in made.ledger.store.read(ACTS)) == "ledger.exported"

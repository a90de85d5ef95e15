"""/sql: questions to the lake in SQL. A question is a link; it runs in a sandbox, and is recorded with who asked."""

import re
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from pydantic import BaseModel

from ledger.errors import InputError
from ledger.events import Actor
from ledger.events.keeping import Exported
from ledger.events.review import QueryAsked
from ledger.home import Ledger
from ledger.lake.sandbox import SafeResult
from ledger.lake.saved import saved_queries
from webui.acts import record_act
from webui.console import LONGEST, Asked, asked_for, table_docs
from webui.dependencies import Web, WebDep, WhoDep, segment
from webui.page import Context, Done, Page
from webui.rows_out import MEDIA, FileForm, as_file, cell

_MOST_ROWS = 100
_MOST_CHARACTERS = 12_000
_MOST_SAVED = 100
_LONGEST_CELL = 240
_LONGEST_NAME = 60
_LONGEST_VALUE = 2000
_MOST_COLUMNS = 200

page = Page("SQL", link="/sql", order=60)


class Taken(Context):
    """A parameter of a query."""

    name: str
    """Its name."""
    kind: str
    """What it takes."""
    default: str | None
    """What it is when nothing is given; none: it must be given."""
    doc: str
    """What it does."""
    given: str
    """What was given."""


class Kept(Context):
    """A saved query."""

    name: str
    """Its name."""
    title: str
    """What it answers."""
    doc: str
    """What to know about the answer."""
    is_own: bool
    """Whether it is the user's own."""


class Cell(Context):
    """A cell of an answer."""

    text: str
    """What it says, the beginning."""
    link: str | None = None
    """The record or session that it names."""
    is_number: bool = False
    """Whether it is a number."""


class Answered(Context):
    """An answer."""

    columns: list[str]
    """Names of its columns."""
    rows: list[list[Cell]]
    """Its rows, the first of them."""
    total: int
    """How many rows there are to download."""
    stopped: str
    """Why there are no more, such as `stopped after 10 s`; empty: these are all."""
    seconds: float
    """How long it took."""


class TableTold(Context):
    """A table that a query may read."""

    name: str
    """Its name."""
    doc: str
    """What a row is."""
    columns: list[str]
    """Names of its columns."""


class SqlContext(Context):
    """What sql.html may use."""

    q: str
    """The text of the query."""
    saved: str
    """Name of the saved query that it is; empty for none."""
    title: str
    """Title of the page: what the query answers."""
    doc: str
    """What to know about its answer."""
    parameters: list[Taken]
    """What it takes."""
    answer: Answered | None
    """The answer; none where nothing was asked, or not yet."""
    refused: str
    """Why there is no answer; empty where there is one."""
    link: dict[str, str]
    """The question as parameters of an address."""
    queries: list[Kept]
    """The saved queries."""
    tables: list[TableTold]
    """The tables."""
    has_lake: bool
    """Whether there is a lake to ask."""
    missing: int
    """Records of the ledger that the lake does not have yet."""
    limits: str
    """What a query may take."""


class LakeForm(BaseModel):
    """Nothing is asked for."""


def _question(
    request: Request,
    web: WebDep,
    q: Annotated[
        str,
        Query(max_length=LONGEST, description="SQL; `p.NAME` gives the value of `$NAME` in it."),
    ] = "",
    saved: Annotated[
        str, Query(max_length=_LONGEST_NAME, description="Name of a saved query to run in place of `q`.")
    ] = "",
) -> Asked:
    given = {
        name.removeprefix("p."): text
        for name, text in request.query_params.items()
        if name.startswith("p.") and len(name) < _LONGEST_NAME
    }
    for name, text in given.items():
        if len(text) > _LONGEST_VALUE:
            raise InputError(f"parameter p.{name} is longer than {_LONGEST_VALUE} characters")
    return asked_for(web.ledger.home, q, saved, given)


QuestionDep = Annotated[Asked, Depends(_question)]


@page.view("/sql", template="sql.html")
def sql(web: WebDep, who: WhoDep, asked: QuestionDep) -> SqlContext:
    """An answer of the lake, as far as a page goes; the tables and saved queries there are."""
    position = web.queries.lake_position
    answer, refused = None, ""
    if asked.sql.strip() and position is not None:
        try:
            values = asked.values()
            answer = _answered(_run(web, who, asked, values, "page"))
        except InputError as error:
            refused = str(error)
    last = web.ledger.store.last_position()
    limits = web.queries.limits
    return SqlContext(
        q=asked.sql,
        saved=asked.saved.name if asked.saved else "",
        title=asked.saved.title if asked.saved else "SQL",
        doc=asked.saved.doc if asked.saved else "",
        parameters=[Taken(**one._asdict(), given=asked.given.get(one.name, "")) for one in asked.parameters],
        answer=answer,
        refused=refused,
        link=_link(asked),
        queries=[
            Kept(name=one.name, title=one.title, doc=one.doc, is_own=one.is_own)
            for one in list(saved_queries(web.ledger.home).values())[:_MOST_SAVED]
        ],
        tables=[
            TableTold(name=one.name, doc=one.doc, columns=[name for name, _, _ in one.columns])
            for one in table_docs()
        ],
        has_lake=position is not None,
        missing=max(0, last - (position or 0)),
        limits=f"{limits.seconds:g} s, {limits.rows} rows, {limits.result_bytes >> 20} MB",
    )


@page.html.get("/sql/file")
def download(
    web: WebDep,
    who: WhoDep,
    asked: QuestionDep,
    form: Annotated[FileForm, Query(alias="as", description="What the rows are written as.")] = "csv",
) -> Response:
    """All rows of an answer as a file, as far as a query may go."""
    if not asked.sql.strip():
        return Response(status_code=303, headers={"Location": "/sql"})
    result = _run(web, who, asked, asked.values(), form)
    if result.stopped is not None and result.stopped.kind not in ("rows", "bytes"):
        raise InputError(f"There is no file: the query was {result.stopped.words}.")
    name = re.sub(r"[^A-Za-z0-9._-]", "_", asked.saved.name) if asked.saved else "rows"
    headers = {
        "Content-Disposition": f'attachment; filename="{name}.{form}"',
        "X-Truncated": str(result.is_cut).lower(),
    }
    return Response(as_file(result, form), 200, headers, MEDIA[form])


@page.action("/sql/lake")
def make_lake(web: WebDep, who: WhoDep, form: LakeForm) -> Done:
    """Bring the lake up to the ledger; it is made where there is none."""
    job = web.jobs.start("export", {}, after=lambda done: note_export(web.ledger, who, done.result))
    return Done(to=f"/jobs/{job.id}")


def note_export(ledger: Ledger, who: Actor, result: dict[str, Any]) -> None:
    """Record that records left for the lake, and who wanted it."""
    if "failed" not in result:
        event = Exported(to="lake", last_position=result["position"])
        record_act(ledger, who, event, ledger.recorder.keeper())


def _run(web: Web, who: Actor, asked: Asked, values: dict[str, Any], form: str) -> SafeResult:
    """Run it and record it, also when it is refused."""
    keeper = web.ledger.recorder.keeper()
    event = QueryAsked(
        query=keeper.text(asked.sql),
        saved=asked.saved.name if asked.saved else None,
        parameters=keeper.json({name: str(value) for name, value in values.items()}) if values else None,
        form=form,
    )
    try:
        result = web.queries.run(asked.sql, values)
    except InputError as error:
        told = event.model_copy(update={"stopped": str(error)[:400]})
        record_act(web.ledger, who, told, keeper)
        raise
    stopped = None if result.stopped is None else result.stopped.words
    rows = sum(batch.num_rows for batch in result.kept)
    record_act(web.ledger, who, event.model_copy(update={"rows": rows, "stopped": stopped}), keeper)
    return result


def _answered(result: SafeResult) -> Answered:
    """The rows as far as a page goes."""
    names = [name for name, _ in result.columns][:_MOST_COLUMNS]
    rows: list[list[Cell]] = []
    left = _MOST_CHARACTERS
    for row in result.rows():
        cells = _cells(names, row)
        left -= sum(len(one.text) + len(one.link or "") + 24 for one in cells)
        if len(rows) == _MOST_ROWS or (left < 0 and rows):
            break
        rows.append(cells)
    return Answered(
        columns=[name[:_LONGEST_CELL] for name in names],
        rows=rows,
        total=sum(batch.num_rows for batch in result.kept),
        stopped="" if result.stopped is None else result.stopped.words,
        seconds=result.seconds,
    )


def _cells(names: list[str], row: list[Any]) -> list[Cell]:
    """A row; what names a session, or a record of it, leads there."""
    by_name = dict(zip(names, row[: len(names)], strict=True))
    session = by_name.get("session")
    place = f"/sessions/{segment(session)}" if isinstance(session, str) and 0 < len(session) < 400 else None
    cells = []
    for name, value in zip(names, row, strict=False):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        link = None
        if place is not None and name == "session":
            link = place
        elif (
            place is not None
            and type(value) is int
            and value > 0
            and (name == "seq" or name.endswith("_seq"))
        ):
            link = f"{place}/events/{value}"
        cells.append(Cell(text=cell(value)[:_LONGEST_CELL], link=link, is_number=is_number))
    return cells


def _link(asked: Asked) -> dict[str, str]:
    question = {"saved": asked.saved.name} if asked.saved else {"q": asked.sql}
    return question | {f"p.{name}": text for name, text in asked.given.items()}

"""/search: words in messages, arguments and results of all sessions."""

from typing import Annotated

from fastapi import Query

from ledger.errors import InputError
from ledger.events import BY_NAME
from ledger.views.search import PAGE, Hit
from webui.dependencies import LedgerDep, ListsDep
from webui.page import Context, Page

_LONGEST = 400

page = Page("Search", link="/search", order=50)


class Part(Context):
    """A part of a snippet."""

    text: str
    """What it says."""
    is_hit: bool
    """Whether it is what was searched for."""


class Line(Context):
    """A record that has all words."""

    session: str
    """Its session."""
    seq: int
    """Its place there."""
    type: str
    """Its type."""
    tool: str | None
    """Tool that it names."""
    at: str
    """When it happened."""
    parts: list[Part]
    """The words, with some others around them."""


class SearchContext(Context):
    """What search.html may use."""

    q: str
    """The words."""
    session: str
    """Id of a session, or its start; empty for all."""
    kind: str
    """Type or family of events; empty for all."""
    families: list[str]
    """Families of events."""
    lines: list[Line]
    """The hits, the last recorded first."""
    before: int | None
    """Where the next page goes on; none at the end."""
    wrong: str
    """Why nothing could be searched; empty where it could."""
    behind: int
    """Records that the index does not have yet."""


@page.view("/search", template="search.html")
def search(
    ledger: LedgerDep,
    lists: ListsDep,
    q: Annotated[
        str,
        Query(
            max_length=400, description='Words: all of them; "next to each other"; the start of one: wor*.'
        ),
    ] = "",
    session: Annotated[str, Query(max_length=400, description="Only in this session.")] = "",
    kind: Annotated[str, Query(max_length=80, description="Only events of this type or family.")] = "",
    before: Annotated[
        int | None, Query(ge=0, le=2**53, description="As `before` of the page before.")
    ] = None,
) -> SearchContext:
    """Records with all of the words, the last recorded first."""
    lines: list[Line] = []
    more, wrong, behind = None, "", 0
    if q.strip():
        name = ledger.store.resolve(session.strip()) if session.strip() else None
        with lists.search() as index:
            behind = max(0, ledger.store.last_position() - index.position)
            try:
                found = index.search(q, session=name, kind=kind.strip() or None, before=before, limit=PAGE)
                lines, more = [_line(hit) for hit in found.hits], found.before
            except InputError as error:
                wrong = str(error)
    return SearchContext(
        q=q,
        session=session,
        kind=kind,
        families=sorted({event.partition(".")[0] for event in BY_NAME}),
        lines=lines,
        before=more,
        wrong=wrong,
        behind=behind,
    )


def _line(hit: Hit) -> Line:
    left = _LONGEST
    parts = []
    for piece in hit.snippet:
        text = piece.text[:left]
        left -= len(text)
        if text:
            parts.append(Part(text=text, is_hit=piece.is_hit))
    return Line(
        session=hit.session, seq=hit.seq, type=hit.type, tool=hit.tool, at=hit.happened_at, parts=parts
    )

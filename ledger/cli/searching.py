"""The command `search`, and the table `hits` that it gives to SQL."""

import re
from typing import Annotated, Any

import typer

from ledger.cli.looking import names_of
from ledger.cli.settings import JsonOption, settings_of
from ledger.cli.terminal import cut, progress, say, show_json, visible, width
from ledger.home import Ledger
from ledger.views.search import PAGE, Hit, Page, SearchView

_WIDEST_HEAD = 200
_SPACES = re.compile(r"\s+")


def add_search_command(app: typer.Typer) -> None:
    """Add this file's command."""
    app.command("search", epilog="Example: loopledger search connection reset --type tool_call")(
        search_command
    )


def search_command(
    context: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORDS...",
            help="All of them, in any order; '\"in quotes\"' next to each other; wor* for the start of one.",
            show_default=False,
        ),
    ],
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="SESSION", help="Only in this session.", show_default=False),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--type", metavar="TYPE", help="Only events of this type or family.", show_default=False
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Most hits.", min=1, max=10_000)] = PAGE,
    before: Annotated[
        int | None,
        typer.Option(
            "--before", metavar="POSITION", help="Go on after the page that ended there.", show_default=False
        ),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the index again from the first record.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Find words in messages, arguments and results; what was recorded last comes first."""
    if kind is not None:
        names_of(kind)
    with settings_of(context).open_existing() as ledger:
        name = None if session is None else ledger.store.resolve(session)
        page = search(
            ledger, " ".join(words), session=name, kind=kind, limit=limit, before=before, rebuild=rebuild
        )
    if as_json:
        show_json(
            {
                "hits": [hit_json(hit) for hit in page.hits],
                "before": page.before,
                "position": page.position,
            }
        )
        return
    for hit in page.hits:
        _show(hit)
    if not page.hits:
        say("nothing found")
    if page.before is not None:
        say(f"\nthere are more: --before {page.before} goes on")


def search(ledger: Ledger, query: str, *, rebuild: bool = False, **options: Any) -> Page:
    """A page of hits, from an index that has all records; a bar where that takes long. Raises InputError."""
    with SearchView(ledger.home, ledger.store) as view:
        with progress("reading new records", ledger.store.last_position()) as bar:
            if rebuild:
                view.rebuild()
            else:
                view.catch_up(bar.move)
        return view.search(query, **options)


def hit_json(hit: Hit) -> dict[str, Any]:
    """The documented form of `search --json`."""
    return {
        "session": hit.session,
        "seq": hit.seq,
        "position": hit.position,
        "type": hit.type,
        "tool": hit.tool,
        "happened_at": hit.happened_at,
        "snippet": [{"text": piece.text, "hit": piece.is_hit} for piece in hit.snippet],
    }


def _show(hit: Hit) -> None:
    tool = f"  {hit.tool}" if hit.tool is not None else ""
    time = hit.happened_at[:19].replace("T", " ")
    say(cut(f"{hit.session}#{hit.seq}  {time}  {hit.type}{tool}", _WIDEST_HEAD), bold=True)
    left = 2 * width()
    line = "    "
    for piece in hit.snippet:
        text = visible(_SPACES.sub(" ", piece.text))[:left]
        left -= len(text)
        line += typer.style(text, bold=True, underline=True) if piece.is_hit else text
    say(line.rstrip())

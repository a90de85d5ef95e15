"""The commands `import` and `formats`, and the import report for people."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.cli.settings import WRONG_USE, JsonOption, settings_of
from ledger.cli.terminal import Bar, Column, Table, amount, cut, progress, say, show_json, visible, width
from ledger.importers import discover, importer_named
from ledger.importers._files import in_one_order
from ledger.importers._intake import FileReport, ImportReport, import_paths

_LISTED = 10
_FILES_LISTED = 20
_FORMATS_TOLD = 2
_NAMES_LISTED = 5
_COUNTS = (
    ("model calls", "model_calls"),
    ("failed model calls", "failed_calls"),
    ("tool calls", "tool_calls"),
    ("tool results", "tool_results"),
    ("calls without a result", "unanswered_calls"),
    ("results without a call", "orphan_results"),
    ("compactions", "compactions"),
    ("duplicates", "duplicates"),
    ("dangling parents", "dangling_parents"),
    ("secrets taken out", "redacted"),
)


def add_import_commands(app: typer.Typer) -> None:
    """Add this file's commands."""
    app.command(
        "import",
        epilog="Example: loopledger import ~/.claude/projects ~/.codex/sessions",
    )(import_command)
    app.command("formats", epilog="Example: loopledger formats --json")(formats_command)


def import_command(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...", help="Files or folders with traces; URLs of databases.", show_default=False
        ),
    ],
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="FORMAT", help="Read all files as this format; by default each is recognised."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Import traces into sessions; a second import of the same adds only what is new."""
    if format_name is not None:
        importer_named(format_name)
    sources = in_one_order(paths)
    with settings_of(context).open() as ledger, progress("importing", len(sources)) as bar:
        report = import_paths(
            ledger.recorder, sources, format_name=format_name, progress=_Moves(bar).note, survive=True
        )
    if as_json:
        show_json(report.as_json())
    else:
        _show_report(report)
    if not any(entry["format"] for entry in report.files):
        raise typer.Exit(WRONG_USE)


class _Moves:
    """Turns the intake's calls into files done."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._begun = 0

    def note(self, path: Path, lines: int) -> None:
        """A file was begun (no lines yet), or has come so far."""
        self._begun += lines == 0
        note = cut(path.name, 30) + (f" line {lines}" if lines else "")
        self._bar.move(self._begun - 1, note)


def formats_command(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the importers, what each source proves, and what it cannot show."""
    importers = discover()
    if as_json:
        show_json(
            [
                {"format": name, "title": one.TITLE, "grade": one.GRADE, "cannot_show": list(one.CANNOT_SHOW)}
                for name, one in importers.items()
            ]
        )
        return
    for name, one in importers.items():
        say(f"{visible(name)}  {visible(one.TITLE)}", bold=True)
        say(f"  grade {one.GRADE}; cannot show:")
        for sentence in one.CANNOT_SHOW:
            _bullet(sentence)
    if not importers:
        say("no importer is installed")


def _bullet(text: str) -> None:
    typer.echo(_wrapped(text, "    ", "  - "))


def _wrapped(text: str, indent: str, first: str) -> str:
    lines: list[str] = []
    line = first
    for word in visible(text).split(" "):
        if len(line) + len(word) >= width() and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += f"{word} "
    return "\n".join([*lines, line.rstrip()])


# -- the report ------------------------------------------------------------------------------------------------------


def _show_report(report: ImportReport) -> None:
    known = [entry for entry in report.files if entry["format"]]
    table = Table(
        [
            Column("FILE", 0),
            Column("FORMAT", 16),
            Column("GRADE", 9),
            Column("NEW", 6, is_number=True),
            Column("CALLS", 6, is_number=True),
            Column("TOOLS", 6, is_number=True),
            Column("DAMAGED", 7, is_number=True),
        ]
    )
    for entry in known[:_FILES_LISTED]:
        damaged = len(entry["quarantined"]) + entry["quarantined_more"]
        table.row(
            _end_of(entry["path"]),
            entry["format"],
            entry["grade"],
            entry["records"],
            entry["model_calls"],
            entry["tool_calls"],
            damaged or "-",
        )
    if len(known) > _FILES_LISTED:
        say(f"… and {len(known) - _FILES_LISTED} more files; --json lists them")
    _show_places(known)
    _show_strangers([entry for entry in report.files if not entry["format"]])
    if known:
        _show_totals(report, known)


def _end_of(path: str) -> str:
    """The end of a path tells more than its beginning."""
    room = width() - 57
    return path if len(path) <= room else f"…{path[1 - room :]}"


def _show_places(known: list[FileReport]) -> None:
    places = list(_places(known))
    if places:
        say(f"\nquarantined, {len(places)} places (their bytes are kept):", bold=True)
    for place in places[:_LISTED]:
        say(f"  {visible(place)}")
    if len(places) > _LISTED:
        say(f"  … and {len(places) - _LISTED} more; --json lists them")


def _places(known: list[FileReport]) -> Iterator[str]:
    for entry in known:
        for place in entry["quarantined"]:
            yield f"{entry['path']}:{place['line'] or '?'} {place['reason']}"
        if entry["quarantined_more"]:
            yield f"{entry['path']}: {entry['quarantined_more']} more"


def _show_strangers(strangers: list[FileReport]) -> None:
    """Files that are no traces, by the reason: a folder is often full of them."""
    by_reason: dict[str, list[str]] = {}
    for entry in strangers:
        by_reason.setdefault(str(entry["reason"]), []).append(Path(entry["path"]).name)
    for reason, names in by_reason.items():
        kinds = list(dict.fromkeys(names))
        listed = ", ".join(kinds[:_NAMES_LISTED]) + (", …" if len(kinds) > _NAMES_LISTED else "")
        say(_wrapped(f"not imported, {len(names)} files ({listed}): {reason}", "  ", "\n"))


def _show_totals(report: ImportReport, known: list[FileReport]) -> None:
    say(
        f"\n{report.records_added} records added to {len(report.sessions)} sessions from {len(known)} files"
        + ("" if report.records_added else ": all of it was in the ledger already"),
        bold=True,
    )
    totals = [(title, sum(entry[name] for entry in known)) for title, name in _COUNTS]
    say(_wrapped(", ".join(f"{title} {count}" for title, count in totals if count), "  ", "  "))
    tokens = {name: sum(entry["tokens"][name] for entry in known) for name in known[0]["tokens"]}
    if any(tokens.values()):
        shown = ", ".join(f"{name.replace('_', ' ')} {amount(count)}" for name, count in tokens.items())
        say(f"  tokens, each counted once: {shown}")
    _show_words("types that no rule knows (kept whole)", _summed(known, "unknown"))
    _show_words("secrets by kind", _summed(known, "redacted_kinds"))
    notes = [f"{Path(entry['path']).name}: {note}" for entry in known for note in entry["notes"]]
    for note in notes[:_LISTED]:
        say(_wrapped(note, "    ", "  note: "))
    if len(notes) > _LISTED:
        say(f"  … and {len(notes) - _LISTED} more notes; --json lists them")
    silent = {entry["format"]: entry["cannot_show"] for entry in known}
    if len(silent) <= _FORMATS_TOLD:
        for name, sentences in silent.items():
            say(f"\nwhat {visible(name)} cannot show:", bold=True)
            for sentence in sentences:
                _bullet(sentence)
        return
    say("\nwhat these sources cannot show, among other things (`loopledger formats` tells all):", bold=True)
    for name, sentences in silent.items():
        for sentence in sentences[:1]:
            _bullet(f"{name}: {sentence}")


def _summed(known: list[FileReport], field: str) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for entry in known:
        counts: dict[str, Any] = entry[field]
        for name, count in counts.items():
            found[name] = found.get(name, 0) + count
    return found


def _show_words(title: str, counts: Mapping[str, int]) -> None:
    if counts:
        listed = [f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1])]
        more = f", and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
        say(_wrapped(f"{title}: {', '.join(listed[:_LISTED])}{more}", "    ", "  "))

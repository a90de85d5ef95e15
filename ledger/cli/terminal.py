"""Shows content to people and programs. What comes from a trace is hostile: it never reaches a terminal unescaped."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from textwrap import wrap
from typing import Any, NamedTuple

import orjson
import typer
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ledger.events.canonical import canonical_json

_NARROW, _WIDE = 80, 160
_NOT_SHOWN = re.compile(r"[^\x20-\x7e\n]")
_WIDEST_PRETTY = 200


def visible(text: str, *, keep_lines: bool = False) -> str:
    """The text with everything that a terminal would obey, hide or reorder written as an escape."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or (keep_lines and char in "\n\t") else _escape(char) for char in text
    )


def _escape(char: str) -> str:
    match char:
        case "\n":
            return "\\n"
        case "\t":
            return "\\t"
        case "\r":
            return "\\r"
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_text(value: Any) -> str:
    """One line of JSON. Characters that a terminal would obey, hide or reorder are written as JSON escapes."""
    text = canonical_json(value).decode()
    return text if text.isprintable() else _NOT_SHOWN.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    char = found[0]
    if char.isprintable():
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def pretty(value: Any) -> str:
    """JSON over several lines for people; in one line where it is too deep for that."""
    if isinstance(value, str):
        return visible(value, keep_lines=True)
    try:
        return visible(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode(), keep_lines=True)
    except orjson.JSONEncodeError:  # too deep, a huge integer, half a character
        return json_text(value)


def show_json(value: Any) -> None:
    """Print one JSON value."""
    typer.echo(json_text(value))


def say(text: str = "", *, bold: bool = False, color: str | None = None) -> None:
    """Print a line of ours, styled on a terminal."""
    typer.echo(typer.style(text, bold=bold, fg=color) if bold or color else text)


def width() -> int:
    """Columns to fill: those of the terminal within reason, 80 where there is none."""
    return max(_NARROW, min(Console().width, _WIDE)) if sys.stdout.isatty() else _NARROW


def fit(text: str, cells: int) -> str:
    """The text made visible and cut or padded to so many columns of a terminal."""
    shown = visible(text[: cells * 4])
    if cell_len(shown) <= cells:
        return set_cell_size(shown, cells)
    return set_cell_size(shown, cells - 1) + "…"


def cut(text: str, cells: int) -> str:
    """As `fit`, without padding."""
    return fit(text, cells).rstrip()


class Column(NamedTuple):
    """A column of a table."""

    title: str
    """Its head."""

    cells: int
    """Its width; 0: what is left of the line."""

    is_number: bool = False
    """Numbers stand at the right."""


class Table:
    """A table printed row by row, so that a long one needs no memory."""

    def __init__(self, columns: Sequence[Column]) -> None:
        fixed = sum(column.cells for column in columns) + len(columns) - 1
        left = max(8, width() - fixed)
        self._columns = [column._replace(cells=column.cells or left) for column in columns]
        self._has_head = False

    def row(self, *values: object) -> None:
        """Print one row, the head before the first."""
        if not self._has_head:
            self._has_head = True
            say(self._line([column.title for column in self._columns]), bold=True)
        say(self._line(["" if value is None else str(value) for value in values]))

    def _line(self, values: Sequence[str]) -> str:
        cells = []
        for column, value in zip(self._columns, values, strict=True):
            text = fit(value, column.cells)
            cells.append(text.rstrip().rjust(column.cells) if column.is_number else text)
        return " ".join(cells).rstrip()


def counted(number: int, thing: str) -> str:
    """A number of things: 1 session, 2 sessions."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def say_wrapped(text: str, indent: int) -> None:
    """Print a line of ours, broken between words where a terminal is too narrow; whole where a program reads it."""
    start = " " * indent
    lines = wrap(text, width(), initial_indent=start, subsequent_indent=start) if sys.stdout.isatty() else ()
    say("\n".join(lines) or f"{start}{text}")


def amount(number: int | None) -> str:
    """A number in at most five places: 999, 12.3k, 4.5M; a dash where nobody knows."""
    if number is None:
        return "-"
    if number < 10_000:
        return str(number)
    for unit, size in (("k", 10**3), ("M", 10**6), ("G", 10**9), ("T", 10**12)):
        if number < 1000 * size:
            return f"{number / size:.{0 if number >= 100 * size else 1}f}{unit}"
    return "many"


def moment(time: str | None) -> str:
    """A time to the minute, as it was given."""
    return "-" if time is None else time[:16].replace("T", " ")


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator["Bar"]:
    """A progress bar on the error stream; nothing where that is no terminal."""
    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        yield Bar(bar, what, total)


@contextmanager
def waiting_bar() -> Iterator[Callable[[float | None], None]]:
    """Told how many percent are done, shows a bar; told None, takes it away: rows may stand there now."""
    with ExitStack() as shown:
        bars: list[Bar] = []

        def tell(percent: float | None) -> None:
            if percent is None:
                shown.close()
                bars.clear()
                return
            if not bars:
                bars.append(shown.enter_context(progress("running the query", 100)))
            bars[0].move(int(max(0.0, percent)))

        yield tell


class Bar:
    """A progress bar."""

    def __init__(self, bar: Progress, what: str, total: int | None) -> None:
        self._bar = bar
        self._task = bar.add_task(what, total=total, note="")

    def move(self, done: int, note: str = "") -> None:
        """So much is done."""
        self._bar.update(self._task, completed=done, note=note)

"""A session in short and a record whole: as plain data, and as text for people."""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

import typer

from ledger.cli.records import is_content, outline, record_data, record_json
from ledger.cli.terminal import amount, cut, json_text, pretty, say, visible, width
from ledger.errors import LedgerError
from ledger.events import Record
from ledger.events.canonical import decode_json
from ledger.events.keeping import Imported
from ledger.store import EventStore
from ledger.views.sessions import SessionsView

_LAST = 5
_IMPORTS = 50
_CHILDREN = 50
_PLACES = 10
_CUT_LINES = 40


def session_report(store: EventStore, view: SessionsView, session: str) -> dict[str, Any]:
    """The facts of a session: its row, events by type, imports, children, last records."""
    counts: Counter[str] = Counter()
    last: deque[Record] = deque(maxlen=_LAST)
    imports: deque[dict[str, Any]] = deque(maxlen=_IMPORTS)
    for record in store.read(session):
        counts[record.type] += 1
        last.append(record)
        if isinstance(record.event, Imported):
            imports.append(_import(store, record.event))
    row = view.row(session)
    children: list[str] = []
    for child in view.children(session):
        if len(children) == _CHILDREN:
            break
        children.append(child.id)
    return {
        **({} if row is None else row.as_json()),
        "types": dict(sorted(counts.items())),
        "children": children,
        "imports": list(imports),
        "last": [record_json(record) | {"outline": outline(record)} for record in last],
    }


def _import(store: EventStore, event: Imported) -> dict[str, Any]:
    facts: dict[str, Any] = {"file": event.file, "format": event.format}
    try:
        report = decode_json(store.content(event.report.digest))
        facts |= {name: report[name] for name in ("records", "lines", "quarantined", "redacted")}
    except (LedgerError, ValueError, KeyError, TypeError) as error:
        facts["reason"] = f"its report cannot be read: {error}"
    return facts


def show_session(report: dict[str, Any]) -> None:
    """Print the facts of a session."""
    say(f"session {visible(report['id'])}", bold=True)
    for name in ("name", "harness", "agent", "model", "grade", "started_at", "last_at", "parent"):
        if report[name] is not None:
            _fact(name.replace("_at", ""), report[name])
    for name in ("outcome", "completeness"):
        if report[name] is not None:
            _fact("answers" if name == "completeness" else name, report[name])
    tokens = {name: count for name, count in report["tokens"].items() if count is not None}
    _fact("calls", f"{report['model_calls']} of models, {report['tool_calls']} of tools")
    _fact(
        "tokens",
        ", ".join(f"{name.replace('_', ' ')} {amount(count)}" for name, count in tokens.items()) or "unknown",
    )
    if report["cost_usd"] is not None:
        _fact("cost", f"{report['cost_usd']} USD")
    _fact("findings", report["findings"])
    _fact("integrity", "not verified yet" if report["integrity"] == "unknown" else report["integrity"])
    for child in report["children"]:
        _fact("delegated", child)
    say(f"\n{report['records']} records", bold=True)
    for name, count in report["types"].items():
        say(f"  {count:>7} {visible(name)}")
    for one in report["imports"]:
        _show_import(one)
    say("\nlast records", bold=True)
    for record in report["last"]:
        say(cut(f"  {record['seq']:>7} {record['type']}  {record['outline']}", width()))


def _fact(name: str, value: object) -> None:
    say(cut(f"  {name:<10} {value}", width()))


def _show_import(one: dict[str, Any]) -> None:
    say(f"\nimported from {visible(one['file'])} ({visible(one['format'])})", bold=True)
    if "reason" in one:
        say(f"  {visible(one['reason'])}")
        return
    say(f"  {one['records']} records from {one['lines']} lines, {one['redacted']} secrets taken out")
    for place in one["quarantined"][:_PLACES]:
        say(f"  quarantined: line {place['line'] or '?'}, {visible(str(place['reason']))}")
    if len(one["quarantined"]) > _PLACES:
        say(f"  … and {len(one['quarantined']) - _PLACES} more; --json lists them")


# -- one record ------------------------------------------------------------------------------------------------------


def record_report(store: EventStore, record: Record) -> dict[str, Any]:
    """The record with its contents."""
    contents = {path: _content(store, ref)[0] for path, ref in _contents(record)}
    return record_json(record) | {"contents": contents}


def show_record(store: EventStore, record: Record, *, raw: bool) -> None:
    """Print a record and its contents; `raw`: in one line each, uncut."""
    form = record_json(record)
    if raw:
        typer.echo(json_text(form))
        for path, ref in _contents(record):
            typer.echo(f"{visible(path)} {json_text(_content(store, ref)[0])}")
        return
    say(f"{visible(record.place)}  {visible(record.type)}", bold=True)
    for name, value in form.items():
        if name not in ("session", "seq", "type", "data") and value not in (None, 0):
            _fact(name, value if isinstance(value, str | int) else json_text(value))
    say("\ndata", bold=True)
    for name, value in form["data"].items():
        if value is not None and not is_content(value):
            _fact(name, value if isinstance(value, str | int) else json_text(value))
    for path, ref in _contents(record):
        say(f"\n{visible(path)}  ({ref['size']} bytes of {ref['kind']}, {ref['digest'][:16]}…)", bold=True)
        value, is_there = _content(store, ref)
        lines = pretty(value).split("\n") if is_there else [visible(value)]
        for line in lines[:_CUT_LINES]:
            say(f"  {line[: 10 * width()]}")
        if len(lines) > _CUT_LINES:
            say(f"  … and {len(lines) - _CUT_LINES} more lines; --raw shows all")


def _contents(record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and reference of all content that a record points to."""
    stack: list[tuple[str, Any]] = [("", record_data(record))]
    while stack:
        path, value = stack.pop()
        if is_content(value):
            yield path, value
        elif isinstance(value, dict):
            stack.extend(
                (f"{path}.{name}" if path else name, inner) for name, inner in reversed(value.items())
            )
        elif isinstance(value, list):
            stack.extend((f"{path}[{index}]", value[index]) for index in range(len(value) - 1, -1, -1))
    if record.source is not None and record.source.rest is not None:
        yield "source.rest", {"digest": record.source.rest, "size": None, "kind": "json"}


def _content(store: EventStore, ref: dict[str, Any]) -> tuple[Any, bool]:
    """The content as a value, and true; or what is wrong with it, and false."""
    try:
        content = store.content(ref["digest"])
        return (decode_json(content) if ref["kind"] == "json" else _decoded(content)), True
    except (LedgerError, ValueError) as error:
        return str(error), False


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "backslashreplace")

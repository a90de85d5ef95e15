"""Damages the fixtures of all importers and imports what comes out: `python -m tests.ledger.importers.fuzzing`.

One attempt is one number: it chooses the file and what is done to it, so that a failure can be repeated.
"""

import argparse
import functools
import gzip
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import zstandard

from ledger.home import open_ledger
from ledger.importers import discover
from ledger.importers._files import sniff
from ledger.importers._intake import FileReport, import_paths
from ledger.store import verify
from tests.ledger.importers.fixtures import FIXTURES, case_folders, trace_files

_LONGEST = 60_000
_VALUES = (
    b"null",
    b"true",
    b"-1",
    b"[]",
    b"{}",
    b'""',
    b'"\\ud800"',
    b'"\\u0000"',
    b"1e999",
    b"9" * 400,
    b"0.1e-400",
    b'["a",["b"]]',
    b'{"type":{}}',
    b'{"role":7,"content":[[]]}',
    b'"9999-99-99T99:99:99Z"',
    b"[" * 10_000 + b"]" * 10_000,
    b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
)


@functools.cache
def files() -> tuple[Path, ...]:
    """The fixture files that are small enough to be read hundreds of times."""
    return tuple(
        path for case in case_folders() for path in trace_files(case) if path.stat().st_size < _LONGEST
    )


@functools.cache
def _format_of(path: Path) -> str | None:
    facts = sniff(path)
    return next((name for name, importer in discover().items() if importer.recognizes(facts)), None)


@functools.cache
def _plain(path: Path) -> tuple[bytes, Callable[[bytes], bytes]]:
    """A file's bytes unpacked, and how they are packed again."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            return gzip.decompress(content), gzip.compress
        except EOFError:
            return content, bytes
    if content[:4] == b"\x28\xb5\x2f\xfd":
        reader = zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True)
        return reader.read(), zstandard.ZstdCompressor().compress
    return content, bytes


def damaged(random: Random, path: Path) -> bytes:
    """A file's bytes with one to three things done to them."""
    if random.random() < 0.1:  # below the packing
        return _bytes_changed(random, path.read_bytes())
    content, pack = _plain(path)
    for _ in range(random.randint(1, 3)):
        if content.startswith(b"SQLite format 3\0") and random.random() < 0.8:
            content = _cell_changed(random, content)
        elif content[:1] in (b"{", b"[") and random.random() < 0.7:
            content = random.choice([_value_changed, _value_changed, _lines_changed])(random, content)
        else:
            content = _bytes_changed(random, content)
    return pack(content)


def _bytes_changed(random: Random, content: bytes) -> bytes:
    place = random.randrange(len(content) + 1)
    match random.randrange(5):
        case 0:
            return content[:place]
        case 1:
            changed = bytearray(content)
            for _ in range(random.randint(1, 8)):
                if changed:
                    changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
            return bytes(changed)
        case 2:
            return (
                content[:place]
                + random.choice([b"\0" * 9, b"\xff\xfe", b"\r\n", b"\xed\xa0\x80"])
                + content[place:]
            )
        case 3:
            other = random.randrange(len(content) + 1)
            return content[: min(place, other)] + content[max(place, other) :]
        case _:
            return content[:place] + content[max(0, place - random.randrange(400)) :]


def _lines_changed(random: Random, content: bytes) -> bytes:
    """Lines lost, doubled, swapped, or taken from another file."""
    lines = content.split(b"\n")
    place = random.randrange(len(lines))
    match random.randrange(4):
        case 0:
            del lines[place]
        case 1:
            lines.insert(random.randrange(len(lines)), lines[place])
        case 2:
            other = random.randrange(len(lines))
            lines[place], lines[other] = lines[other], lines[place]
        case _:
            lines[place:place] = _plain(random.choice(files()))[0].split(b"\n")[:2]
    return b"\n".join(lines)


def _value_changed(random: Random, content: bytes) -> bytes:
    """One JSON value replaced by one of another kind."""
    start = random.randrange(len(content))
    colon = content.find(b":", start)
    if colon < 0:
        return content
    rest = content[colon + 1 : colon + 20_000].decode("utf-8", "replace").lstrip()
    try:
        _, length = json.JSONDecoder().raw_decode(rest)
    except (ValueError, RecursionError):
        return content
    after = content[colon + 1 :].lstrip()[len(rest[:length].encode("utf-8")) :]
    return content[: colon + 1] + random.choice(_VALUES) + after


def _cell_changed(random: Random, content: bytes) -> bytes:
    """One value of a database replaced by one of another kind, or cut."""
    with tempfile.NamedTemporaryFile(suffix=".db") as file:
        file.write(content)
        file.flush()
        try:
            connection = sqlite3.connect(file.name)
            try:
                _change_cell(random, connection)
                connection.commit()
            finally:
                connection.close()
        except (sqlite3.Error, OverflowError):
            return content
        return Path(file.name).read_bytes()


def _change_cell(random: Random, connection: sqlite3.Connection) -> None:
    connection.text_factory = bytes
    names = connection.execute("select name from sqlite_master where type = 'table' order by name").fetchall()
    table = random.choice(names)[0].decode().replace('"', '""')
    columns = [row[1].decode() for row in connection.execute(f'pragma table_info("{table}")')]
    rows = [row[0] for row in connection.execute(f'select rowid from "{table}" order by rowid')]
    if not rows:
        return
    column, row = random.choice(columns).replace('"', '""'), random.choice(rows)
    old = connection.execute(f'select "{column}" from "{table}" where rowid = ?', (row,)).fetchone()[0]
    new: object = random.choice([*_VALUES, None, -1, 2**62, 1.5, "\0"])
    if isinstance(old, bytes) and random.random() < 0.6:
        new = _value_changed(random, old) if old[:1] in (b"{", b"[") else _bytes_changed(random, old)
    if isinstance(new, bytes) and random.random() < 0.5:
        new = new.decode("utf-8", "replace")
    connection.execute(f'update "{table}" set "{column}" = ? where rowid = ?', (new, row))


def attempt(number: int, folder: Path) -> None:
    """Damage one file and import it, as what it was, what it seems, or what it never was. Raises AssertionError."""
    random = Random(number)
    path = random.choice(files())
    trace = folder / path.relative_to(FIXTURES)
    trace.parent.mkdir(parents=True, exist_ok=True)
    trace.write_bytes(damaged(random, path))
    chosen = random.choice([None, None, _format_of(path), _format_of(path), random.choice(list(discover()))])
    with open_ledger(folder / "home") as ledger:
        (report,) = import_paths(ledger.recorder, [trace], format_name=chosen).files
        damages = sum(record.type == "recovery.damage_found" for record in ledger.store.read_all())
        check(report, damages, _blanks(trace))
        if report["format"] is not None:
            assert import_paths(ledger.recorder, [trace], format_name=chosen).records_added == 0
        if random.random() < 0.2:
            assert verify(ledger.store).problems == []


def _blanks(path: Path) -> int:
    """Lines of a file that hold nothing; more than there can be when the file is packed or binary."""
    content = path.read_bytes()
    if content[:1] not in (b"{", b"["):
        return len(content) * 100
    return sum(not line.strip(b"\0 \t\r") for line in content.split(b"\n"))


def check(report: FileReport, damages: int, blanks: int) -> None:
    """What every report promises: a reason, or records that add up to what was read."""
    if report["format"] is None or "reason" in report:
        assert report["reason"]
        return
    quarantined = len(report["quarantined"]) + report["quarantined_more"]
    joined = len(report["repaired"]) + report["repaired_more"]  # lines that one record was broken over
    assert damages or not quarantined, "a place was quarantined, and its bytes were not kept"
    assert sum(report["native"].values()) + quarantined + joined + blanks >= report["lines"], (
        "records were read and not told of"
    )


def main() -> int:
    """Attempts for a time; a failure is told with its number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on (default 60)")
    parser.add_argument("--first", type=int, default=0, help="number of the first attempt (default 0)")
    parser.add_argument("--count", type=int, default=2**62, help="how many attempts at most")
    chosen = parser.parse_args()
    until, failed, number = time.monotonic() + chosen.seconds, 0, chosen.first
    while time.monotonic() < until and number < chosen.first + chosen.count:
        with tempfile.TemporaryDirectory() as folder:
            try:
                attempt(number, Path(folder))
            except Exception as error:  # noqa: BLE001 - every failure is told of, and the next attempt made
                failed += 1
                print(f"attempt {number} failed: {type(error).__name__}: {error}"[:400])
        number += 1
    print(f"{number - chosen.first} attempts, {failed} failed; the next is number {number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

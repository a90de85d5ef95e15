"""Full text search: text indexed a second, size of the index, answers against reading all texts, choice of tokenizer.

`SEARCH_TEXTS=200000 make bench PART=search` measures a larger one.
"""

import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import zstandard

from ledger.events import Draft
from ledger.events.tool_call import ToolCallSettled
from ledger.home import Ledger, open_ledger
from ledger.views.search import SearchView
from tests.benchmarks.measure import Result, file_bytes

_TEXTS = int(os.environ.get("SEARCH_TEXTS", "20000"))
_WORDS = 80
_TOGETHER = 500
_SYLLABLES = "ba ce di fi gu ha ke li mo nu pa re si to vu wa ye za".split()
_RARE = "zanzibarquokka"


def _text(chance: random.Random, number: int, vocabulary: list[str]) -> str:
    words = [vocabulary[int(len(vocabulary) * chance.random() ** 3)] for _ in range(_WORDS)]
    words[3] = f"src/{words[0]}/{words[1]}_{words[2]}.py:{number % 400}"
    if number % (_TEXTS // 10) == 7:
        words[9] = _RARE
    return " ".join(words)


def _texts() -> list[str]:
    chance = random.Random(7)  # the same texts at each run
    vocabulary = ["".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(20_000)]
    return [_text(chance, number, vocabulary) for number in range(_TEXTS)]


def _fill(ledger: Ledger, texts: list[str]) -> None:
    for start in range(0, len(texts), _TOGETHER):
        keeper = ledger.recorder.keeper()
        drafts = [
            Draft(
                ToolCallSettled(call_id=str(number), outcome="returned", result=keeper.json({"output": text}))
            )
            for number, text in enumerate(texts[start : start + _TOGETHER])
        ]
        ledger.recorder.append(f"session-{start}", drafts, keeper)


def run() -> Iterator[Result]:
    """The lines of this part."""
    texts = _texts()
    size = sum(map(len, texts))
    with tempfile.TemporaryDirectory() as name, open_ledger(name) as ledger:
        _fill(ledger, texts)
        with SearchView(ledger.home, ledger.store) as view:
            cpu = time.process_time()
            view.catch_up()
            cpu = time.process_time() - cpu
        index = file_bytes(ledger.home / "views")  # its write-ahead log is emptied when it is closed
        with SearchView(ledger.home, ledger.store) as view:
            yield Result(
                f"search: {_TEXTS:,} texts of {size / _TEXTS:.0f} bytes indexed",
                f"{size / cpu / 1e6:.1f} MB/s of CPU, {cpu / _TEXTS * 1e6:.0f} us a text",
                "-",
                None,
            )
            yield Result(
                "search: size of the index, texts included", f"{index / size:.2f}x the texts", "-", None
            )
            everything = _ms(lambda: _read_all(next((ledger.home / "views").glob("search-*.sqlite"))))
            for what, query in (
                ("a rare word", _RARE),
                ("a frequent word", texts[0].split()[20]),
                ("a path", texts[_TEXTS // 2].split()[3]),
                ("two frequent words", " ".join(texts[1].split()[20:22])),
            ):
                took = _ms(partial(view.search, query))
                yield Result(
                    f"search: {what}, first page",
                    f"{took:.2f} ms; {everything / took:,.0f}x faster than reading all texts",
                    "< 50 ms",
                    took < 50,
                )
        for tokenizer in ("unicode61 remove_diacritics 2", "trigram"):
            path = Path(name) / f"{tokenizer.split()[0]}.sqlite"
            seconds = _bare(path, tokenizer, texts)
            yield Result(
                f"bare FTS5 of the same texts, {tokenizer}",
                f"{size / seconds / 1e6:.1f} MB/s of CPU, {path.stat().st_size / size:.2f}x the texts",
                "-",
                None,
            )


def _bare(path: Path, tokenizer: str, texts: list[str]) -> float:
    """CPU seconds of an index alone, without texts: what a choice of tokenizer costs."""
    connection = sqlite3.connect(path)
    connection.execute(
        f"create virtual table words using fts5 (text, content = '', tokenize = '{tokenizer}')"
    )
    started = time.process_time()
    connection.executemany("insert into words (rowid, text) values (?, ?)", enumerate(texts, 1))
    connection.commit()
    spent = time.process_time() - started
    connection.close()
    return spent


def _read_all(path: Path) -> int:
    """What there is to do without an index: unpack every text and look."""
    with closing(sqlite3.connect(path)) as connection:
        bodies = connection.execute("select body from places")
        return sum(_RARE.encode() in zstandard.decompress(body) for (body,) in bodies)


def _ms(work: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        started = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - started))
    return sorted(times)[2]

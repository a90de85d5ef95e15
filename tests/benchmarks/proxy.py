"""What the recording proxy adds to a call, and what 400 calls of a growing history cost."""

import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ledger.events.model_call import ModelCallRequested
from ledger.home import open_ledger
from replay.raw import raw_matches, raw_request
from tests.benchmarks.measure import Result, file_bytes
from tests.scripted_model import Script, ScriptedModel, Step, Text
from tests.webui.proxied import RUN, proxy_process

_CALLS = 200
_TURNS = 400
_FILLER = 90_000
"""Bytes of a harness's usual system prompt and tools."""


class _Client:
    """One connection that stays open."""

    def __init__(self, url: str, prefix: str = "") -> None:
        place = urlsplit(url)
        self._connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
        self._path = f"{prefix}/v1/messages"

    def call(self, body: bytes) -> tuple[float, float]:
        """Milliseconds to the first byte of the answer's body, and to its end."""
        started = time.perf_counter()
        self._connection.request("POST", self._path, body, {"content-type": "application/json"})
        answer = self._connection.getresponse()
        answer.read(1)
        first = time.perf_counter()
        answer.read()
        return (first - started) * 1000, (time.perf_counter() - started) * 1000


def _request(turns: int, filler: int, *, stream: bool = True) -> bytes:
    said = [
        {"role": "user" if turn % 2 == 0 else "assistant", "content": f"turn {turn}: " + "words again " * 60}
        for turn in range(turns)
    ]
    body: dict[str, Any] = {"model": "m", "max_tokens": 64, "stream": stream, "messages": said}
    if filler:
        body["system"] = "rule after rule " * (filler // 16)
    return json.dumps(body).encode()


def run() -> list[Result]:
    """The lines of the table."""
    script = Script(default=Step([Text("one two three " * 20)]))
    with (
        tempfile.TemporaryDirectory() as home,
        ScriptedModel(script) as model,
        proxy_process(Path(home), model.url) as (url, _),
    ):
        direct, proxied = _Client(model.url), _Client(url, f"/run/{RUN}")
        results = _overhead(direct.call, proxied.call)
    with tempfile.TemporaryDirectory() as home, ScriptedModel(script) as model:
        with proxy_process(Path(home), model.url) as (url, _):
            results += _growing(_Client(model.url).call, _Client(url, f"/run/{RUN}").call, Path(home))
        results += _rebuilt(Path(home))
    return results


def _overhead(
    direct: Callable[[bytes], tuple[float, float]], proxied: Callable[[bytes], tuple[float, float]]
) -> list[Result]:
    results = []
    for name, body in (("2 kB", _request(3, 0)), ("100 kB", _request(11, _FILLER))):
        for _ in range(20):
            direct(body), proxied(body)
        pairs = [(direct(body), proxied(body)) for _ in range(_CALLS)]
        for what, place in (("first byte", 0), ("whole call", 1)):
            plain = statistics.median(one[place] for one, _ in pairs)
            added = statistics.median(other[place] - one[place] for one, other in pairs)
            results.append(
                Result(
                    f"proxy, {name} request: added to the {what}, p50",
                    f"{added:.2f} ms (direct {plain:.2f} ms)",
                    "< 3 ms",
                    added < 3,
                )
            )
    return results


def _growing(
    direct: Callable[[bytes], tuple[float, float]],
    proxied: Callable[[bytes], tuple[float, float]],
    home: Path,
) -> list[Result]:
    sizes: list[int] = []
    added: list[float] = []
    sent = 0
    for turn in range(_TURNS):
        body = _request(2 * turn + 1, _FILLER)
        sent += len(body)
        added.append(proxied(body)[1] - direct(body)[1])
        if turn + 1 in (_TURNS // 2, _TURNS):
            sizes.append(file_bytes(home))
    quarter = _TURNS // 4
    early, late = statistics.median(added[:quarter]), statistics.median(added[-quarter:])
    new = 2 * len(json.dumps("turn 100: " + "words again " * 60))
    ratio = sizes[1] / sizes[0]
    return [
        Result(
            f"proxy, {_TURNS} calls of a growing history: files, second half against first",
            f"{(sizes[1] - sizes[0]) / sizes[0]:.2f}x ({sizes[1] / 1e6:.1f} MB of {sent / 1e6:.0f} MB sent,"
            f" {(sizes[1] - sizes[0]) / (_TURNS / 2) / 1000:.1f} kB a call with {new / 1000:.1f} kB new)",
            "<= 1.2x",
            ratio <= 2.2,
        ),
        Result(
            "proxy, the same: added to a call, last quarter against first",
            f"{late:.2f} ms against {early:.2f} ms",
            "-",
            None,
        ),
    ]


def _rebuilt(home: Path) -> list[Result]:
    with open_ledger(home) as ledger:
        store = ledger.store
        records = [one for one in store.read(RUN) if isinstance(one.event, ModelCallRequested)]
        started = time.process_time()
        good = sum(
            raw_matches(store, record.event, raw_request(store, record.event)) is True
            for record in records[:: max(1, len(records) // 20)]
            if isinstance(record.event, ModelCallRequested)
        )
        spent = (time.process_time() - started) / 20
    return [
        Result(
            "proxy, the same: 20 requests over the whole run rebuilt byte for byte",
            f"{good} with their digest, {spent * 1000:.1f} ms each",
            ">= 20",
            good >= 20,
        )
    ]

"""What the receiver acknowledged is there, whatever happens to it or to its disk afterwards."""

import json
import resource
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.events.tool_call import ToolCallRequested
from ledger.home import open_ledger
from ledger.store import verify
from tests.webui.otlp_spans import request, tool
from tests.webui.served import PROTOBUF, batch, post, served

_SPANS, _BATCH = 10_000, 500


def _calls(home: Path, store: str | None = None) -> Counter[str]:
    """Tool calls by id; the ledger verifies."""
    with open_ledger(home, store) as ledger:
        assert verify(ledger.store).ok
        events = (record.event for record in ledger.store.read_all(names=[ToolCallRequested.TYPE]))
        return Counter(event.call_id for event in events if isinstance(event, ToolCallRequested))


def _killed_after_the_last_answer(home: Path, store: str | None) -> None:
    with served(home, store=store) as (url, child):
        for first in range(0, _SPANS, _BATCH):
            status, _, body = post(f"{url}/v1/traces", batch(first, _BATCH))
            assert (status, body) == (200, b"")
        child.kill()
    expected = {f"call-{number}": 1 for number in range(1, _SPANS)}
    assert _calls(home, store) == expected
    with served(home, store=store) as (url, _):
        assert post(f"{url}/v1/traces", batch(_SPANS - _BATCH, _BATCH))[0] == 200
    assert _calls(home, store) == expected


def test_ten_thousand_spans_are_there_after_a_kill(tmp_path: Path) -> None:
    _killed_after_the_last_answer(tmp_path, None)


def test_ten_thousand_spans_are_there_after_a_kill_on_postgresql(
    tmp_path: Path, postgres_database: str
) -> None:
    _killed_after_the_last_answer(tmp_path, postgres_database)


def test_a_full_queue_says_when_to_come_again_and_loses_nothing_that_it_took(tmp_path: Path) -> None:
    answers: dict[int, int] = {}
    arrived = threading.Condition()

    def send(number: int) -> None:
        status, headers, _ = post(f"{url}/v1/traces", request(tool(number, parent=0)))
        assert (status == 429) == ("retry-after" in {name.lower() for name in headers})
        with arrived:
            answers[number] = status
            arrived.notify_all()

    with served(tmp_path) as (url, _):
        blocker = sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)
        blocker.execute("begin immediate")  # another process writes, and takes its time
        senders = [threading.Thread(target=send, args=(number,)) for number in range(1, 101)]
        for sender in senders:
            sender.start()
        with arrived:
            # The writer holds 16 at most, the queue 64: these are refused while all others wait.
            assert arrived.wait_for(lambda: len(answers) >= 20, 120)
            assert set(answers.values()) == {429}
        blocker.execute("rollback")
        blocker.close()
        for sender in senders:
            sender.join()
        assert set(answers.values()) == {200, 429}
        taken = [number for number, status in answers.items() if status == 200]
        assert _calls(tmp_path) == {f"call-1-{number}": 1 for number in taken}
        for number in answers:
            assert post(f"{url}/v1/traces", request(tool(number, parent=0)))[0] == 200
    assert _calls(tmp_path) == {f"call-1-{number}": 1 for number in range(1, 101)}


def test_a_disk_that_is_full_is_said_and_nothing_is_lost_when_there_is_room_again(tmp_path: Path) -> None:
    with served(tmp_path) as (url, child):
        assert post(f"{url}/v1/traces", batch(0, 10))[0] == 200
        unlimited = resource.prlimit(child.pid, resource.RLIMIT_FSIZE)
        largest = max(path.stat().st_size for path in tmp_path.glob("ledger.sqlite*"))
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (largest, unlimited[1]))
        for _ in range(2):
            status, headers, body = post(f"{url}/v1/traces", batch(10, 500))
            assert status == 503 and "retry-after" in {name.lower() for name in headers} and body
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, unlimited)
        assert post(f"{url}/v1/traces", batch(10, 500))[0] == 200
        child.kill()
    assert _calls(tmp_path) == {f"call-{number}": 1 for number in range(1, 510)}


def _span_with(key: str, value: object) -> bytes:
    span = {"traceId": "07" * 16, "spanId": "02" * 8, "name": "a", key: value}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


@pytest.mark.parametrize(
    "poison",
    [
        lambda: _span_with("startTimeUnixNano", {"deep": []}),
        lambda: _span_with("attributes", [{"key": "gen_ai.operation.name", "value": {"intValue": "x" * 99}}]),
        lambda: _span_with("attributes", "no list"),
        lambda: _span_with("events", [{"name": 7, "attributes": 7}]),
        lambda: _span_with("links", [[[]]]),
        lambda: _span_with("status", "STATUS_CODE_WHAT"),
        lambda: b'{"resourceSpans": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        lambda: b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "\\ud800"}]}]}]}',
    ],
)
def test_whatever_comes_the_next_one_is_served(tmp_path: Path, poison: Callable[[], bytes]) -> None:
    with served(tmp_path) as (url, child):
        status = post(f"{url}/v1/traces", poison(), kind="application/json")[0]
        assert status in (200, 400)
        assert post(f"{url}/v1/traces", batch(0, 2), kind=PROTOBUF)[0] == 200
        assert child.poll() is None
    assert _calls(tmp_path) == {"call-1": 1}

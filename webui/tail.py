"""The live tail: new events of a session as server-sent events, from any seq on, without a gap after a cut."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from typing import Annotated
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from ledger.cli.records import outline
from ledger.errors import LedgerError
from ledger.store import EventStore
from ledger.store.mapper import decode_record
from ledger.views.event_row import LEVELS, EventRow, row_of
from webui.dependencies import LedgerDep, SessionDep
from webui.rendering import render_text

_ROWS = 50
_PAUSE_S = 0.1
_BEAT_S = 15.0
_LOOKS_UP_S = 1.0  # so soon a tail notices that its reader has left
_SEQ = re.compile(r"[0-9]{1,18}")


class News:
    """Tells all tails of one event loop when there is something new in the ledger: one look for all of them."""

    def __init__(self, store: EventStore) -> None:
        self.position = -1
        """Last position that was seen."""
        self._store = store
        self._news = asyncio.Event()
        self._waiting = 0
        self._looking: asyncio.Task[None] | None = None

    async def wait(self, seen: int, seconds: float) -> None:
        """Return when the last position is another one than `seen`, or when the time is over."""
        self._waiting += 1
        try:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            if self.position == seen:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), seconds)
        finally:
            self._waiting -= 1

    async def _look(self) -> None:
        while self._waiting:
            with contextlib.suppress(LedgerError):  # looked again in a moment
                position = await run_in_threadpool(self._store.last_position)
                if position != self.position:
                    self.position = position
                    news, self._news = self._news, asyncio.Event()
                    news.set()
            await asyncio.sleep(_PAUSE_S)


def tail_routes() -> APIRouter:
    """The address of the tail."""
    router = APIRouter(include_in_schema=False)
    told: WeakKeyDictionary[asyncio.AbstractEventLoop, News] = WeakKeyDictionary()

    @router.get("/sessions/{session}/tail")
    async def tail(
        request: Request,
        ledger: LedgerDep,
        session: SessionDep,
        after: Annotated[int, Query(ge=0, le=2**53)] = 0,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> Response:
        """Rows after a seq, and all that come; a browser that was cut off says which it had last."""
        if last_event_id is not None and _SEQ.fullmatch(last_event_id):
            after = int(last_event_id)
        news = told.setdefault(asyncio.get_running_loop(), News(ledger.store))
        messages = _messages(request, ledger.store, news, session, after)
        return StreamingResponse(
            messages, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )

    return router


async def _messages(
    request: Request, store: EventStore, news: News, session: str, after: int
) -> AsyncIterator[str]:
    """At most ten messages a second, each of at most fifty rows; a beat where nothing happens."""
    silent_since = time.monotonic()
    yield "retry: 500\n\n"
    while not await request.is_disconnected():
        seen = news.position
        rows = await run_in_threadpool(_rows_after, store, session, after)
        if rows:
            after, silent_since = rows[-1].seq, time.monotonic()
            text = await run_in_threadpool(render_text, "_rows.html", rows=rows, session=session)
            data = "".join(f"data: {line}\n" for line in text.splitlines() if line.strip())
            yield f"id: {after}\n{data}\n"
            await asyncio.sleep(_PAUSE_S)
            continue
        await news.wait(seen, _LOOKS_UP_S)
        if time.monotonic() - silent_since >= _BEAT_S:
            silent_since = time.monotonic()
            yield ": still here\n\n"


def _rows_after(store: EventStore, session: str, after: int) -> list[EventRow]:
    rows = []
    for item in store.recorder.select_events(session, gt=after, limit=_ROWS):
        try:
            record = decode_record(item)
            rows.append(row_of(record, outline(record)))
        except LedgerError as error:
            rows.append(
                EventRow(item.originator_version, item.topic, len(LEVELS) - 1, None, None, str(error)[:160])
            )
    return rows

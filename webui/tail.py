"""The live tail: new events of a session as server-sent events, from any seq on, without a gap after a cut."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Annotated

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
_SEQ = re.compile(r"[0-9]{1,18}")


def tail_routes() -> APIRouter:
    """The address of the tail."""
    router = APIRouter(include_in_schema=False)

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
        messages = _messages(request, ledger.store, session, after)
        return StreamingResponse(
            messages, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )

    return router


async def _messages(request: Request, store: EventStore, session: str, after: int) -> AsyncIterator[str]:
    """At most ten messages a second, each of at most fifty rows; a beat where nothing happens."""
    silent_s = 0.0
    yield "retry: 500\n\n"
    while not await request.is_disconnected():
        rows = await run_in_threadpool(_rows_after, store, session, after)
        if rows:
            after, silent_s = rows[-1].seq, 0.0
            text = await run_in_threadpool(render_text, "_rows.html", rows=rows, session=session)
            data = "".join(f"data: {line}\n" for line in text.splitlines() if line.strip())
            yield f"id: {after}\n{data}\n"
        else:
            silent_s += _PAUSE_S
            if silent_s >= _BEAT_S:
                silent_s = 0.0
                yield ": still here\n\n"
        await asyncio.sleep(_PAUSE_S)


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

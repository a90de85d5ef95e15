"""The web application: health, the OTLP/HTTP receiver, the recording proxy. Pages come with their own modules."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from ledger.capture.otlp import MOST_BYTES, Receiver
from ledger.capture.proxy import Runs
from ledger.effects.loop_policy import LoopPolicy
from ledger.home import Ledger
from webui.lost import Lost
from webui.otlp_http import otlp_routes
from webui.proxy import ProxyApp
from webui.upstreams import Upstreams


def create_app(
    ledger: Ledger,
    *,
    most_bytes: int = MOST_BYTES,
    receiver: Receiver | None = None,
    upstreams: Upstreams | None = None,
    policy: LoopPolicy | None = None,
) -> FastAPI:
    """The application over an open ledger. It closes its receivers, not the ledger, when it shuts down."""
    receiving = receiver or Receiver(ledger.recorder)
    lost = Lost()
    runs = Runs(ledger.recorder, lost=lost, policy=policy)
    proxy = ProxyApp(runs, upstreams or Upstreams(), most_bytes=most_bytes)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await proxy.close()
        await run_in_threadpool(runs.close)
        await run_in_threadpool(receiving.close)

    app = FastAPI(title="loopledger", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/healthz")
    async def health() -> dict[str, str | int]:
        return {"status": "ok", "lost_answers": lost.count}

    app.include_router(otlp_routes(receiving, most_bytes))
    app.mount("/run", proxy)
    return app

"""The web application: pages and their API, the OTLP/HTTP receiver, the recording proxy, behind one guard."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope as StaticScope

from ledger.capture.otlp import MOST_BYTES, Receiver
from ledger.capture.proxy import Runs
from ledger.effects.loop_policy import LoopPolicy
from ledger.home import Ledger
from webui.asgi import Receive, Scope, Send
from webui.dependencies import Parts, Web
from webui.guard import Guard
from webui.logins import Logins
from webui.lost import Lost
from webui.otlp_http import otlp_routes
from webui.page import API_PREFIX, all_pages
from webui.problems import add_problem_handlers, answer, problem
from webui.proxy import ProxyApp
from webui.reading import Lists
from webui.rendering import HERE, JOINED, joined_scripts
from webui.settings import WebSettings, login_name
from webui.tail import tail_routes
from webui.upstreams import Upstreams

_KEPT_A_DAY = {"Cache-Control": "private, max-age=86400"}


def create_app(
    ledger: Ledger,
    *,
    most_bytes: int = MOST_BYTES,
    receiver: Receiver | None = None,
    upstreams: Upstreams | None = None,
    policy: LoopPolicy | None = None,
    settings: WebSettings | None = None,
    logins: Logins | None = None,
    parts: Parts | None = None,
) -> Guard:
    """The application over an open ledger. It closes its receivers, not the ledger, when it shuts down."""
    receiving = receiver or Receiver(ledger.recorder)
    lost = Lost()
    runs = Runs(ledger.recorder, lost=lost, policy=policy)
    proxy = ProxyApp(runs, upstreams or Upstreams(), most_bytes=most_bytes)
    told = settings or WebSettings()
    beside = parts or Parts(ledger, told)
    web = Web(ledger, Lists(ledger), logins or Logins(login_name()), told, beside)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if web.settings.catches_up:
            web.lists.start(told.store, lake=told.lake)
        yield
        await proxy.close()
        await run_in_threadpool(runs.close)
        await run_in_threadpool(receiving.close)
        await run_in_threadpool(beside.close)
        await run_in_threadpool(web.lists.close)

    app = FastAPI(
        title="loopledger",
        description="The JSON twin of every page.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # an id of one dot would lead to the list that it is missing in
        openapi_url=f"{API_PREFIX}/openapi.json",
    )
    app.state.web = web
    app.state.navigation = [page.entry for page in all_pages() if page.entry is not None]
    add_problem_handlers(app)

    @app.get("/healthz", include_in_schema=False)
    async def health() -> dict[str, str | int]:
        return {"status": "ok", "lost_answers": lost.count}

    @app.get("/", include_in_schema=False)
    async def start() -> RedirectResponse:
        return RedirectResponse("/sessions", 303)

    for page in all_pages():
        app.include_router(page.html)
        app.include_router(page.api)
    app.include_router(tail_routes())
    app.include_router(otlp_routes(receiving, most_bytes), include_in_schema=False)
    app.mount("/run", proxy)

    @app.get(f"/static/vendor/{JOINED}", include_in_schema=False)
    def htmx() -> Response:  # one script: see JOINED
        return Response(joined_scripts(), media_type="text/javascript", headers=_KEPT_A_DAY)

    app.mount("/static", _Static(directory=HERE / "static"))

    async def refuse(scope: Scope, receive: Receive, send: Send, status: int, sentence: str) -> None:
        request = Request({**scope, "app": app})
        await answer(request, problem(status, sentence))(scope, receive, send)

    return Guard(app, logins=web.logins, hosts=web.settings.hosts, refuse=refuse)


class _Static(StaticFiles):
    """Our style sheet and scripts; their addresses carry a digest, so a browser may keep them."""

    async def get_response(self, path: str, scope: StaticScope) -> Response:
        """The file."""
        response = await super().get_response(path, scope)
        response.headers.update(_KEPT_A_DAY)
        return response

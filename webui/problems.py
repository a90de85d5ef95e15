"""What a page says when something is wrong: which parameter, what to do. Never shows what is inside the server."""

import logging
import secrets
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.routing import Match

from ledger.cli.terminal import visible
from ledger.errors import (
    AmbiguousSessionError,
    ConflictError,
    ContentMissingError,
    HeldError,
    InputError,
    LedgerError,
    RecordNotFoundError,
    SessionNotFoundError,
    StoreUnavailableError,
)
from ledger.lake.sandbox import QueriesBusyError
from webui.console import UnknownQueryError
from webui.guard import API
from webui.jobs import BusyError
from webui.rendering import render

_log = logging.getLogger(__name__)
_LONGEST = 2000
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_STATUSES: tuple[tuple[type[LedgerError], int], ...] = (
    (SessionNotFoundError, 404),
    (AmbiguousSessionError, 404),
    (RecordNotFoundError, 404),
    (ContentMissingError, 404),
    (UnknownQueryError, 404),
    (StoreUnavailableError, 503),
    (QueriesBusyError, 429),
    (BusyError, 429),
    (InputError, 400),
    (ConflictError, 409),
    (HeldError, 409),
)


class Problem(BaseModel):
    """What is wrong."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    status: int
    """HTTP status."""

    heading: str
    """The status in words."""

    sentence: str
    """What was expected, what was found, what to do."""

    candidates: list[str] = []
    """Ids that may have been meant."""

    request_id: str | None = None
    """What to look for in the log of the server."""


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "A parameter or a body cannot be used; the sentence names it."},
    401: {"model": Problem, "description": "No login and no token."},
    403: {"model": Problem, "description": "It came from another site, or is not allowed."},
    404: {"model": Problem, "description": "There is no such thing."},
    409: {"model": Problem, "description": "It cannot be done as things stand."},
    "default": {"model": Problem, "description": "Anything else that is wrong."},
}
"""Answers that every address of the API may give."""


def answer(request: Request, problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """A problem as the asker reads it: a page, a piece of one, or JSON."""
    if request.url.path.startswith(API) or request.scope["state"].get("nonce") is None:
        response: Response = JSONResponse(problem.model_dump(), problem.status)
    else:
        template = "misdirected.html" if problem.status == HTTPStatus.MISDIRECTED_REQUEST else "problem.html"
        response = render(
            request, problem.heading, template, problem, part="_problem.html", status=problem.status
        )
    response.headers.update(headers or {})
    if problem.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def problem(status: int, sentence: str, **more: Any) -> Problem:
    """A problem with the words of its status."""
    try:
        heading = HTTPStatus(status).phrase
    except ValueError:
        heading = "Problem"
    return Problem(status=status, heading=heading, sentence=visible(sentence[:_LONGEST]), **more)


def add_problem_handlers(app: FastAPI) -> None:
    """Answer every error of a page."""

    @app.exception_handler(RequestValidationError)
    async def wrong_parameter(request: Request, error: RequestValidationError) -> Response:
        return answer(request, problem(400, _named(error)))

    @app.exception_handler(StarletteHTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        sentence, headers = str(error.detail), dict(error.headers or {})
        if error.status_code == 404 and sentence == HTTPStatus.NOT_FOUND.phrase:
            sentence = "There is no such page."
        elif error.status_code == 405:
            sentence = "This address is asked in another way; its page has the form or the link."
            headers["Allow"] = ", ".join(_ways(request)) or "GET, HEAD"
        return answer(request, problem(error.status_code, sentence), headers)

    @app.exception_handler(LedgerError)
    async def wrong_input(request: Request, error: LedgerError) -> Response:
        status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
        if status == 400 and request.method == "POST":
            status = 409  # its fields are right, each by itself: it cannot be done as things stand
        candidates = error.candidates if isinstance(error, AmbiguousSessionError) else []
        return answer(request, problem(status, str(error), candidates=candidates))

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        identity = secrets.token_hex(4)
        _log.error("request %s failed", identity, exc_info=error)
        sentence = f"The server failed at this. Its log tells more about request {identity}."
        return answer(request, problem(500, sentence, request_id=identity))


def _ways(request: Request) -> list[str]:
    """The methods of an address: of all its routes, where the framework knows those of the first."""
    found = [
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.routes
        )
    ]
    return [*found, "HEAD"] if "GET" in found and "HEAD" not in found else found


def _named(error: RequestValidationError) -> str:
    """The first thing that is wrong, by the name of its parameter."""
    first = error.errors()[0]
    where, *path = [str(step) for step in first["loc"]]
    name = ".".join(path) or where
    kind = {"query": "the query", "path": "the address", "body": "the form or body"}.get(where, where)
    found = first.get("input")
    told = f"; found {found[:80]!r}" if isinstance(found, str) else ""
    return f"Parameter {name!r} of {kind} cannot be used: {first['msg']}{told}."

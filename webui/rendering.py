"""The only Jinja environment: page or fragment, navigation, nonce, and every text made visible on its way out."""

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel

from ledger.cli.terminal import amount, moment
from webui.dependencies import login_of, segment, web_of
from webui.visible import colored, cut, visible
from webui.windows import gap

HERE = Path(__file__).parent
VENDOR = HERE / "static" / "vendor"
"""Where `make setup` and the wheel build put htmx."""

_SCRIPTS = ("htmx.min.js", "hx-sse.min.js", "hx-csp.min.js")
JOINED = "htmx.js"
"""htmx and its extensions as one script: loaded apart, htmx may look at a page before hx-csp guards it."""

_FRAGMENT = "partial"
_KEPT = "private, max-age=600"
_LEADS_AWAY = re.compile(
    r"<(?=(?:meta|link|base)(?![a-z]))(?!"
    r'meta charset="utf-8">|meta name="viewport" content="width=device-width, initial-scale=1">'
    r'|meta name="color-scheme" content="light dark">'
    r'|meta name="htmx-config" content=\'\{"extensions":"sse, hx-csp","defaultTimeout":15000,'
    r'"noSwap":\[204,304,"5xx"\]\}\'>'
    r'|link rel="icon" href="data:,">|link rel="stylesheet" href="/static/app\.css\?v=[0-9a-f]{12}">)',
    re.IGNORECASE,
)
"""The start of a tag that may lead away, and is none of ours."""

_THEMES = ("light", "dark")
_DENSITIES = ("compact", "roomy")
_ABOVE = {"rollback": "checkpoints", "divergence": "replays", "fork": "branches"}
"""Pages of a session that stand under another one in its navigation."""


class Entry(NamedTuple):
    """A place in the navigation."""

    title: str
    """What it is called."""

    link: str
    """Its address; with `{session}` in the navigation of a session."""

    order: int
    """Its place: small numbers first."""


@dataclass(frozen=True)
class Shell:
    """What the frame of every page may use, beside the context of the page."""

    title: str
    """Title of the page."""

    nonce: str
    """What our own script and htmx elements carry."""

    form_token: str
    """What every form carries."""

    who: str | None
    """Who is logged in."""

    path: str
    """Address of the page, with its query."""

    navigation: list[Entry]
    """The main navigation."""

    session: str | None = None
    """The session that the page is about."""

    session_navigation: list[Entry] = field(default_factory=list)
    """The navigation of that session."""

    here: str = ""
    """The link of the navigation that this page is under."""

    theme: str = ""
    """`light`, `dark`, or empty for what the system says."""

    density: str = ""
    """`compact`, `roomy`, or empty."""

    has_keys: bool = True
    """Whether single keys do something."""

    scripts: tuple[str, ...] = ()
    """Names of the scripts of htmx that are there; without them pages are links and forms."""


def joined_scripts() -> bytes:
    """What stands at `JOINED`."""
    return b";\n".join((VENDOR / name).read_bytes() for name in _SCRIPTS)


def _finalize(value: Any) -> Any:
    """Every text on its way into a page; what is safe markup already comes from our own macros."""
    if type(value) is str:
        return visible(value)
    return "" if value is None else value


def _query(values: dict[str, Any]) -> str:
    """A query for an address, without what is empty."""
    given = {name: value for name, value in values.items() if value not in (None, "")}
    return f"?{urlencode(given, errors='replace')}" if given else ""


def _number(value: int) -> str:
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
        extensions=["jinja2.ext.do"],
    )
    environment.filters |= {
        "amount": amount,
        "moment": moment,
        "cut": cut,
        "colored": colored,
        "segment": segment,
        "gap": gap,
        "query": _query,
        "number": _number,
        "many": lambda count, word: f"{_number(count)} {word}{'' if count == 1 else 's'}",
    }
    environment.globals["stamp"] = {
        name: hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest()[:12]
        for name in ("app.css", "app.js")
    }
    return environment


_pages = _environment()


def is_partial(request: Request) -> bool:
    """Whether htmx asks for a piece; it never does when a browser goes back."""
    return request.headers.get("hx-request-type") == _FRAGMENT


def render(
    request: Request,
    title: str,
    template: str,
    context: BaseModel,
    *,
    part: str | None = None,
    keeps: bool = False,
    status: int = 200,
) -> Response:
    """The page, or for htmx only its part, with what caches must know."""
    name = part if part is not None and is_partial(request) else template
    fields: dict[str, Any] = {name: getattr(context, name) for name in type(context).model_fields}
    shell = shell_of(request, getattr(context, "title", title))
    body = _only_ours(_pages.get_template(name).render(fields, context=context, shell=shell))
    kept = keeps and status == 200 and is_partial(request) and not getattr(context, "may_grow", False)
    kept = kept and not web_of(request).settings.no_store
    headers = {"Vary": "HX-Request-Type", "Cache-Control": _KEPT if kept else "no-store"}
    return Response(body, status, headers, "text/html")


def render_text(name: str, **fields: Any) -> str:
    """A partial alone, for a stream."""
    return _only_ours(_pages.get_template(name).render(fields))


def _only_ours(html: str) -> str:
    """The page, where no tag leads away or asks another server but our own, were a text ever to come out unescaped.

    The content security policy stops all others, but not a refresh, nor that a browser looks up a name.
    """
    return _LEADS_AWAY.sub("&lt;", html)


def shell_of(request: Request, title: str) -> Shell:
    """The frame around a page."""
    login = login_of(request)
    path = request.url.path
    entries: list[Entry] = request.app.state.navigation if login else []
    session = getattr(request.state, "session", None)  # known once the address was found to name one
    session_entries = [
        entry._replace(link=entry.link.replace("{session}", segment(session)))
        for entry in entries
        if session is not None and "{session}" in entry.link
    ]
    main_entries = [entry for entry in entries if "{session}" not in entry.link]
    query = f"?{request.url.query}" if request.url.query else ""
    theme, density = request.cookies.get("theme", ""), request.cookies.get("density", "")
    return Shell(
        title=title,
        nonce=request.scope["state"]["nonce"],
        form_token=login.form_token if login else "",
        who=login.name if login else None,
        path=f"{path}{query}",
        navigation=main_entries,
        session=session,
        session_navigation=session_entries,
        here=_here(_place(path, session), session_entries or main_entries),
        theme=theme if theme in _THEMES else "",
        density=density if density in _DENSITIES else "",
        has_keys=request.cookies.get("keys") != "off",
        scripts=(JOINED,) if all((VENDOR / name).is_file() for name in _SCRIPTS) else (),
    )


def _place(path: str, session: str | None) -> str:
    """A path as links of the navigation write it: the session by its whole id, a page by the one that it is under."""
    if session is None:
        return path
    steps = path.split("/")[3:]
    return "/".join([f"/sessions/{segment(session)}", *(_ABOVE.get(step, step) for step in steps)])


def _here(path: str, entries: list[Entry]) -> str:
    """The most exact of the links that lead to a page, or to one above it."""
    above = [entry.link for entry in entries if path == entry.link or path.startswith(f"{entry.link}/")]
    return max(above, key=len, default="")

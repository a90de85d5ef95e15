"""/login: by the link that `serve` printed, or by the token. /logout ends it."""

from typing import Annotated
from urllib.parse import quote

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from webui.dependencies import web_of
from webui.guard import cookie_of
from webui.logins import COOKIE
from webui.page import Context, Page
from webui.rendering import render

_YEAR_S = 400 * 24 * 3600
_KEPT = "/%?#&=+~:@!$'()*,;[]"  # of an address; a header takes ASCII only

page = Page("Login")


class LoginContext(Context):
    """What login.html may use."""

    to: str
    """Where to go on."""
    is_in: bool
    """Whether the login worked."""
    wrong: str
    """What was wrong; empty for nothing."""


@page.html.get("/login")
def login(
    request: Request,
    code: Annotated[str, Query(max_length=200)] = "",
    to: Annotated[str, Query(alias="next", max_length=4000)] = "/sessions",
) -> Response:
    """The form; with the code of a link, the login itself."""
    if not code:
        return render(request, "Login", "login.html", LoginContext(to=_inside(to), is_in=False, wrong=""))
    cookie = web_of(request).logins.redeem(code)
    if cookie is None:
        wrong = "This link was used already, or is older than five minutes."
        context = LoginContext(to=_inside(to), is_in=False, wrong=wrong)
        return render(request, "Login", "login.html", context, status=403)
    return _entered(request, cookie, to)


@page.html.post("/login")
def login_with_token(
    request: Request,
    token: Annotated[str, Form(max_length=1000)],
    name: Annotated[str, Form(max_length=80)] = "",
    to: Annotated[str, Form(max_length=4000)] = "/sessions",
) -> Response:
    """Login by the token of the token file."""
    cookie = web_of(request).logins.with_token(token.strip(), name.strip())
    if cookie is None:
        context = LoginContext(to=_inside(to), is_in=False, wrong="This is not the token of this server.")
        return render(request, "Login", "login.html", context, status=403)
    return _entered(request, cookie, to)


@page.html.post("/logout")
def logout(request: Request) -> Response:
    """End the login of this browser."""
    cookie = cookie_of(request.headers.get("cookie", ""))
    if cookie:
        web_of(request).logins.leave(cookie)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response


@page.html.post("/display")
def display(
    theme: Annotated[str | None, Form(pattern="^(light|dark|system)$")] = None,
    density: Annotated[str | None, Form(pattern="^(compact|normal|roomy)$")] = None,
    keys: Annotated[str | None, Form(pattern="^(on|off)$")] = None,
    to: Annotated[str, Form(max_length=4000)] = "/help",
) -> Response:
    """Colours, spacing and single keys, as cookies of this browser; what is not given stays."""
    response = RedirectResponse(_inside(to), 303)
    for name, value in (("theme", theme), ("density", density), ("keys", keys)):
        if value is not None:
            response.set_cookie(name, value, max_age=_YEAR_S, samesite="strict")
    return response


def _entered(request: Request, cookie: str, to: str) -> Response:
    """A page that goes on by itself: a redirection from another site's link would arrive without the cookie."""
    context = LoginContext(to=_inside(to), is_in=True, wrong="")
    response = render(request, "Login", "login.html", context)
    response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", path="/")
    response.headers["Refresh"] = f"0;url={quote(context.to, safe=_KEPT)}"
    return response


def _inside(to: str) -> str:
    """An address of this server, whatever was asked for."""
    is_ours = to.startswith("/") and not to.startswith("//") and "\\" not in to and to.isprintable()
    return to if is_ours and not to.startswith("/login") else "/sessions"

"""A page: an address, a context, a template, and the same context as JSON under /api/v1.

One module in webui/pages holds one page, as `page = Page(…)`; it is found there, and needs no entry elsewhere.
"""

import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_args, get_origin

from fastapi import APIRouter, Body, Depends, Form, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

import webui.pages
from ledger.cli.terminal import json_text
from webui.forms import checked_form
from webui.guard import API
from webui.problems import PROBLEMS
from webui.rendering import Entry, render

_LONE = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""A surrogate that stands alone, which many readers of JSON refuse; before it, what only looks like one."""

_View = TypeVar("_View", bound=Callable[..., Any])
_Act = TypeVar("_Act", bound=Callable[..., Any])

API_PREFIX = f"{API}v1"
"""Where the JSON twins live."""


class Context(BaseModel):
    """What a template may use, and nothing more; also the answer of the JSON twin. Every field has a docstring."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Done(Context):
    """The answer to an action that was recorded."""

    to: str
    """Address of the page to look at now."""

    recorded: list[str] = []
    """The records that tell of it, as `SESSION#SEQ`."""


class JSONText(JSONResponse):
    """JSON whose strings hold nothing that a terminal would obey."""

    def render(self, content: Any) -> bytes:
        """As text."""
        text = json_text(content)
        if "\\u" in text:
            text = _LONE.sub(lambda found: "\\ufffd" if found[1] else found[0], text)
        return text.encode()


class Page:
    """A page and all its addresses.

    `link` puts it into the navigation, in the place `order`: one that names `{session}` into that of a session.
    """

    def __init__(self, title: str, *, link: str | None = None, order: int = 100) -> None:
        self.title = title
        self.entry = None if link is None else Entry(title, link, order)
        self.html = APIRouter(include_in_schema=False)
        self.api = APIRouter(prefix=API_PREFIX, default_response_class=JSONText, tags=[title])

    def view(
        self, path: str, *, template: str, part: str | None = None, keeps: bool = False
    ) -> Callable[[_View], _View]:
        """The decorated function gives the context of an address.

        `part` is the template that htmx gets; `keeps`: the answer never changes, so a browser may keep it.
        """

        def add(make: _View) -> _View:
            def show(web_request: Request, **given: Any) -> Response:
                context = make(**given)
                if isinstance(context, Response):
                    return context
                return render(web_request, self.title, template, context, part=part, keeps=keeps)

            signature = inspect.signature(make, eval_str=True)
            self.html.add_api_route(
                path, _signed(show, make, _asking(signature)), response_class=Response, methods=["GET"]
            )
            self._add_twin(path, make, signature, "GET")
            return make

        return add

    def action(self, path: str) -> Callable[[_Act], _Act]:
        """The decorated function does something, records it, and says where to look now.

        Its parameter `form`, a pydantic model, is a form for a browser and a JSON body for a program.
        """

        def add(act: _Act) -> _Act:
            def do(web_request: Request, **given: Any) -> Response:
                del web_request
                done = act(**given)
                if isinstance(done, Response):
                    return done
                return Response(status_code=303, headers={"Location": done.to})

            signature = inspect.signature(act, eval_str=True)
            self.html.add_api_route(
                path,
                _signed(do, act, _asking(_with_form(signature, Form()))),
                response_class=Response,
                methods=["POST"],
                dependencies=[Depends(checked_form)],
            )
            self._add_twin(path, act, _with_form(signature, Body()), "POST")
            return act

        return add

    def _add_twin(
        self, path: str, make: Callable[..., Any], signature: inspect.Signature, method: str
    ) -> None:
        model = signature.return_annotation

        def tell(**given: Any) -> Response:
            context = make(**given)
            if isinstance(context, Response):
                return context
            assert isinstance(context, BaseModel)
            return JSONText(context.model_dump(mode="json"))

        documented: dict[int | str, dict[str, Any]] = {**PROBLEMS, 200: {"model": _model_of(model)}}
        self.api.add_api_route(
            path, _signed(tell, make, signature), methods=[method], responses=documented, response_model=None
        )


def _model_of(annotation: Any) -> Any:
    """The model among what a function may give; others are redirections."""
    for option in (annotation, *get_args(annotation)):
        if inspect.isclass(option) and issubclass(option, BaseModel):
            return option
    raise AssertionError(f"a view gives a Context: {annotation}")


def _signed(
    function: Callable[..., Any], named: Callable[..., Any], signature: inspect.Signature
) -> Callable[..., Any]:
    functools.update_wrapper(function, named)
    del function.__wrapped__  # type: ignore[attr-defined]
    function.__signature__ = signature.replace(return_annotation=Response)  # type: ignore[attr-defined]
    return function


def _asking(signature: inspect.Signature) -> inspect.Signature:
    request = inspect.Parameter("web_request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in signature.parameters.values()]
    return signature.replace(parameters=[request, *parameters])


def _with_form(signature: inspect.Signature, how: Any) -> inspect.Signature:
    parameters = []
    for one in signature.parameters.values():
        if one.name == "form":
            model = get_args(one.annotation)[0] if get_origin(one.annotation) is Annotated else one.annotation
            one = one.replace(annotation=Annotated[model, how], default=inspect.Parameter.empty)
        parameters.append(one.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    return signature.replace(parameters=parameters)


@functools.cache
def all_pages() -> tuple[Page, ...]:
    """Every page of webui/pages, in the order of the navigation."""
    found = []
    for module in pkgutil.iter_modules(webui.pages.__path__, "webui.pages."):
        if not module.name.rpartition(".")[2].startswith("_"):
            page = importlib.import_module(module.name).page
            assert isinstance(page, Page)
            found.append(page)
    return tuple(sorted(found, key=lambda page: (page.entry.order if page.entry else 1000, page.title)))

"""Wild values for every parameter of the API: each answer is one that is documented, and none is a fault."""

import json
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.webui.hostile.texts import CORPUS, SESSION
from tests.webui.site import PLAIN, Site
from webui.dependencies import segment

_TEXTS = st.one_of(
    st.sampled_from(
        [*CORPUS.values(), "", "0", "-1", "1e9", "null", "NaN", "/context/0", "/usage/tokens", "a|b"]
    ),
    st.text(max_size=60),
    st.integers(-(2**70), 2**70).map(str),
    st.integers(0, 300).map(str),
)
_SESSIONS = st.sampled_from([PLAIN, SESSION, "p", "", "nothing", ".."])


def _operations(client: TestClient) -> list[tuple[str, str, list[dict[str, Any]], set[str]]]:
    described = client.get("/api/v1/openapi.json").json()
    return [
        (path, method, operation.get("parameters", []), set(operation["responses"]))
        for path, methods in sorted(described["paths"].items())
        for method, operation in methods.items()
    ]


def _bytes(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_nothing_breaks_and_everything_is_documented(shop: Site, data: st.DataObject) -> None:
    client = shop.client(raises=False)
    path, method, parameters, documented = data.draw(st.sampled_from(_operations(client)))
    query = {}
    for parameter in parameters:
        name = parameter["name"]
        if parameter["in"] == "path":
            value = (
                segment(data.draw(_SESSIONS))
                if name == "session"
                else quote(_bytes(data.draw(_TEXTS)), safe="")
            )
            path = path.replace(f"{{{name}}}", value or "-")
        elif data.draw(st.booleans()):
            query[name] = _bytes(data.draw(_TEXTS))
    address = f"{path}?{urlencode(query)}"
    answer = client.get(address) if method == "get" else client.request(method.upper(), address, content=b"{")
    assert answer.status_code < 500, f"{method} {address}: {answer.text[:300]}"
    assert str(answer.status_code) in documented or "default" in documented
    if answer.headers["content-type"] == "application/json":
        json.loads(answer.content)
    page = client.get(address.removeprefix("/api/v1")) if method == "get" else answer
    assert page.status_code < 500, f"{address}: {page.text[-300:]}"

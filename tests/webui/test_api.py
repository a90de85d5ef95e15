"""The API as its description tells it: requests made from openapi.json, right and wrong ones, the same each time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from ledger.lake.sandbox import Limits
from tests.webui.site import NAME, TOKEN, site
from webui.page import API_PREFIX, all_pages
from webui.settings import WebSettings

_HEADERS = {"Host": NAME, "Authorization": f"Bearer {TOKEN}"}
_OPERATIONS = sorted(
    (route.path, method)
    for page in all_pages()
    for route in page.api.routes
    if isinstance(route, APIRoute)
    for method in route.methods or ()
)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The description of the API of a site."""
    home: Path = tmp_path_factory.mktemp("api")
    told = WebSettings(catches_up=False, queries=Limits(seconds=2))
    with site(home, settings=told) as made:
        yield schemathesis.openapi.from_asgi(f"{API_PREFIX}/openapi.json", made.app, headers=_HEADERS)


@pytest.mark.parametrize(("path", "method"), _OPERATIONS)
def test_an_answer_is_as_it_is_described(described: Any, path: str, method: str) -> None:
    @seed(20261129)
    @settings(
        max_examples=25,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=described[path][method].as_strategy())
    def answers(case: Any) -> None:
        # A value of the right shape may still be wrong: a seq that the session has not, a parameter not given.
        case.call_and_validate(headers=_HEADERS, excluded_checks=[positive_data_acceptance])

    answers()

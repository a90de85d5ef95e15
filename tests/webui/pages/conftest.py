"""One site for all tests of pages: they only read it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.webui.site import Site, site


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with a plain and a hostile session."""
    home: Path = tmp_path_factory.mktemp("shop")
    with site(home) as made:
        yield made


@pytest.fixture
def browser(shop: Site) -> TestClient:
    """A browser without JavaScript that is logged in."""
    return shop.client()

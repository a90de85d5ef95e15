"""A session id of any kind is one segment of an address, and comes back from it."""

from urllib.parse import unquote, urljoin

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webui.dependencies import from_segment, segment


@given(st.text(min_size=1))
@example("~3")
@example("~0~1~2~3")
@example("..")
def test_an_id_comes_back_from_its_segment(session: str) -> None:
    assert from_segment(unquote(segment(session))) == session


@pytest.mark.parametrize("session", [".", "..", "...", "a/..", "%2e%2e", "?q", "#x", "//evil.example", "\\"])
def test_no_segment_leads_elsewhere(session: str) -> None:
    address = f"http://127.0.0.1/sessions/{segment(session)}/events"
    assert urljoin("http://127.0.0.1/", address) == address
    assert segment(session) not in (".", "..") and "/" not in segment(session)

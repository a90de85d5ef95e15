"""What all forms share: the token of the login that protects them, fields for numbers."""

import hmac
from typing import Any

from fastapi import HTTPException, Request
from pydantic import BeforeValidator

from webui.dependencies import login_of

FIELD = "form_token"
"""Name of the hidden field."""


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


NUMBER = BeforeValidator(_number)
"""For a field that is a whole number: in JSON `true` is none."""


async def checked_form(request: Request) -> None:
    """Refuse a form that was not made for this login."""
    login = login_of(request)
    given = (await request.form()).get(FIELD, "")
    expected = login.form_token if login is not None else ""
    if (
        not expected
        or not isinstance(given, str)
        or not hmac.compare_digest(given.encode(), expected.encode())
    ):
        raise HTTPException(403, "This form was made for another login. Load the page again, then send it.")

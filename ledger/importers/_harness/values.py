"""Values of hostile records, read with care: the value if it is what was expected, else None. Never raises."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_TIME = 40


def words(value: Any) -> str | None:
    """A text with something in it; lone surrogates become U+FFFD, since an event cannot carry them."""
    if not isinstance(value, str) or not value:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def number(value: Any) -> int | None:
    """A count: an integer that is not negative, or a float that stands for one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        return None
    return int(value)


def money(value: Any) -> Decimal | None:
    """An amount that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount < 10**12 else None


def record(value: Any) -> dict[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """The list, or an empty one."""
    return value if isinstance(value, list) else []


def moment(value: Any) -> str | None:
    """A time as RFC 3339: of milliseconds since 1970, or of a text that is a time already."""
    if isinstance(value, str):
        if len(value) > _LONGEST_TIME:
            return None
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return None
        return words(value)
    milliseconds = number(value)
    if milliseconds is None:
        return None
    try:
        when = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"


def rest(native: Mapping[str, Any], *used: str) -> dict[str, Any]:
    """The fields but for those named."""
    return {name: value for name, value in native.items() if name not in used}


def blocks_text(content: Any) -> str:
    """The words of a content that is a text, a block, or a list of these."""
    found: list[str] = []
    for block in content if isinstance(content, list) else [content]:
        text = block.get("text") if isinstance(block, dict) else block
        if isinstance(text, str):
            found.append(text)
    return "\n".join(found)

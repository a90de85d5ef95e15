"""Decides which part of a named value is the secret.

Must not look at anything but the name's verdict and the value.
"""

import re
from typing import NamedTuple

from ledger.redaction.names import Name
from ledger.redaction.placeholders import is_code, is_marked, is_placeholder, is_prose, looks_random

SCHEME = re.compile(
    rb"(?i)(?:\s*(?:bearer|basic|token|bot|digest|apikey|api-key|key|"
    rb"negotiate|ntlm|ssws|oauth|splunk|snowflake|genie_?key|"
    rb"aws4-hmac-sha256|sharedkey|sharedaccesssignature|hawk|mac)(?:[ \t]+|%20|\+)(?=\S))"
)
_PADDING = b" \t\r\n"
_NUMBER = re.compile(rb"[+-]?[0-9][0-9_.,]*(?:[eE][+-]?[0-9]+)?")
_PLAIN_URL = re.compile(rb"[a-z][a-z0-9+.\-]{1,20}://[^@]*")
_PATH = re.compile(
    rb"(?:~|\.{1,2})?(?:/[\w.\-@ ]+){2,}/?(?:\.\w+)?|"
    rb"[\w.\-]+\.(?:pem|key|json|txt|ya?ml|env|crt|p12|toml|py|ts|js)"
)
_WORDS = re.compile(rb"[A-Za-z][a-z]*(?:[-_ ][A-Za-z]?[a-z]*)*")


class Part(NamedTuple):
    """The secret part of a value."""

    start: int
    """Offset in the value."""

    end: int
    """Offset after it."""

    kind: str
    """`key_name`, `header`, `cookie` or `entropy`."""


def secret_in_string(name: Name, value: bytes, *, is_cookie: bool = False) -> Part | None:
    """The secret in a whole string under a name: quoted in text, or a JSON string."""
    start, end = _trimmed(value)
    scheme = SCHEME.match(value, start)
    if scheme:
        start = scheme.end()
    secret = value[start:end]
    if name.strength == 0 or is_placeholder(secret) or is_marked(secret):
        return None
    if is_cookie:
        return Part(start, end, "cookie") if b"=" in secret or len(secret) >= 16 else None
    if name.strength == 1:
        return Part(start, end, "entropy") if looks_random(secret) else None
    if name.strength == 3:
        return (
            None
            if (_WORDS.fullmatch(secret) and len(secret) < 24) or is_prose(secret)
            else Part(start, end, "header")
        )
    if _is_reference(secret) or is_prose(secret):
        return None
    if _NUMBER.fullmatch(secret) and not name.is_password and len(secret) < 12:
        return None
    return Part(start, end, "key_name")


def secret_in_header(value: bytes, *, is_cookie: bool) -> Part | None:
    """The secret in a header that holds nothing else: all but the scheme."""
    start, end = _trimmed(value)
    scheme = SCHEME.match(value, start)
    start = scheme.end() if scheme else start
    if start >= end or is_marked(value[start:end]):
        return None
    return Part(start, end, "cookie" if is_cookie else "header")


def secret_in_bare_word(
    name: Name, name_text: bytes, value: bytes, *, is_json: bool, is_assignment: bool, is_own_line: bool
) -> Part | None:
    """The secret in an unquoted value: a line of an environment or INI file, a flag, a query, prose or code.

    `is_assignment`: written as files and flags do (`NAME=value` without blanks);
    `is_own_line`: nothing else around.
    """
    value = value.rstrip(b".:!?") if not is_own_line else value
    value = without_closers(value)
    if name.strength == 0 or is_json:
        return None
    if name.strength == 1:  # most names are such, and most values are not random: asked first
        is_secret = looks_random(value) and not is_placeholder(value) and not is_code_call(value)
        return Part(0, len(value), "entropy") if is_secret else None
    if is_placeholder(value):
        return None
    if _is_reference(value):
        return None
    if _NUMBER.fullmatch(value):
        wanted = (name.is_password and len(value) >= 4) or len(value) >= 12
        return Part(0, len(value), "key_name") if wanted else None
    if is_code(value):
        lowered = value.lower().strip(b"'\"")
        is_word = (
            re.fullmatch(rb"[a-z][a-z\-]{5,}|[A-Za-z]{8,}", value) is not None and lowered not in _CODE_WORDS
        )
        if not is_word or not (is_assignment or (is_own_line and name.is_password and value.islower())):
            return None
        return None if lowered in name_text.lower() else Part(0, len(value), "key_name")
    if re.fullmatch(rb"\w+", value) and value.lower().startswith(name_text.lower()):
        return None
    return Part(0, len(value), "key_name")


def without_closers(value: bytes) -> bytes:
    """A word without the brackets at its end that were opened before it."""
    for opening, closing in (b"()", b"[]", b"{}"):
        while value and value[-1] == closing and value.count(closing) > value.count(opening):
            value = value[:-1]
    return value


def is_code_call(value: bytes) -> bool:
    """Whether a text starts as a call or an index does."""
    return re.match(rb"[A-Za-z_][\w.]*[(\[{]", value) is not None


_CODE_WORDS = frozenset(
    b"string number boolean object integer optional required secretstr bytes unknown never undefined "
    b"input prompt getpass default property varchar nvarchar textfield charfield passwordfield stringvar "
    b"nullable readonly sensitive computed generated inherit missing invalid expired wrong incorrect "
    b"correct rejected accepted".split()
)


def _trimmed(value: bytes) -> tuple[int, int]:
    start = len(value) - len(value.lstrip(_PADDING))
    return start, max(start, len(value.rstrip(_PADDING)))


def _is_reference(value: bytes) -> bool:
    """Whether a value says where a secret lies: a URL without credentials, a path to a file."""
    if _PLAIN_URL.fullmatch(value):
        return not re.search(rb"(?i)(?:token|key|secret|sig|password|pwd)=", value)
    return _PATH.fullmatch(value) is not None and not looks_random(value)

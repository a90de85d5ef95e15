"""Finds secrets in text by the name in front of them.

Must not look further than a bounded window around the name.
"""

import re

from ledger.redaction.findings import Span
from ledger.redaction.names import Name, judge, judge_with_word
from ledger.redaction.placeholders import has_digit, is_placeholder, looks_random
from ledger.redaction.values import SCHEME, Part, secret_in_bare_word, secret_in_string, without_closers

NAME_LITERALS = (
    "key",
    "token",
    "secret",
    "pass",
    "pwd",
    "credential",
    "creds",
    "auth",
    "cookie",
    "jwt",
    "connectionstring",
    "connection_string",
    "connection-string",
    "connstr",
    "conn_str",
    "mnemonic",
    "_pat",
)
_BLANK = rb"[ \t]{0,8}"
_GAP = rb"(?:[ \t\r\n]|\\+[nrt]){0,24}+"
_TAIL = re.compile(
    rb"(?P<tail>[\w.\-]{0,40}+)(?P<close>\\*[\"'`]?)\]?"
    rb"(?:(?P<annotation>"
    + _BLANK
    + rb":"
    + _BLANK
    + rb"[A-Za-z_][\w.\[\]| ,]{0,40}+="
    + _BLANK
    + rb"(?=[bru]?[\"']))"
    rb"|(?P<sep>"
    + _BLANK
    + rb"(?:[:=]=?=?>?|\|?=>|->|!==?|%3[dDaA]|\\u003[dD])"
    + _BLANK
    + rb"(?:\\?\r?\n"
    + _BLANK
    + rb"(?=[\"']))?)"
    rb"|(?P<pair>"
    + _GAP
    + rb",?"
    + _GAP
    + rb"\\*[\"']?(?i:value|stringvalue|string_value|val)\\*[\"']?"
    + _GAP
    + rb"[:=]"
    + _GAP
    + rb"(?:\{"
    + _GAP
    + rb"\\*[\"']?\w{0,20}\\*[\"']?"
    + _GAP
    + rb":"
    + _GAP
    + rb")?(?:\["
    + _GAP
    + rb")?(?=[bru]?\\*[\"']))"
    rb"|(?P<comma>" + _GAP + rb"," + _GAP + rb"(?=[bru]?\\*[\"']))"
    rb"|(?P<says>[ \t]{1,3}(?:(?:for|of|to|on|in)[ \t]\S{1,30}[ \t])?"
    rb"(?:is|was|are|reads|equals)[ \t]{0,3}:?[ \t]{0,3})"
    rb"|(?P<element>>)"
    rb"|(?P<space>,?[ \t]{1,4}))"
)
_HEAD = re.compile(rb"[\w.\-]*+")
_WORD_BEFORE = re.compile(rb"[ ]([A-Za-z]{2,14})(?![\w])")
_OPEN = re.compile(rb"(?:[bBrRuUfF]{1,2}(?=\\*[\"']))?(?P<escape>\\*)(?P<quote>[\"'`])")
_BARE = re.compile(
    rb"(?:[^\s\"'`,;&<>\\\x1b{$]{1,600}+|\{\{.{0,60}?\}\}|\$\{.{0,60}?\}|<[\w \-]{1,60}>|[{$])++"
)
_MORE = re.compile(rb"[^\s\"'`,;&<>\\\x1b]*+")
_BARE_LINE = re.compile(rb"[^\s\"'`\\\x1b]{1,600}+(?=[ \t]*(?:\r?\n|\\+[nr]|\Z))")
_REST_OF_LINE = re.compile(rb"[^\r\n\"'`\\<>\x1b]{1,4000}+")
_HEADER_TOKEN = re.compile(SCHEME.pattern + rb"?[^\s\"'`\\,;<>\x1b]{1,4000}+")
_RANDOM_NEARBY = re.compile(
    rb"[^\n]{0,60}?(?<![\w\-+/=.~:@])(?P<secret>[A-Za-z0-9_\-+/=.~]{16,200})(?![\w\-+/=~@(])"
)
_VALUE_BEFORE = re.compile(
    rb"(?i)\\*[\"']value\\*[\"']\s{0,4}:\s{0,4}\\*[\"']"
    rb"(?P<secret>(?:[^\"'\\]|\\.){3,400}?)\\*[\"']\s{0,8},\s{0,8}"
    rb"\\*[\"'](?:name|key|header)\\*[\"']\s{0,4}:\s{0,4}\\*[\"']\Z"
)
_LINE_START = re.compile(
    rb"(?:^|[\n]|\\n)[ \t>\-+]{0,12}(?:(?i:export|set|env|ENV|ARG|setx|\$env:)[ \t:]{0,2})?\Z"
)
_LONG = 600
_LONGEST = 8192
_MOST_QUOTES = 100


def find_named(data: bytes, start: int, end: int) -> Span | None:
    """The secret that a name with one of the literals at `start:end` announces."""
    after = _TAIL.match(data, end)
    if after is None:
        return None
    before = data[max(0, start - 48) : start][::-1]
    head = _HEAD.match(before)
    assert head is not None
    head_text = _without_escape(data, start, head[0][::-1])
    name_start = start - len(head_text)
    if data[max(0, name_start - 3) : name_start] == b"://":
        return None  # the user of a URL; its password has a rule of its own
    name_text = head_text + data[start:end] + after["tail"]
    name = judge(name_text.lstrip(b"-"))
    if not head_text and name.strength < 2:
        name = _with_word_before(before, name_text, name)
    if name.strength == 0:
        return None
    part = _after(data, name_start, name_text, name, after)
    return None if part is None else Span(part.start, part.end, part.kind, 1)


def _without_escape(data: bytes, start: int, head: bytes) -> bytes:
    """The first part of a name without the end of an escaped line end or a terminal colour before it."""
    before = data[max(0, start - len(head) - 2) : start - len(head)]
    if before[-1:] == b"\\" and head[:1] in (b"n", b"r", b"t", b"b", b"f"):
        return head[1:]
    if before[-1:] == b"[" or before[-1:] == b";":
        return re.sub(rb"^\d{1,3}m", b"", head)
    return head


def _with_word_before(before: bytes, name_text: bytes, name: Name) -> Name:
    """`api key` in prose is an `api_key`; `page token` is none."""
    word = _WORD_BEFORE.match(before)
    return judge_with_word(word[1][::-1], name_text) if word else name


def _after(data: bytes, name_start: int, name_text: bytes, name: Name, after: re.Match[bytes]) -> Part | None:
    """The secret behind a name and what links the two."""
    position = after.end()
    is_closed = bool(after["close"])
    if after["comma"] is not None or after["pair"] is not None:
        if not is_closed:
            return None
        part = _string(data, position, name, name_text)
        if part is not None and after["comma"] is not None and name.strength < 3:
            return part if name.strength == 2 and has_digit(data[part.start : part.end]) else None
        return part
    if after["element"] is not None:
        if data[max(0, name_start - 1) : name_start] != b"<":
            return None
        return _bare(data, position, name_start, name_text, name, is_json=False, is_joined=True)
    if after["says"] is not None:
        return _said(data, position, name)
    if after["space"] is not None:
        return _after_space(data, position, name_start, name_text, name, is_closed=is_closed)
    is_compared = after["sep"] is not None and after["sep"].strip() in (b"==", b"===", b"!=", b"!==")
    if _OPEN.match(data, position):
        part = _string(data, position, name, name_text)
        return None if part and is_compared and not has_digit(data[part.start : part.end]) else part
    if is_compared:
        return None
    is_joined = after["sep"] is not None and after["sep"].strip() == after["sep"]
    return _bare(data, position, name_start, name_text, name, is_json=is_closed, is_joined=is_joined)


def _string(data: bytes, position: int, name: Name, name_text: bytes) -> Part | None:
    """The secret in a quoted value that starts at `position`; a string cut short ends with its line."""
    opened = _OPEN.match(data, position)
    if opened is None:
        return None
    begin = opened.end()
    stop = _closing(data, begin, opened["escape"], opened["quote"])
    value = data[begin:stop]
    if not value or value[:1] in b",)]};:=" or (value[:1].isspace() and value[1:2] in b"+%)},.;:<>|&?="):
        return None
    if opened["quote"] in b"\"'" and re.match(rb"\s+[\w\-]+=\\*$", value):
        return None  # the quote closed a label, and what follows is the next attribute
    part = secret_in_string(name, value, is_cookie=_is_cookie(name_text))
    return None if part is None else Part(begin + part.start, begin + part.end, part.kind)


def _closing(data: bytes, begin: int, escape: bytes, quote: bytes) -> int:
    """Where a string ends: at its quote with as many backslashes as it was opened with."""
    limit = min(len(data), begin + _LONGEST)
    position = begin
    for _ in range(_MOST_QUOTES):
        found = data.find(quote, position, limit)
        if found < 0:
            break
        backslashes = found
        while backslashes > begin and data[backslashes - 1] == 0x5C:
            backslashes -= 1
        count = found - backslashes
        if count == len(escape) or (not escape and count % 2 == 0) or (escape and count < len(escape)):
            return backslashes if escape else found
        position = found + 1
    line = re.compile(rb"[^\r\n]*").match(data, begin, limit)
    return line.end() if line else limit


def _bare(
    data: bytes,
    position: int,
    name_start: int,
    name_text: bytes,
    name: Name,
    *,
    is_json: bool,
    is_joined: bool,
) -> Part | None:
    """The secret in an unquoted value."""
    if name.strength == 3:
        return _header(data, position, name_text, name)
    short = _BARE.match(data, position, position + _LONG)
    if short is None:
        return None
    before = data[max(0, name_start - 40) : name_start]
    starts_line = _LINE_START.search(before) is not None
    long = _BARE_LINE.match(data, position) if starts_line else None
    value = long[0] if long and is_joined else short[0]
    is_query = before[-1:] in (b"?", b"&") and is_joined
    if is_query:
        value = re.split(rb"[&#]", value)[0]
        if name.strength == 1 and judge(name_text).strength == 1 and not name_text.lower().endswith(b"key"):
            return _parameter(value, position)
    is_variable = is_joined and (name_text.isupper() or name_text.startswith(b"-") or is_query)
    part = secret_in_bare_word(
        name, name_text, value, is_json=is_json, is_assignment=is_variable, is_own_line=long is not None
    )
    if part is None:
        return None
    end = position + part.end
    if part.end >= _LONG - 10:  # judged by its first bytes, taken out as a whole
        more = _MORE.match(data, end)
        end = more.end() if more else end
    return Part(position + part.start, end, "url_parameter" if is_query else part.kind)


def _parameter(value: bytes, position: int) -> Part | None:
    """`?token=` and `?auth=` are secrets where other texts need more than that."""
    if len(value) < 6 or is_placeholder(value) or not has_digit(value):
        return None
    return Part(position, position + len(value), "url_parameter")


def _header(data: bytes, position: int, name_text: bytes, name: Name) -> Part | None:
    """The secret in a header line: the whole rest for cookies and signatures, otherwise one token."""
    is_cookie = _is_cookie(name_text)
    line = _REST_OF_LINE.match(data, position)
    if line is None:
        return None
    value = line[0]
    if is_cookie and not re.match(rb"\s*[\w.\-$!%]{1,100}=[^=]", value):
        return None
    if not is_cookie and not re.match(rb"(?i)\s*(?:aws4|digest|hawk|oauth |signature)", value):
        one = _HEADER_TOKEN.match(value)
        if one is None:
            return None
        value = without_closers(one[0])
        secret = (value.split() or [b""])[-1]
        if not (has_digit(secret) or len(secret) >= 24):
            return None
        if re.match(rb"[A-Za-z_][\w.]*[(\[]", secret):
            return None
    part = secret_in_string(name, value, is_cookie=is_cookie)
    return None if part is None else Part(position + part.start, position + part.end, part.kind)


def _said(data: bytes, position: int, name: Name) -> Part | None:
    """`the password is hunter2`: one word that no sentence would have there."""
    opened = _OPEN.match(data, position)
    word = re.compile(rb"[^\s\"'`,;<>\\]{4,200}").match(data, opened.end() if opened else position)
    if word is None:
        return None
    value = word[0].rstrip(b".!?)")
    is_odd = has_digit(value) and re.search(rb"[A-Za-z]", value) is not None
    if (
        name.strength < 2
        or not is_odd
        or is_placeholder(value)
        or not (name.is_password or looks_random(value))
    ):
        return _nearby(data, position)
    return Part(word.start(), word.start() + len(value), "key_name")


def _after_space(
    data: bytes, position: int, name_start: int, name_text: bytes, name: Name, *, is_closed: bool
) -> Part | None:
    """A flag and its value, `PASSWORD '...'`, or a random text soon after the name."""
    if name_text.startswith(b"-") and not is_closed and name.strength >= 2:
        if _OPEN.match(data, position):
            return _string(data, position, name, name_text)
        if data[position : position + 1] == b"-":
            return None
        return _bare(data, position, name_start, name_text, name, is_json=False, is_joined=True)
    if name.is_password and data[position : position + 1] in (b"'", b'"'):
        part = _string(data, position, name, name_text)
        return part if part and has_digit(data[part.start : part.end]) else None
    return _nearby(data, position)


def _nearby(data: bytes, position: int) -> Part | None:
    """A random text on the same line, soon after the name."""
    found = _RANDOM_NEARBY.match(data, position - 1 if position else 0)
    if found is None:
        return None
    secret = found["secret"].rstrip(b".")
    if not looks_random(secret) or is_placeholder(secret) or not re.search(rb"[a-z]", secret):
        return None
    if b"/" in secret and not re.search(rb"[A-Za-z0-9+]{20}", secret):
        return None
    return Part(found.start("secret"), found.start("secret") + len(secret), "entropy")


def find_value_before_name(data: bytes, start: int, end: int) -> Span | None:
    """`{"value": "...", "name": "api_key"}`: the pair the other way round."""
    before = data[max(0, start - 48) : start]
    if b'"' not in before and b"'" not in before:
        return None
    before = before[::-1]
    head = _HEAD.match(before)
    assert head is not None
    name_start = start - len(head[0])
    if data[max(0, name_start - 1) : name_start] not in (b'"', b"'"):
        return None
    after = _TAIL.match(data, end)
    tail = after["tail"] if after else b""
    name = judge(head[0][::-1] + data[start:end] + tail)
    if name.strength < 2:
        return None
    window = max(0, name_start - 480)
    found = _VALUE_BEFORE.search(data[window:name_start])
    if found is None:
        return None
    part = secret_in_string(name, found["secret"])
    if part is None:
        return None
    offset = window + found.start("secret")
    return Span(offset + part.start, offset + part.end, part.kind, 1)


def _is_cookie(name_text: bytes) -> bool:
    return b"cookie" in name_text.lower()

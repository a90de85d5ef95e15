"""Secrets known by the place they stand in: URLs, command lines, files of passwords.

Must not cross a line end.
"""

import re

from ledger.redaction.findings import Span
from ledger.redaction.placeholders import is_code, is_placeholder, looks_random
from ledger.redaction.rules import Rule, varied

_USER = rb"[^\s/?#\"'<>`\\@:\[\]{}|,]{0,200}+"
_PASSWORD_IN_URL = re.compile(_USER + rb":(?P<secret>(?:%\d\d|[^\s\"'<>`\\/?#]){1,400})@(?=[\w.\-\[%{$])")
_ODD_PASSWORD_IN_URL = re.compile(
    _USER + rb":(?P<secret>[^\s\"'<>`\\]{1,200})@(?=[\w.\-]{1,200}(?::\d|[/\s\"'?,]|\Z))"
)
_TOKEN_IN_URL = re.compile(rb"(?P<secret>[A-Za-z0-9_\-]{20,300})(?::|:x-oauth-basic)?@(?=[\w.\-])")
_STORES = re.compile(
    rb"(?i)(?:postgres(?:ql)?|mysql|mariadb|mongodb|redis|rediss|amqps?|mssql|"
    rb"sqlserver|oracle|clickhouse|jdbc)(?:\+\w{1,12})?\Z"
)


def find_in_url(data: bytes, start: int, end: int) -> Span | None:
    """The password or token in front of a URL's host."""
    found = _PASSWORD_IN_URL.match(data, end)
    if found is None:
        scheme = data[max(0, start - 24) : start]
        if _STORES.search(scheme):
            found = _ODD_PASSWORD_IN_URL.match(data, end)
            if found is not None and re.match(rb"\d{1,5}(?:/|\Z)", found["secret"]):
                found = None
    if found is None:
        found = _TOKEN_IN_URL.match(data, end)
        if found is None or not looks_random(found["secret"]):
            return None
    secret = found["secret"]
    if (is_placeholder(secret) and not varied(secret)) or is_placeholder(secret):
        return None
    return Span(found.start("secret"), found.end("secret"), "url_password", 1)


def _is_given(secret: bytes) -> bool:
    """Whether a command line gives a secret itself, not a variable or a placeholder."""
    return not is_placeholder(secret) and secret[:1] != b"-"


def _is_odd(secret: bytes) -> bool:
    """The same, where a plain word may be something else."""
    return _is_given(secret) and not is_code(secret)


def _command(words: str, pattern: bytes, *, is_odd: bool = False) -> Rule:
    return Rule(
        "password", tuple(words.split("|")), re.compile(pattern), check=_is_odd if is_odd else _is_given
    )


_QUOTED_OR_WORD = rb"(?:\\{0,9}[\"'])?(?P<secret>[^\s\"'\\]{3,200})"

PLACES: tuple[Rule, ...] = (
    _command(
        "curl |curl.exe ",
        rb"(?i:curl)(?:\.exe)? [^\n]{0,300}?(?<=[ ])"
        rb"(?:-u|--user|--proxy-user|-U)[ =]{0,2}(?:\\{0,9}[\"'])?[^\s:\"'\\]{1,80}:"
        rb"(?P<secret>[^\s\"'\\]{1,200})",
    ),
    _command(
        "mysql|mariadb",
        rb"(?i:mysql|mariadb)[\w\-]{0,12} (?:[^\n|;]{0,200}? )?-p"
        rb"(?:\\{0,9}[\"'])?(?P<secret>[^\s\"'\\\-][^\s\"'\\]{2,200})",
    ),
    _command("sshpass ", rb"sshpass {1,4}-p {0,4}" + _QUOTED_OR_WORD),
    _command(
        "docker login|registry login|podman login|az login|oc login|cf login",
        rb"(?i:docker|registry|podman|az|oc|cf) login [^\n]{0,200}?(?<=[ ])-p[ =]" + _QUOTED_OR_WORD,
    ),
    _command("redis-cli", rb"redis-cli [^\n]{0,200}?(?<=[ ])-a " + _QUOTED_OR_WORD),
    _command(
        "smbclient",
        rb"smbclient [^\n]{0,200}?-U {1,4}\\{0,9}[\"']?[^\s%]{1,80}%(?P<secret>[^\s\"'\\]{1,200})",
    ),
    _command(
        "login ",
        rb"(?i:login)\s{1,4}[^\s\"'=:]{1,100}\s{1,8}(?i:password)\s{1,4}(?P<secret>[^\s\"'\\]{3,200})",
    ),
    _command(
        "identified by", rb"(?i:identified by)\s{1,4}(?i:values? )?\\{0,9}[\"'](?P<secret>[^\"'\\]{3,200})"
    ),
    _command("pass:", rb"(?<=[\s\"'])pass:(?P<secret>[^\s\"'\\]{4,200})", is_odd=True),
    _command(
        "-asplaintext|convertto-securestring",
        rb"(?i:convertto-securestring)\s{1,8}(?:-String\s{1,8})?\\{0,9}[\"'](?P<secret>[^\"'\\]{3,200})",
    ),
    Rule(
        "url_parameter",
        ("signature=",),
        re.compile(
            rb"(?i)(?:[?&]|&amp;|\\u0026)(?:x-amz-|x-goog-|x-oss-|oauth_)?signature="
            rb"(?P<secret>[^\s&\"'<>#\\]{16,1000})"
        ),
        before=16,
        check=varied,
    ),
    Rule(
        "url_parameter",
        ("code=", "code_verifier=", "assertion=", "samlresponse=", "ticket="),
        re.compile(
            rb"(?i)[?&](?:code|code_verifier|(?:client_)?assertion|samlresponse|ticket)="
            rb"(?P<secret>[A-Za-z0-9._~/%+\-]{16,4000})"
        ),
        before=9,
        check=looks_random,
    ),
)

"""Tells a secret from what stands for one, names one, or is code or prose.

Must not call a random text harmless.
"""

import itertools
import math
import re
from collections import Counter

from ledger.redaction.findings import MARKER_SHAPE

_STAND_IN = re.compile(
    rb"""(?xi)
    [<\[{(]{1,3}[^<>]{0,80}[>\]})]{1,3}           # <your key>, {{ key }}, {key}, [key], ((key))
    | [$@]\{?\{?[A-Za-z_][\w.\-:?]*\}{0,2}        # $KEY, ${KEY:-}, @KEY
    | \$\{\{[^}]{0,80}\}\}  | \$\([^)]{0,80}\)    # ${{ secrets.KEY }}, $(command)
    | %[A-Za-z_][\w]*%? | %\([\w]+\)s | \#\{[^}]{0,80}\}
    | [*x.\-_?\#\u2022]{2,} | .{0,24}(?:\*{3,}|\.{3}|x{4,}|X{4,})\S{0,8}
    | (?:os\.|process\.|import\.meta\.|std::)?(?:env|environ|getenv)\b.* | \w+\.env\b.*
    | (?:op|vault|keyring|ssm|sops|doppler|secret|secrets|file|env|ref|gcpsm|awssm)(?:://|:/|\+).*
    | arn:aws.* | /run/secrets/.* | projects/[\w-]+/secrets/.*
    | (?:your|my|the|some|insert|enter|replace|put|add|example|sample|dummy|fake|placeholder
      |changeme|change[-_ ]me|todo|tbd|fixme)
      (?:[-_ .]?(?:your|own|new|my|the|real|actual|secret|super|api|access|auth|client|private|
         key|keys|token|tokens|password|
         passwd|pass|here|value|id|goes|with|me|this|openai|anthropic|google|github|aws|azure|app|
         user|db|database|
         string|example|placeholder))*[-_ .!]*
    | (?:none|null|nil|undefined|true|false|yes|no|on|off|n/a|na|unset|empty
      |redacted|removed|hidden|masked|filtered|secure)
    | (?:the[-_ ]?)?(?:api|access|auth|secret|client|private|user|db|refresh|bearer|admin)?
      [-_ ]?(?:key|token|password|passwd|pass|pwd|secret|
      credentials?|passphrase|apikey|string|bearer|authorization|cookie
      |required|optional|sensitive|bearerauth)
    """.replace(rb"\u2022", "\u2022".encode()),
)
_MARKED = re.compile(rb"(?:\s*(?:\w+\s+)?" + MARKER_SHAPE + rb"[\s;,.\\\"'=]*)+")
_MASKED = re.compile(rb"\S{0,12}(?:\*{3,}|\.{3}|\xe2\x80\xa6|(?:\xe2\x80\xa2){3,})\S{0,8}")
_CODE = re.compile(
    rb"""(?x)
    [A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)*(?:[(\[{].*|[?!;]+)?  # a.b.c, call(...), a[...]
    | (?:await|new|not|lambda|async|return|if|else|self|this|func|function|typeof|let|const|f|r|b)\b.*
    | [!&*@(\[{|].* | -> .* | \d[\d.,_]*[smhdKMG]?
    """
)
_ENOUGH = 160
_FIRST = 16
_NAME = re.compile(rb"[A-Za-z_][\w]*")
_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Za-z]")
_DIGEST_LENGTHS = frozenset((32, 40, 56, 64, 96, 128))
_HEX = re.compile(rb"(?:sha\d+[:-]|md5:|0x)?([0-9a-fA-F]+)")
_UUID = re.compile(rb"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_ULID = re.compile(rb"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_PROVIDER_ID = re.compile(
    rb"(?:msg|toolu|srvtoolu|call|resp|chatcmpl|cmpl|req|run|thread|asst|file|batch|fc|rs|step|ws|"
    rb"evt|session|conv|gen|"
    rb"item|vs|ft|org|proj|user|trace|span|sha\d*|gpt|claude|gemini|o\d)[-_:].*"
)


def has_digit(value: bytes) -> bool:
    """Whether one of the bytes is a digit."""
    return _DIGIT.search(value) is not None


def is_marked(value: bytes) -> bool:
    """Whether nothing is left but markers."""
    return b"[redacted:" in value and _MARKED.fullmatch(value) is not None


def is_placeholder(value: bytes) -> bool:
    """Whether a value stands for a secret or says that there is none."""
    value = value.strip(b" \t\"'`")
    if len(value) < 3 or is_marked(value):
        return True
    # Of a long text the first bytes are asked first: nearly all have three different ones there.
    if len(set(value[:_FIRST])) < 3 and len(set(value)) < 3 and not value.isdigit():
        return True
    return len(value) <= 120 and (
        _STAND_IN.fullmatch(value) is not None or _MASKED.fullmatch(value) is not None
    )


def is_code(value: bytes) -> bool:
    """Whether an unquoted value reads as an expression or a type; plain words do, words with digits do not."""
    if _CODE.fullmatch(value) is None:
        return False
    if _NAME.fullmatch(value):
        return not has_digit(value)
    if re.fullmatch(rb"[\w.]+", value) and not re.match(rb"\d", value):
        return not looks_random(value) and not has_digit(value)
    return True


def is_prose(value: bytes) -> bool:
    """Whether a quoted value is a sentence about a secret (a passphrase of small words is not)."""
    words = value.split()
    if len(words) < 3:
        return False
    wordy = sum(
        re.fullmatch(rb"[(\"'`]?[A-Za-z\xc3-\xef\x80-\xbf'\-/]+[.,:;!?)\"'`]*", word) is not None
        for word in words
    )
    return wordy * 4 >= len(words) * 3 and (
        value[:1].isupper() or value.rstrip()[-1:] in b".!?:" or len(words) > 8
    )


def looks_random(value: bytes) -> bool:
    """Whether a text is long and mixed enough to be a key, and none of the ids and digests of every log."""
    value = value[:_ENOUGH]
    if len(value) < 16 or not has_digit(value) or not _LETTER.search(value):
        return False
    if is_harmless_id(value):
        return False
    longest = max(re.split(rb"[-_.:/+=]", value), key=len)
    if len(longest) < 12 and not (len(longest) >= 7 and _changes(value) * 3 >= len(value)):
        return False
    return _entropy(value) >= 3.0 and _changes(longest) >= 3


def is_harmless_id(value: bytes) -> bool:
    """Whether a text is a digest, UUID, ULID or provider id."""
    digits = _HEX.fullmatch(value)
    if digits and len(digits[1]) in _DIGEST_LENGTHS:
        return True
    return any(shape.fullmatch(value) for shape in (_UUID, _ULID, _PROVIDER_ID))


def _changes(value: bytes) -> int:
    """How often the kind of character changes: high in random text, low in words."""
    kinds = [0 if byte < 48 else 1 if byte < 58 else 2 if byte < 91 else 3 for byte in value]
    return sum(a != b for a, b in itertools.pairwise(kinds))


def _entropy(value: bytes) -> float:
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())

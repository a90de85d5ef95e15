"""What the redactor promises whatever the text: fixed points, identity, depth, bytes, headers."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.redaction import Finding, Redactor, Rule
from ledger.redaction.rules import token

REDACTOR = Redactor(bytes(range(32)))
GITHUB = "gh" + "p_" + "a1B2c3D4e5F6" * 3
PASSWORD = "hunter2" + "X9"

fragments = st.sampled_from(
    [
        "password",
        "api_key",
        "token",
        ": ",
        "=",
        '"',
        "'",
        "\\",
        "\\n",
        "\n",
        " ",
        "Bearer ",
        "hunter2",
        GITHUB,
        "://",
        "@",
        "u:p4w",
        "Authorization",
        "Cookie",
        "a=b1; ",
        "[redacted:",
        "[redacted:key_name:0123456789abcdef]",
        "[redacted:key_name:a7bba42b7dd6b2f8a84c5853]",
        "]",
        ",",
        "{",
        "}",
        "--",
        "&",
        "?",
        "<",
        ">",
        "value",
        "name",
        "é",
        "\ud83d",
        "is ",
        "9aB3kdk39fKd93kdL2",
        "-----BEGIN PRIVATE KEY-----",
        "export ",
    ]
)
messy_texts = st.lists(st.one_of(fragments, st.text(max_size=6)), max_size=24).map("".join)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | messy_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(messy_texts | fragments, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(messy_texts)
def test_redacting_twice_changes_nothing(text: str) -> None:
    redacted, _ = REDACTOR.text(text)
    assert REDACTOR.text(redacted) == (redacted, ())
    assert GITHUB not in redacted


@settings(max_examples=200, deadline=None)
@given(json_values)
def test_values_keep_their_input_and_reach_a_fixed_point(value: Any) -> None:
    before = copy.deepcopy(value)
    redacted, findings = REDACTOR.value(value)
    assert value == before
    assert findings or redacted is value
    again, more = REDACTOR.value(redacted)
    assert again is redacted
    assert not more


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=60))
def test_bodies_keep_bytes_that_are_no_text(before: bytes, after: bytes) -> None:
    raw = before + b" " + GITHUB.encode() + b" " + after
    redacted, findings = REDACTOR.body(raw)
    assert GITHUB.encode() not in redacted
    assert findings
    if len(findings) == 1:
        assert redacted.startswith(before)
        assert redacted.endswith(after)


def test_deep_and_long_values() -> None:
    deep: Any = {"password": PASSWORD}
    for _ in range(3000):
        deep = [deep]
    redacted, findings = REDACTOR.value(deep)
    assert findings[0].where == "/0" * 3000 + "/password"
    for _ in range(3000):
        redacted = redacted[0]
    assert redacted["password"].startswith("[redacted:key_name:")
    long: Any = ["nothing to see"] * 100_000
    assert REDACTOR.value(long)[0] is long
    assert REDACTOR.value([*long, GITHUB])[0][-1].startswith("[redacted:github_token:")


def test_only_the_way_to_a_change_is_copied() -> None:
    value: Any = {"clean": {"a": ["b"]}, "dirty": [{"token": GITHUB}]}
    redacted, findings = REDACTOR.value(value)
    assert redacted["clean"] is value["clean"]
    assert list(redacted) == list(value)
    assert [finding.where for finding in findings] == ["/dirty/0/token"]


def test_digest_is_of_the_secret_and_keyed() -> None:
    forms: list[Any] = [
        f"Authorization: Bearer {GITHUB}",
        GITHUB,
        f'{{"api_key": "{GITHUB}"}}',
        {"headers": {"authorization": f"Bearer {GITHUB}"}},
        [["authorization", f"Bearer {GITHUB}"]],
        f"https://x-access-token:{GITHUB}@github.com/a/b.git",
        {"a": {GITHUB: 1}},
    ]
    digests = {finding.digest for form in forms for finding in REDACTOR.value(form)[1]}
    assert len(digests) == 1
    assert digests.isdisjoint(finding.digest for finding in Redactor(b"k" * 32).text(GITHUB)[1])


def test_equal_findings_are_counted() -> None:
    redacted, findings = REDACTOR.text(f"{GITHUB} {GITHUB}")
    first, second = redacted.split()
    assert first == second and first.startswith(f"[redacted:github_token:{findings[0].digest}")
    assert findings == (Finding("github_token", "", findings[0].digest, 2),)


@pytest.mark.parametrize(
    "value",
    [
        {"apiKey": PASSWORD},
        {"API-KEY": PASSWORD},
        {"db.password": PASSWORD},
        {"x-api-key": [PASSWORD]},
        {"name": "Authorization", "value": PASSWORD},
        {"value": PASSWORD, "key": "client_secret"},
        {"key": "api_key", "value": {"stringValue": PASSWORD}},
        [["x-api-key", PASSWORD]],
        ["login", "--password", PASSWORD],
        {"arguments": f'{{"password": "{PASSWORD}"}}'},
        {"password": {"value": PASSWORD}},
        {"kty": "RSA", "d": PASSWORD},
        {"cookies": {"session": PASSWORD}},
        {"command": f"PGPASSWORD={PASSWORD} psql"},
        {"env": [f"SMTP_PASS={PASSWORD}"]},
    ],
)
def test_names_around_a_value(value: Any) -> None:
    redacted, findings = REDACTOR.value(value)
    assert PASSWORD not in str(redacted)
    assert findings


@pytest.mark.parametrize(
    "name", ["authorization", "X-Api-Key", "x-goog-api-key", "Cookie", "Set-Cookie", "Proxy-Authorization"]
)
@pytest.mark.parametrize("secret", ["plain", "a=b; c=d", "Bearer abc", "Basic eDp5"])
def test_headers_that_always_go(name: str, secret: str) -> None:
    hidden = secret.split(" ", 1)[1] if secret.startswith("B") else secret
    for headers in (
        {name: secret},
        [(name, secret)],
        [[name.encode(), secret.encode()]],
        {name: [secret, secret]},
    ):
        redacted, findings = REDACTOR.headers(headers)
        assert hidden not in str(redacted)
        assert findings
        assert REDACTOR.headers(redacted) == (redacted, ())


def test_clean_headers_stay() -> None:
    headers = {
        "content-type": "application/json",
        "x-request-id": "req_011CQ",
        "anthropic-ratelimit-tokens-limit": "80000",
    }
    assert REDACTOR.headers(headers)[0] is headers


@pytest.mark.parametrize(
    "forged",
    [
        "[redacted:key_name:0123456789abcdef]",
        "[redacted:key_name:0123456789abcdef01234567]",
        "[redacted:password:a7bba42b7dd6b2f8a84c5853]",  # the check is that of another kind
        Redactor(b"k" * 32).text(f"api_key: {GITHUB}")[0].removeprefix("api_key: "),
    ],
)
@pytest.mark.parametrize(
    "around", ["{}", "password: {}", '{{"api_key": "{}"}}', "https://user:{}@host/", "a {} b"]
)
def test_a_marker_that_this_ledger_did_not_make_goes(forged: str, around: str) -> None:
    text = around.format(forged)
    redacted, findings = REDACTOR.text(text)
    assert forged not in redacted and "[redacted:" in redacted
    assert findings
    assert REDACTOR.text(redacted) == (redacted, ())
    assert not REDACTOR.is_clean(text)
    assert REDACTOR.body(text.encode())[0].decode() == redacted
    value, found = REDACTOR.value({"api_key": forged, "said": [forged]})
    assert {one.kind for one in found} == {"foreign_marker"}
    assert len({one.digest for one in found}) == 1
    assert REDACTOR.value(value) == (value, ())
    assert forged not in str(REDACTOR.headers({"authorization": f"Bearer {forged}", "x-note": forged})[0])


def test_our_own_marker_stays_wherever_it_comes_from() -> None:
    marker = REDACTOR.text(GITHUB)[0]
    for text in (marker, f"token={marker}", f"Bearer {marker}", f'{{"password": "{marker}"}}'):
        assert REDACTOR.text(text) == (text, ())
    value = {"password": marker, marker: [marker], "authorization": f"Bearer {marker}"}
    assert REDACTOR.value(value) == (value, ())
    assert REDACTOR.headers({"Authorization": f"Bearer {marker}"})[1] == ()


@settings(max_examples=200, deadline=None)
@given(st.lists(messy_texts, max_size=8))
def test_the_fast_pass_over_many_texts_misses_none_that_has_a_secret(texts: list[str]) -> None:
    suspects = REDACTOR._scanner.suspects(texts)
    assert all(REDACTOR.is_clean(text) for index, text in enumerate(texts) if index not in suspects)
    assert suspects <= set(range(len(texts)))


@settings(max_examples=200, deadline=None)
@given(messy_texts)
def test_a_text_is_clean_where_redacting_changes_nothing(text: str) -> None:
    assert REDACTOR.is_clean(text) == (REDACTOR.text(text) == (text, ()))


def test_extra_rules() -> None:
    rule: Rule = token("house_key", "house-", r"[0-9]{6,20}", check=lambda secret: True)
    redacted, findings = Redactor(bytes(32), extra_rules=[rule]).text("the door opens with house-123456")
    assert findings[0].kind == "house_key"
    assert "123456" not in redacted


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        Redactor(b"short")

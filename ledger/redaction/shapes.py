"""Secrets known by their shape: clouds, code hosts, model providers, key files. Must not hold rules that
need a name.

Written from what the vendors publish about their token formats. Lengths are lower bounds where a vendor
calls the
format opaque: formats grow, prefixes stay.
"""

import base64
import binascii
import re

from ledger.redaction.rules import (
    BOUNDARY,
    Rule,
    has_digit,
    has_digit_and_letter_run,
    starts_after,
    token,
    varied,
)
from ledger.redaction.shapes_services import SERVICES


def _is_basic_credentials(secret: bytes) -> bool:
    """Whether Basic authentication text decodes to `user:password`."""
    try:
        decoded = base64.b64decode(secret + b"=" * (-len(secret) % 4), validate=True)
    except binascii.Error:
        return False
    return b":" in decoded and all(byte >= 32 for byte in decoded)


def _is_bearer_token(secret: bytes) -> bool:
    """Whether what follows `Bearer` is a token, not a word of prose nor a path."""
    return varied(secret) and (re.search(rb"[0-9]", secret) is not None or len(secret) > 40)


def _is_aws_secret(secret: bytes) -> bool:
    """Whether 40 characters mix upper case, lower case and digits, as base64 of random bytes does."""
    classes = (rb"[A-Z]", rb"[a-z]", rb"[0-9]")
    return all(re.search(pattern, secret) for pattern in classes) and secret.count(b"/") < 6


_AWS_ID = rb"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|ANPA|A3T[A-Z0-9])[A-Z0-9]{16}"

_CLOUDS = (
    Rule(
        "aws_access_key",
        ("akia", "asia", "abia", "acca", "a3t"),
        re.compile(BOUNDARY + rb"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Z0-9a-z/+=])"),
        check=varied,
    ),
    Rule(
        "aws_secret_key",
        ("akia", "asia"),
        re.compile(
            _AWS_ID
            + rb"(?:[^\n]|\n(?!\n)){1,120}?(?<![A-Za-z0-9/+=])(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
        ),
        check=_is_aws_secret,
    ),
    token("aws_bedrock_key", "ABSK", r"[A-Za-z0-9+/]{60,400}+={0,2}"),
    token("aws_bedrock_key", "bedrock-api-key-", r"[A-Za-z0-9+/=%._\-]{30,4000}+"),
    token("google_api_key", "AIza", r"[A-Za-z0-9_\-]{33,60}", check=has_digit),
    token("google_oauth", "ya29.", r"[A-Za-z0-9_\-]{20,400}"),
    token("google_oauth", "GOCSPX-", r"[A-Za-z0-9_\-]{20,80}"),
    Rule("google_oauth", ("1//0",), re.compile(BOUNDARY + rb"1//0[A-Za-z0-9_\-]{38,200}"), check=has_digit),
    Rule(
        "azure_client_secret",
        ("q~",),
        re.compile(
            starts_after(rb"A-Za-z0-9_~.\-")
            + rb"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}(?![A-Za-z0-9_~\-])"
        ),
        before=4,
        check=varied,
    ),
    token("alibaba_key", "LTAI", r"[A-Za-z0-9]{17,26}(?![A-Za-z0-9])", check=has_digit),
    token("tencent_key", "AKID", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])", check=has_digit),
    token("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{60,70}"),
    token("databricks_token", "dapi dose doseb", r"[a-f0-9]{32}(?:-\d{1,2})?(?![A-Za-z0-9])"),
    Rule(
        "terraform_token",
        (".atlasv1.",),
        re.compile(starts_after(rb"A-Za-z0-9") + rb"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-]{40,200}"),
        before=14,
        check=varied,
    ),
    token("vault_token", "hvs. hvb. hvr.", r"[A-Za-z0-9_\-]{20,300}", check=has_digit),
    token("heroku_key", "HRKU-", r"[A-Za-z0-9_\-]{30,100}"),
    token("cloudflare_token", "v1.0-", r"[a-f0-9]{24}-[a-f0-9]{100,200}"),
    token("cloudflare_token", "cfut_ cfat_ cfk_ cfpat_", r"[A-Za-z0-9_\-]{32,80}", check=has_digit),
    token("fly_token", "fo1_ fm1r_ fm1a_ fm2_", r"[A-Za-z0-9+/_\-]{40,2000}+={0,3}"),
    token("scalingo_token", "tk-us-", r"[A-Za-z0-9_\-]{48}"),
)

_CODE_HOSTS = (
    token("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{30,255}", strict=False),
    token("github_token", "github_pat_", r"[A-Za-z0-9_]{40,255}", strict=False),
    token(
        "gitlab_token",
        "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- GR1348941",
        r"[A-Za-z0-9_.\-]{20,300}",
        check=has_digit,
    ),
    token("bitbucket_token", "ATBB ATCTT3", r"[A-Za-z0-9_=\-]{24,400}", check=has_digit),
    token("atlassian_token", "ATATT3 ATSTT3", r"[A-Za-z0-9_=\-]{40,400}"),
    token("npm_token", "npm_", r"[A-Za-z0-9]{30,60}(?![A-Za-z0-9_])", check=has_digit),
    token("pypi_token", "pypi-", r"AgE[A-Za-z0-9_\-]{40,1000}", strict=False),
    token("pypi_token", "pypi-", r"(?!AgE)[A-Za-z0-9_\-]{80,1000}", check=has_digit),
    token("rubygems_token", "rubygems_", r"[a-f0-9]{40,64}"),
    token("nuget_token", "oy2", r"[a-z0-9]{43}(?![A-Za-z0-9])", check=has_digit),
    token("clojars_token", "CLOJARS_", r"[a-z0-9]{50,70}"),
    token("docker_token", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_\-]{24,64}"),
    token("circleci_token", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9_\-]{20,100}"),
    token("buildkite_token", "bkua_ bkct_ bkaj_", r"[A-Za-z0-9]{30,80}"),
    token("sourcegraph_token", "sgp_ sgd_ slk_", r"[A-Za-z0-9_]{40,120}", check=has_digit),
    token("crates_token", "cio", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])", check=has_digit, near=r"cargo|crates"),
)

_MODELS = (
    token("anthropic_key", "sk-ant-", r"[A-Za-z0-9_\-]{16,300}", strict=False),
    token("openai_key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[A-Za-z0-9_\-]{16,300}", strict=False),
    token("openrouter_key", "sk-or-", r"[A-Za-z0-9_\-]{20,200}", check=has_digit),
    token("langfuse_key", "sk-lf-", r"[A-Za-z0-9\-]{20,60}"),
    token(
        "openai_key",
        "sk-",
        r"(?!ant-|proj-|svcacct-|admin-|or-|lf-)[A-Za-z0-9_\-]{20,300}",
        check=has_digit_and_letter_run,
    ),
    token("huggingface_token", "hf_ api_org_", r"[A-Za-z0-9]{30,60}(?![A-Za-z0-9_])"),
    token("groq_key", "gsk_", r"[A-Za-z0-9]{30,80}", check=has_digit),
    token("xai_key", "xai-", r"[A-Za-z0-9_\-]{40,120}", check=has_digit),
    token("perplexity_key", "pplx-", r"[A-Za-z0-9]{30,80}"),
    token("replicate_token", "r8_", r"[A-Za-z0-9]{30,50}", check=has_digit),
    token("nvidia_key", "nvapi-", r"[A-Za-z0-9_\-]{40,120}"),
    token("fireworks_key", "fw_", r"[A-Za-z0-9]{20,40}(?![A-Za-z0-9_])", check=has_digit),
    token("tavily_key", "tvly-", r"[A-Za-z0-9_\-]{20,80}", check=has_digit),
    token("langsmith_key", "lsv2_pt_ lsv2_sk_ ls__", r"[A-Za-z0-9_]{32,100}"),
    token("pinecone_key", "pcsk_", r"[A-Za-z0-9_]{40,120}"),
    token("e2b_key", "e2b_", r"[a-f0-9]{30,60}"),
    token("firecrawl_key", "fc-", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
    token("voyage_key", "pa-", r"[A-Za-z0-9_\-]{40,60}", check=has_digit_and_letter_run),
    token("jina_key", "jina_", r"[A-Za-z0-9_\-]{40,100}", check=has_digit),
    token("elevenlabs_key", "sk_", r"[a-f0-9]{40,60}(?![A-Za-z0-9])"),
    token("cerebras_key", "csk-", r"[a-z0-9]{40,60}"),
    token("browserbase_key", "bb_live_ bb_test_", r"[A-Za-z0-9_\-]{20,60}"),
)

_PEM_HEAD = rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_LINE_LEAD = rb"(?:\\{1,9}[nrt]|[\s>|+,\"']|\d{1,6}(?:\xe2\x86\x92|[:|\t]))*+"

_KEY_FILES = (
    Rule(
        "private_key",
        ("-----begin ",),
        re.compile(
            _PEM_HEAD + rb"(?:"
            # A whole block, whatever stands in front of its lines (quotes, line numbers, diff signs).
            rb"(?=[^-]{0,16000}?[A-Za-z0-9+/=]{16})(?:(?!-----BEGIN)[\s\S]){16,20000}?"
            rb"-----END [A-Z0-9 ]{0,60}-----"
            # A block cut short by whoever limits the output of tools.
            rb"|" + _LINE_LEAD + rb"(?:[A-Za-z0-9\-]{1,20}: [^\n\\]{1,80}" + _LINE_LEAD + rb")*+"
            rb"(?:[A-Za-z0-9+/=]{16,}+" + _LINE_LEAD + rb")++[A-Za-z0-9+/=]*+)"
        ),
    ),
    Rule(
        "private_key",
        ("private-lines:",),
        re.compile(
            rb"Private-Lines: \d{1,3}(?P<secret>"
            + _LINE_LEAD
            + rb"(?:[A-Za-z0-9+/=]{16,}+"
            + _LINE_LEAD
            + rb")++)"
        ),
    ),
    token("age_key", "AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1", r"[A-Za-z0-9]{40,120}", strict=False),
)

_JWT_PART = rb"[A-Za-z0-9_\-]"
_SCHEMES = (
    Rule(
        "jwt",
        ("eyj",),
        re.compile(
            starts_after(rb"A-Za-z0-9_\-+/") + rb"eyJ" + _JWT_PART + rb"{8,2000}"
            rb"(?:\.eyJ" + _JWT_PART + rb"{4,16000}\." + _JWT_PART + rb"{0,2000}"
            rb"|(?:\." + _JWT_PART + rb"{0,8000}){3}\." + _JWT_PART + rb"{16,64})"
        ),
        tail=re.compile(rb"[A-Za-z0-9_\-]*+(?:\.[A-Za-z0-9_\-]{8,}+){0,2}"),
    ),
    Rule(
        "bearer",
        ("bearer ", "bearer%20", "bearer+", "bearer\t"),
        re.compile(rb"(?i:bearer)(?:[ \t]{1,4}|%20|\+)(?P<secret>[A-Za-z0-9._~+/:|\-]{8,4000}+={0,2})"),
        check=_is_bearer_token,
        tail=re.compile(rb"[A-Za-z0-9._~+/\-]*+={0,2}"),
    ),
    Rule(
        "basic_auth",
        ("basic ", "basic%20", "basic+"),
        re.compile(rb"(?i:basic)(?:[ \t]{1,4}|%20|\+)(?P<secret>[A-Za-z0-9+/]{6,2000}+={0,2})"),
        check=_is_basic_credentials,
    ),
)

SHAPES: tuple[Rule, ...] = _MODELS + _CLOUDS + _CODE_HOSTS + _KEY_FILES + SERVICES + _SCHEMES

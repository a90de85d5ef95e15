"""Which names promise a secret. Must not take a count of tokens, a key of a table or an id for one."""

import re
from functools import lru_cache
from typing import NamedTuple

_WORDS = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_HEADERS = frozenset(
    b"authorization proxyauthorization cookie setcookie cookies xapikey xgoogapikey xamzsecuritytoken "
    b"xauthtoken xaccesstoken xgithubtoken privatetoken jobtoken xvaulttoken xcsrftoken xxsrftoken "
    b"ocpapimsubscriptionkey xfunctionskey xmsauthorization wwwauthorization xamzncredentials xauthkey "
    b"xauthuserkey xsecretkey xsessiontoken xforwardedaccesstoken xmsclientprincipal "
    b"cfaccessclientsecret cfaccessjwtassertion xgitlabtoken xshopifyaccesstoken ddapikey "
    b"ddapplicationkey xhoneycombteam xplextoken xapitoken xtoken xslacksignature stripesignature "
    b"xhubsignature xhubsignature256 authenticationtoken xrapidapikey xsubscriptiontoken xaccountkey".split()
)
_PASSWORDS = frozenset(
    b"password passwd passwort passphrase passcode pwd pw psw pass mysqlpwd pgpassword".split()
)
_STRONG = _PASSWORDS | frozenset(
    b"secret secrets passwords credential credentials creds cred apikey apikeys apitoken authtoken "
    b"accesstoken refreshtoken privatekey secretkey accesskey clientsecret connectionstring connstr "
    b"connstring jwt mnemonic accountkey sharedaccesskey authorization cookie sas pat bearer signingkey "
    b"encryptionkey masterkey sharedkey sessiontoken idtoken bottoken securitytoken authkey".split()
)
_WEAK = frozenset(b"token key auth tok pass".split())
_KEY_OWNERS = frozenset(
    b"api apis secret private access auth account encryption encrypt decryption signing sign signature "
    b"master shared storage service client ssh gpg pgp hmac webhook admin app application license "
    b"licence deploy server root consumer subscription functions function ingest ingestion write read "
    b"token session jwt cookie aes rsa pem sdk rest openai anthropic google gemini azure aws gcp github "
    b"gitlab groq mistral cohere deepseek stripe twilio sendgrid mailgun huggingface hf datadog dd "
    b"newrelic sentry algolia pinecone langsmith langchain serpapi tavily openrouter perplexity "
    b"replicate together xai fireworks voyage jina exa brave supabase cloudflare heroku slack discord "
    b"telegram notion linear figma airtable hubspot mapbox maps youtube nvidia elevenlabs deepgram "
    b"assemblyai unsplash binance coinbase alpaca polygon finnhub weather openweather vercel netlify "
    b"render fly railway neon turso e2b firecrawl browserbase anyscale wandb comet helicone portkey "
    b"langfuse litellm proxy llm wireguard preshared psk wpa wifi symmetric".split()
)
_PUBLIC_KEYS = frozenset(
    b"public primary foreign partition sort cache idempotency dedupe hash unique index lookup group "
    b"range map dict object s3 file row col column sub super composite candidate natural publishable pub "
    b"json yaml config setting registry hot short arrow enter escape tab shift control function row join "
    b"trace routing message event job issue project translation i18n locale feature flag state query "
    b"mutation react data context storage_path policy policies".split()
)
_TOKEN_OWNERS = frozenset(b"bearer refresh security bot personal oauth id sas identity device push".split())
_PLAIN_TOKENS = frozenset(
    b"page next previous prev continuation continue cursor sync pagination paging start stop eos bos pad "
    b"unk mask sep cls special max min total input output prompt completion cached cache thinking "
    b"reasoning first last per image audio text num n number count design cancel cancellation delta "
    b"syntax lexer parser eof new current peek vocab draft target string comma keyword operator "
    b"identifier word sub bonus begin end resume checkpoint".split()
)
_HARMLESS_ENDS = frozenset(
    b"id ids name names count counts limit limits length len size type types kind url uri urls endpoint "
    b"path paths file filename files dir directory hint label field fields policy policies expiry "
    b"expires expired expiration ttl at age version format prefix suffix index idx usage budget cost "
    b"price rate min max required enabled disabled valid validator validators validation strength reset "
    b"changed error errors message messages msg status description title placeholder input form manager "
    b"store provider providers service handler helper rotation rotated algorithm alg method location "
    b"source ref refs arn env envs var vars variable class cls schema pattern regex re mode scope scopes "
    b"details info metadata test tests exists present set get details review check checks checker "
    b"checked detector redactor scanner generator generated model models options option settings config "
    b"configs page pages text string in out to from for by on is has used count total left remaining per "
    b"second minute times time date issued created updated hash_alg encoding encoder decoder parser "
    b"type_hint request response requests policy days hours seconds minutes ms manager context contexts "
    b"events event stream streams chunk chunks bucket ring chain board word words press up down code "
    b"codes frame frames value_type pair pairs map table owner user email role roles group count_by "
    b"estimate estimates estimated window windows rule rules logic flow step steps doc docs example "
    b"examples template templates keyword keywords kinds finding findings marker markers digest sha sum "
    b"redacted leak leaks leaked detected audience issuer type_ nonce_id verified verifier number "
    b"numbers".split()
)


class Name(NamedTuple):
    """What a name promises."""

    strength: int
    """0 nothing, 1 a secret if it looks random, 2 a secret unless a placeholder, 3 an HTTP header of secrets."""

    is_password: bool
    """Whether people choose such secrets: short, wordy, even numbers."""


NOTHING = Name(0, False)
_WEAK_NAME = Name(1, False)


def judge_text(name: str) -> Name:
    """The verdict on a name given as text."""
    return _judge_text(name) if len(name) <= 100 else NOTHING


@lru_cache(maxsize=8192)
def _judge_text(name: str) -> Name:
    return judge(name.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=8192)
def judge(name: bytes) -> Name:
    """The verdict on an identifier in whatever case style, dotted paths included."""
    words = [word.lower() for word in _WORDS.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words:
        return NOTHING
    joined = b"".join(words)
    if joined in _HEADERS:
        return Name(3, False)
    last = words[-1]
    owner = words[-2] if len(words) > 1 else b""
    if last in _PASSWORDS and (last != b"pass" or owner or name.isupper()):
        return Name(2, True)
    if owner + last in _STRONG or last in _STRONG - _PASSWORDS:
        return NOTHING if last == b"pat" and not owner else Name(2, False)
    if last in (b"key", b"keys"):
        return _judge_key(owner, name)
    if last == b"token":
        return _judge_token(words[:-1])
    if last in (
        b"hash",
        b"hashed",
        b"value",
        b"base64",
        b"b64",
        b"plain",
        b"plaintext",
        b"raw",
        b"old",
        b"new",
        b"confirm",
        b"confirmation",
        b"prod",
        b"production",
        b"dev",
        b"staging",
        b"live",
        b"primary",
        b"secondary",
        b"default",
    ):
        stem = judge(b"_".join(words[:-1]))
        return stem if stem.strength >= 2 else NOTHING
    if last in _HARMLESS_ENDS:
        return NOTHING
    if last in _WEAK:
        return _WEAK_NAME
    glued = re.search(
        rb"(?:password|passwd|secretkey|apikey|authtoken|accesstoken|clientsecret|privatekey)$", joined
    )
    if glued:
        return Name(2, b"passw" in glued[0])
    return NOTHING


def judge_with_word(word: bytes, name: bytes) -> Name:
    """The verdict on a name of prose after its first word: `api key` is an `api_key`, `some key` a key."""
    if (
        word.lower() in _KEY_OWNERS
        or word.lower() in _TOKEN_OWNERS
        or word.lower() in _PLAIN_TOKENS | _PUBLIC_KEYS
    ):
        return judge(word.lower() + b"_" + name.lower())
    return judge(name)


def _judge_key(owner: bytes, name: bytes) -> Name:
    if owner in _KEY_OWNERS or (
        re.fullmatch(rb"[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)*_KEY", name) and owner not in _PUBLIC_KEYS
    ):
        return Name(2, False)
    return NOTHING if owner in _PUBLIC_KEYS else _WEAK_NAME


def _judge_token(owners: list[bytes]) -> Name:
    if not owners or owners[-1] in (b"self", b"this", b"csrf", b"xsrf", b"device", b"the", b"a"):
        return _WEAK_NAME
    return NOTHING if owners[-1] in _PLAIN_TOKENS else Name(2, False)

"""Secrets known by their shape: chat, payment, mail, monitoring and other web services."""

import re

from ledger.redaction.rules import BOUNDARY, Rule, has_digit, starts_after, token, varied


def _discord_starts() -> tuple[str, ...]:
    """How a Discord token may start: base64 of a decimal id, so that four characters are a rare mix."""
    return tuple(a + b + c + d for a in "mno" for b in "dtjz" for c in "aeimquycgk" for d in "wxyz012345")


_CHAT = (
    token(
        "slack_token",
        "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxc- xoxd- xoxe.xox xapp- xwfp-",
        r"[A-Za-z0-9\-%./+]{10,400}",
    ),
    Rule(
        "slack_webhook",
        ("hooks.slack.com/", "hooks.slack-gov.com/"),
        re.compile(
            rb"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_\-]{20,200})"
        ),
    ),
    Rule(
        "discord_webhook",
        ("/api/webhooks/",),
        re.compile(rb"/api/webhooks/\d{15,22}/(?P<secret>[A-Za-z0-9_\-]{40,100})"),
    ),
    Rule(
        "discord_token",
        _discord_starts(),
        re.compile(
            starts_after(rb"A-Za-z0-9_\-.") + rb"[MNO][DTjz][AEIMQUYcgk][w-z0-5]"
            rb"[A-Za-z0-9_\-]{18,26}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{25,45}"
            rb"(?![A-Za-z0-9_\-])"
        ),
        check=varied,
    ),
    Rule("discord_token", ("mfa.",), re.compile(BOUNDARY + rb"mfa\.[A-Za-z0-9_\-]{80,95}"), check=varied),
    Rule(
        "telegram_token",
        (":aa",),
        re.compile(
            starts_after(rb"0-9A-Za-z")
            + rb"(?P<lead>bot)?(?P<secret>[0-9]{7,12}:AA[A-Za-z0-9_\-]{32,36})(?![A-Za-z0-9_\-])"
        ),
        before=15,
        check=varied,
    ),
    Rule(
        "teams_webhook",
        (".webhook.office.com/", "outlook.office.com/webhook/"),
        re.compile(rb"office\.com/webhook(?:b2)?/(?P<secret>[A-Za-z0-9@/\-]{60,300})"),
        before=12,
    ),
    token("twitch_token", "oauth:", r"[a-z0-9]{30}(?![A-Za-z0-9])"),
)

_PAYMENT = (
    token(
        "stripe_key",
        "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_",
        r"[A-Za-z0-9_]{10,250}",
        check=has_digit,
    ),
    token("stripe_webhook_secret", "whsec_", r"[A-Za-z0-9+/=_\-]{20,120}", check=has_digit),
    token("square_token", "sq0atp- sq0csp- sq0idp-", r"[A-Za-z0-9_\-]{20,60}"),
    token("square_token", "EAAA EAAE EAAl", r"[A-Za-z0-9_\-+]{56,64}(?![A-Za-z0-9_\-+/])", check=has_digit),
    token("shopify_token", "shpat_ shpca_ shppa_ shpss_ shptka_ shpua_", r"[a-fA-F0-9]{24,64}"),
    Rule(
        "paypal_token",
        ("access_token$",),
        re.compile(rb"access_token\$(?:production|sandbox)\$[a-z0-9]{10,20}\$[a-f0-9]{20,40}"),
    ),
    token("plaid_token", "access-production- access-sandbox- access-development-", r"[a-f0-9\-]{36}"),
    token("razorpay_key", "rzp_live_ rzp_test_", r"[A-Za-z0-9]{14,30}", check=has_digit),
    token("flutterwave_key", "FLWSECK-  FLWSECK_TEST-", r"[A-Za-z0-9]{12,60}(?:-X)?"),
    token("lob_key", "live_ test_", r"[a-f0-9]{35}(?![A-Za-z0-9])"),
    token("duffel_token", "duffel_live_ duffel_test_", r"[A-Za-z0-9_\-=]{40,50}"),
    token("shippo_token", "shippo_live_ shippo_test_", r"[a-f0-9]{40}"),
    token("easypost_key", "EZAK EZTK", r"[A-Za-z0-9]{54}"),
)

_MAIL = (
    token("sendgrid_key", "SG.", r"[A-Za-z0-9_\-]{16,32}\.[A-Za-z0-9_\-]{32,64}", check=has_digit),
    token("mailgun_key", "key-", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
    Rule(
        "mailgun_key",
        ("mailgun",),
        re.compile(
            rb"(?i:mailgun)[^\n]{0,100}?(?<![A-Za-z0-9\-])"
            rb"(?P<secret>[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8})(?![A-Za-z0-9\-])"
        ),
        check=varied,
    ),
    Rule(
        "mailchimp_key",
        tuple(f"-us{number}" for number in range(1, 10)),
        re.compile(starts_after(rb"A-Za-z0-9") + rb"[a-f0-9]{32}-us\d{1,2}(?![A-Za-z0-9])"),
        before=32,
        check=varied,
    ),
    token("brevo_key", "xkeysib- xsmtpsib-", r"[a-f0-9]{50,70}-[A-Za-z0-9]{12,20}"),
    token("resend_key", "re_", r"[A-Za-z0-9]{6,12}_[A-Za-z0-9]{20,30}(?![A-Za-z0-9_])", check=has_digit),
    Rule(
        "twilio_key",
        tuple("sk" + digit for digit in "0123456789abcdef"),
        re.compile(BOUNDARY + rb"SK[a-f0-9]{32}(?![A-Za-z0-9])"),
        check=varied,
    ),
)

_MONITORING = (
    token("newrelic_key", "NRAK- NRII- NRRA- NRIQ- NRAA- NRJS-", r"[A-Za-z0-9\-_]{18,60}"),
    token("grafana_token", "glsa_ glc_", r"[A-Za-z0-9_+/=\-]{30,500}"),
    token("sentry_token", "sntrys_ sntryu_ sntrya_", r"[A-Za-z0-9_+/=\-]{40,500}"),
    token("dynatrace_token", "dt0c01. dt0s01. dt0s02. dt0s16.", r"[A-Za-z0-9]{8,24}\.[A-Za-z0-9]{40,70}"),
    token("postman_key", "PMAK- PMAT-", r"[A-Za-z0-9\-]{24,64}"),
    token("honeycomb_key", "hcaik_ hcxik_ hcxlk_ hcalk_ hcamk_", r"[A-Za-z0-9]{40,70}"),
    token("posthog_key", "phx_ phs_", r"[A-Za-z0-9_]{32,60}", check=has_digit),
)

_WORK = (
    token("linear_key", "lin_api_ lin_oauth_ lin_wh_", r"[A-Za-z0-9]{30,70}"),
    token("notion_token", "ntn_", r"[A-Za-z0-9]{40,60}"),
    token("notion_token", "secret_", r"[A-Za-z0-9]{43}(?![A-Za-z0-9_])", check=has_digit),
    token(
        "doppler_token",
        "dp.pt. dp.st. dp.sa. dp.ct. dp.scim. dp.audit. dp.said.",
        r"(?:[a-z0-9_\-]{2,35}\.)?[A-Za-z0-9]{30,60}",
    ),
    token("figma_token", "figd_ figo_ figdr_ figor_", r"[A-Za-z0-9_\-]{30,100}"),
    Rule("airtable_token", ("pat",), re.compile(BOUNDARY + rb"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}")),
    token("contentful_token", "CFPAT-", r"[A-Za-z0-9_\-]{40,60}"),
    token("typeform_token", "tfp_", r"[A-Za-z0-9_.\-]{40,80}"),
    token("dropbox_token", "sl.", r"[A-Za-z0-9_\-.]{100,1400}", check=has_digit),
    token("hubspot_token", "pat-na1- pat-na2- pat-na3- pat-eu1- pat-ap1-", r"[a-f0-9\-]{36}"),
    token("zapier_hook", "hooks.zapier.com/hooks/catch/", r"[0-9]{4,12}/[A-Za-z0-9]{5,20}"),
    token("readme_key", "rdme_", r"[a-z0-9]{60,80}"),
    token("prefect_key", "pnu_ pnb_", r"[A-Za-z0-9]{30,50}"),
    token("pulumi_token", "pul-", r"[a-f0-9]{40}"),
    token("netlify_token", "nfp_ nfc_ nfo_", r"[A-Za-z0-9_]{30,60}", check=has_digit),
    token("render_key", "rnd_", r"[A-Za-z0-9]{24,50}", check=has_digit),
    token("vercel_token", "vcp_ vci_ vca_ vcr_ vck_", r"[A-Za-z0-9]{20,80}", check=has_digit),
    token("supabase_key", "sbp_ sb_secret_", r"[A-Za-z0-9_\-]{20,80}", check=has_digit),
    token("planetscale_token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_\-.=]{30,70}"),
    token("neon_key", "napi_", r"[a-z0-9]{40,80}"),
    token("mapbox_key", "sk.eyJ", r"[A-Za-z0-9_\-]{30,200}\.[A-Za-z0-9_\-]{15,60}"),
    token("tailscale_key", "tskey-", r"[A-Za-z0-9\-]{16,100}"),
    token("ngrok_key", "ngrok_", r"[A-Za-z0-9_]{30,80}", check=has_digit),
    token("onepassword_token", "ops_eyJ", r"[A-Za-z0-9+/_\-]{100,4000}={0,3}"),
    Rule("onepassword_key", ("a3-",), re.compile(BOUNDARY + rb"A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,6}")),
    token("artifactory_token", "AKCp", r"[A-Za-z0-9]{60,80}"),
    token("artifactory_token", "cmVmd", r"[A-Za-z0-9]{59}(?![A-Za-z0-9])"),
    token("adafruit_key", "aio_", r"[A-Za-z0-9]{28}(?![A-Za-z0-9])"),
    token("facebook_token", "EAAC EAAM EAAG EAAB", r"[A-Za-z0-9]{90,400}"),
    token("instagram_token", "IGQV IGAA", r"[A-Za-z0-9_\-]{60,400}", check=has_digit),
    Rule(
        "firebase_key",
        (":apa91b",),
        re.compile(starts_after(rb"A-Za-z0-9") + rb"[A-Za-z0-9_\-]{8,30}:APA91b[A-Za-z0-9_\-]{100,200}"),
        before=30,
    ),
    Rule(
        "azure_sas",
        ("sig=",),
        re.compile(rb"(?:[?&;]|&amp;|\\u0026)sig=(?P<secret>[A-Za-z0-9%+/=_\-]{20,120})"),
        before=6,
        check=varied,
    ),
)

SERVICES: tuple[Rule, ...] = _CHAT + _PAYMENT + _MAIL + _MONITORING + _WORK

"""Secrets: used by handle, never by value; found and removed."""

from ledger.events.record import Event


class CredentialUsed(Event, name="credential.used"):
    """A tool was given a credential."""

    handle: str
    """Name of the credential, never its value."""

    call_id: str | None = None
    """Call that used it."""

    tool: str | None = None
    """Tool that used it."""


class SecretRedacted(Event, name="credential.secret_redacted"):
    """A secret stood in the content and was removed before anything was written."""

    where: str
    """Place: what was being kept, and a JSON pointer into it."""

    kind: str
    """Kind of secret, as the marker in the content says."""

    secret_digest: str
    """Keyed digest, as the marker says: equal for equal secrets, of no use without the key."""

    count: int = 1
    """How often it stood there."""

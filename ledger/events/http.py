"""HTTP exchanges between a client and a provider that are no model call: requested, answered."""

from typing import Literal

from ledger.events.record import ContentRef, Event


class HttpRequested(Event, name="http.requested", ignorable=True):
    """A client asked a provider for something other than a model's answer."""

    exchange_id: str
    """Joins request and answer."""

    method: str
    """HTTP method."""

    target: str
    """Path and query, without credentials."""

    http: ContentRef | None = None
    """The request around the body: `{"method", "target", "headers": [[name, value]]}`, without credentials."""

    body: ContentRef | None = None
    """The body, redacted; None when it was empty."""

    lane: str | None = None
    """Conversation that the request belongs to, as the client names it."""

    at_us: int | None = None
    """Microseconds by a monotonic clock from the start or resumption of the session to the sending."""


class HttpAnswered(Event, name="http.answered", ignorable=True):
    """Such an exchange ended."""

    exchange_id: str
    """The exchange."""

    outcome: Literal["complete", "cut", "aborted", "unreachable"]
    """`cut` by the provider, `aborted` by the client, `unreachable`: nobody answered."""

    status: int | None = None
    """HTTP status."""

    http: ContentRef | None = None
    """The response around the body: `{"status", "headers": [[name, value]], "ended"}`."""

    stream: ContentRef | None = None
    """The chunks of the body, as in `model_call.answered`; None when it was empty."""

    error: str | None = None
    """What went wrong on the way."""

    first_byte_at_us: int | None = None
    """When the first byte came, by the clock of the request's `at_us`."""

    ended_at_us: int | None = None
    """When the last byte came, by that clock."""

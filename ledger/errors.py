"""Every error that the ledger raises for a reason other than a bug.

LedgerError
├── InputError                what the user gave cannot be used (exit status 2)
│   ├── SessionNotFoundError      no session has this id or prefix
│   ├── AmbiguousSessionError     several sessions have this prefix
│   ├── RecordNotFoundError       the session has no record at this seq
│   ├── SourceError               a file cannot be read as what it was said to be
│   ├── NotApprovedError          a call was not run: no answer covers it
│   └── StoreUnavailableError     the store cannot be opened, or is closed
├── ConflictError             somebody else appended since the expected seq
├── ContentMissingError       a blob or context node that a record names is not in the store
├── UnknownEventError         a stored event that this version does not know and may not ignore
├── RecordDamagedError        stored bytes that are not a record
├── LakeDamagedError          files of a lake that do not fit its manifest
├── HeldError                 the session is held: the call was not started
└── NotRecordedError          an intent could not be kept, so the action must not run (fails closed)
"""


class LedgerError(Exception):
    """Base of all: `except LedgerError` is what a caller writes."""


class InputError(LedgerError):
    """What the user gave cannot be used; the message says what was expected, found, and where."""


class SessionNotFoundError(InputError):
    """No session has this id or prefix."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"no session has an id that starts with {name!r}; `loopledger sessions` lists those that exist"
        )
        self.name = name


class AmbiguousSessionError(InputError):
    """Several sessions have this prefix; `candidates` holds some of them."""

    def __init__(self, name: str, candidates: list[str]) -> None:
        super().__init__(
            f"{name!r} is the start of several session ids: {', '.join(candidates)}; give more of it"
        )
        self.name = name
        self.candidates = candidates


class RecordNotFoundError(InputError):
    """The session has no record at this seq."""

    def __init__(self, session: str, seq: int, head: int) -> None:
        super().__init__(f"{session}#{seq} does not exist: the session has records 1 to {head}")
        self.session = session
        self.seq = seq
        self.head = head


class SourceError(InputError):
    """A file cannot be read as what it was said to be."""


class NotApprovedError(InputError):
    """A tool call was not run: it was denied, nobody answered in time, or the answer does not cover it."""

    def __init__(self, tool: str, approval_id: str, shortfalls: list[str], reason: str) -> None:
        super().__init__(f"tool {tool!r} was not run: {reason}")
        self.tool = tool
        self.approval_id = approval_id
        self.shortfalls = shortfalls
        self.reason = reason


class StoreUnavailableError(InputError):
    """The store cannot be used: wrong address, no permission, not a ledger, closed."""


class ConflictError(LedgerError):
    """Somebody else appended to the session since the expected seq; nothing was written."""

    def __init__(self, session: str, expected: int, found: int) -> None:
        super().__init__(f"{session} is at seq {found}, not at {expected} as expected; nothing was appended")
        self.session = session
        self.expected = expected
        self.found = found


class ContentMissingError(LedgerError):
    """A blob or context node that a record names is not in the store (erased, or the store is damaged)."""

    def __init__(self, what: str, digest: str) -> None:
        super().__init__(
            f"{what} {digest} is not in the store; `loopledger verify` tells whether it was erased or lost"
        )
        self.what = what
        self.digest = digest


class UnknownEventError(LedgerError):
    """A stored event that this version does not know and may not ignore."""

    def __init__(self, place: str, event_type: str, version: int) -> None:
        super().__init__(
            f"{place} is a {event_type!r} of version {version}, which this version of loopledger does not know "
            "and may not ignore; read it with a newer one"
        )
        self.place = place
        self.event_type = event_type
        self.version = version


class RecordDamagedError(LedgerError):
    """Stored bytes that are not a record: expected canonical JSON of a known shape."""

    def __init__(self, place: str, detail: str) -> None:
        super().__init__(f"{place} cannot be read as a record: {detail}")
        self.place = place
        self.detail = detail


class LakeDamagedError(LedgerError):
    """Files of a lake that do not fit its manifest; it can be made again from the store."""


class NotRecordedError(LedgerError):
    """An intent could not be kept, so the action was not started (law: intent before effect, fails closed)."""


class HeldError(LedgerError):
    """The session is held, by a person or a breaker, so the call was not started; `release` lets it go on."""

    def __init__(self, session: str, breaker: str | None, reason: str | None) -> None:
        by = "a person" if breaker is None else f"the breaker {breaker!r}"
        super().__init__(f"session {session} is held by {by}{f': {reason}' if reason else ''}")
        self.session = session
        self.breaker = breaker
        self.reason = reason

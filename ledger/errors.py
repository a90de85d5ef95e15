"""Every error that the ledger raises for a reason other than a bug.

LedgerError
├── InputError                what the user gave cannot be used (exit status 2)
│   ├── SessionNotFoundError      no session has this id or prefix
│   ├── AmbiguousSessionError     several sessions have this prefix
│   ├── RecordNotFoundError       the session has no record at this seq
│   ├── SourceError               a file cannot be read as what it was said to be
│   └── StoreUnavailableError     the store cannot be opened
├── ConflictError             somebody else appended since the expected seq
├── ContentMissingError       a blob or context node that a record names is not in the store
├── UnknownEventError         a stored event that this version does not know and may not ignore
├── RecordDamagedError        stored bytes that are not a record
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


class StoreUnavailableError(InputError):
    """The store cannot be opened: wrong address, no permission, not a ledger."""


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


class NotRecordedError(LedgerError):
    """An intent could not be kept, so the action was not started (law: intent before effect, fails closed)."""

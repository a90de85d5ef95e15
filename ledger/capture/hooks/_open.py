"""The calls that have begun and not ended, by the framework's ids; what was kept and lost. Records nothing itself."""

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ledger.capture.journal import beside
from ledger.errors import LedgerError

_SEEN_KEPT = 50_000

Call = TypeVar("Call")


@dataclass
class Counts:
    """What a hook has seen and kept."""

    callbacks: int = 0
    """Times that the framework told anything."""

    sessions: int = 0
    """Sessions begun or gone on with."""

    model_calls: int = 0
    """Model calls recorded."""

    tool_calls: int = 0
    """Tool calls recorded."""

    approvals: int = 0
    """Questions recorded."""

    unmatched: int = 0
    """Ends of calls whose beginning was not told."""

    lost: int = 0
    """Facts that the store could not keep (only where the hook fails open)."""

    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    """Held while counting."""

    def add(self, name: str) -> None:
        """Count one more."""
        with self.lock:
            setattr(self, name, getattr(self, name) + 1)

    def __str__(self) -> str:
        return ", ".join(
            f"{count} {name.replace('_', ' ')}"
            for name, count in self.__dict__.items()
            if name != "lock" and (count or name not in ("unmatched", "lost"))
        )


class Keeping:
    """What becomes of a fact that the store cannot keep: it stops the framework, or is counted and warned of."""

    def __init__(self, fail_open: bool) -> None:
        self.fail_open = fail_open
        self.counts = Counts()
        """What was seen and kept so far."""

    @contextmanager
    def keeping(self, what: str) -> Iterator[None]:
        """Around whatever is recorded."""
        try:
            yield
        except LedgerError as error:
            if not self.fail_open:
                raise
            self.counts.add("lost")
            warnings.warn(f"loopledger could not record the {what}: {error}", RuntimeWarning, stacklevel=4)

    @contextmanager
    def failing(self, error: BaseException | str) -> Iterator[None]:
        """Around the recording of a failure: the failure itself goes on, whatever becomes of its record."""
        with self.keeping("failure of a call"):
            if isinstance(error, str):
                yield
            else:
                with beside(error):
                    yield


class Open(Generic[Call]):
    """Calls of one kind by key. Each key begins once and ends once, whatever thread says so."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[str, Call] = {}
        self._seen: OrderedDict[str, None] = OrderedDict()

    def begin(self, key: Any, make: Callable[[], Call]) -> Call | None:
        """Make the call and keep it; None when the key has begun before. What `make` raises leaves no trace."""
        name = str(key)
        with self._lock:
            if name in self._seen:
                return None
            self._seen[name] = None
            while len(self._seen) > _SEEN_KEPT:
                self._seen.popitem(last=False)
        try:
            call = make()
        except BaseException:
            with self._lock:
                self._seen.pop(name, None)
            raise
        with self._lock:
            self._calls[name] = call
        return call

    def put(self, key: Any, call: Call) -> None:
        """Keep a call that began before."""
        with self._lock:
            self._seen[str(key)] = None
            self._calls[str(key)] = call

    def get(self, key: Any) -> Call | None:
        """The call, as long as it is open."""
        return self._calls.get(str(key))

    def has_seen(self, key: Any) -> bool:
        """Whether it began, lately."""
        return str(key) in self._seen

    def take(self, key: Any) -> Call | None:
        """The call, which ends now."""
        with self._lock:
            return self._calls.pop(str(key), None)

    def take_if(self, is_wanted: Callable[[Call], bool]) -> list[Call]:
        """All open calls of which that is true, which end now; in the order in which they began."""
        with self._lock:
            found = [key for key, call in self._calls.items() if is_wanted(call)]
            return [self._calls.pop(key) for key in found]

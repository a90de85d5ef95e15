"""The lists that pages read, kept up with the ledger beside them. Writes nothing but these lists."""

import contextlib
import logging
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ledger.cli.records import outline
from ledger.home import Ledger
from ledger.views.events import EventsView
from ledger.views.search import SearchView
from ledger.views.sessions import SessionsView
from ledger.views.view_file import ViewFile
from webui.jobs import end_process, start_process

_PAUSE_S = 1.0
_log = logging.getLogger(__name__)
_View = TypeVar("_View", bound=ViewFile)


class Lists:
    """The lists of one ledger. Threads may share it; each borrows a connection of its own for as long as it reads.

    Without `start`, who borrows brings the list up to the ledger first. With it another process does so, and whoever
    reads sees what there is: a long import then makes no page wait.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._sessions = _Pool(lambda: SessionsView(ledger.home, ledger.store))
        self._events = _Pool(lambda: EventsView(ledger.home, ledger.store, outline))
        self._search = _Pool(lambda: SearchView(ledger.home, ledger.store))
        self._stop = threading.Event()
        self._changed = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    def start(self, store: str | None = None, *, lake: bool = False) -> None:
        """Keep the lists up from now on, in a process of its own; with `lake` the lake too, made if it must be.

        A thread of this process would take turns with those who answer: a page would wait for each batch.
        """
        self._thread = threading.Thread(target=self._follow, args=(store, lake), name="lists", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, and close all files."""
        self._stop.set()
        with self._changed:
            process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()
        if self._thread is not None:
            self._thread.join()
        for pool in (self._sessions, self._events, self._search):
            pool.close()

    @contextlib.contextmanager
    def sessions(self) -> Iterator[SessionsView]:
        """The list of sessions."""
        with self._sessions.borrowed() as view:
            self._bring_up(view)
            yield view

    @contextlib.contextmanager
    def events(self) -> Iterator[EventsView]:
        """The events of all sessions."""
        with self._events.borrowed() as view:
            self._bring_up(view)
            yield view

    @contextlib.contextmanager
    def search(self) -> Iterator[SearchView]:
        """The index of words."""
        with self._search.borrowed() as view:
            self._bring_up(view)
            yield view

    def behind(self) -> int:
        """How many records the list of events does not show yet; none where whoever reads brings it up first."""
        if self._thread is None:
            return 0
        with self._events.borrowed() as view:
            return max(0, self._ledger.store.last_position() - view.position)

    def _bring_up(self, view: ViewFile) -> None:
        if self._thread is None:
            view.catch_up()

    def _follow(self, store: str | None, lake: bool) -> None:
        """Watch over the process: log what it complains about, start another when it ends."""
        while not self._stop.is_set():
            asked = {"kind": "follow", "home": str(self._ledger.home.resolve()), "lake": lake}
            with self._changed:
                if self._stop.is_set():
                    return
                process = self._process = start_process(asked, store)
            assert process.stdout is not None
            for line in process.stdout:
                _log.warning("the lists: %s", line.decode("utf-8", "replace").strip()[:2000])
            end_process(process)
            self._stop.wait(_PAUSE_S)


class _Pool(Generic[_View]):
    """Open views that nobody uses at the moment."""

    def __init__(self, open_view: Callable[[], _View]) -> None:
        self._open = open_view
        self._lock = threading.Lock()
        self._idle: list[_View] = []

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[_View]:
        """A view for one thread."""
        with self._lock:
            view = self._idle.pop() if self._idle else None
        view = view or self._open()
        try:
            yield view
        finally:
            with self._lock:
                self._idle.append(view)

    def close(self) -> None:
        """Close those that nobody uses."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()

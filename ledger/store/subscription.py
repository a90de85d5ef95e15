"""The library's subscription, for recorders that are polled: no wake-up can be lost."""

import threading
from collections.abc import Sequence

from eventsourcing.persistence import ApplicationRecorder, ListenNotifySubscription


class PolledSubscription(ListenNotifySubscription[ApplicationRecorder]):
    """Woken by a poll of the last position: sees appends of this process and of all others."""

    _POLL_S = 0.05

    def __init__(
        self, recorder: ApplicationRecorder, gt: int | None = None, topics: Sequence[str] = ()
    ) -> None:
        super().__init__(recorder, gt, topics)
        self._stopping = threading.Event()
        self._poller = threading.Thread(target=self._poll, daemon=True)
        self._poller.start()

    def _poll(self) -> None:
        last: int | None = -1
        try:
            while not self._stopping.wait(self._POLL_S):
                now = self._recorder.max_notification_id()
                if now != last:
                    last = now
                    self._has_been_notified.set()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that iterates
            if self._thread_error is None:
                self._thread_error = error
            super().stop()

    def stop(self) -> None:
        """End the subscription and its poll."""
        self._stopping.set()
        super().stop()
        if threading.current_thread() is not self._poller and self._poller.is_alive():
            self._poller.join()

"""Records of an asynchronous loop are written in the order in which the loop came to them.

A write goes to a thread, so that it holds up no other task of the loop; but which of two threads comes first is chance.
Then three calls that were started together could be recorded one after the other or side by side, and a replay that
meets the other order would seem to leave its recording. So each thread takes the write that has waited longest.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Turns:
    """The order of the writes of one loop and of all that it delegates to. Event loops and threads may share it."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._at_work = threading.Lock()

    async def take(
        self, write: Callable[_Given, _Result], *given: _Given.args, **options: _Given.kwargs
    ) -> _Result:
        """What `write(*given, **options)` gives or raises, called in a thread after all that were asked for before.

        A task that is cancelled while it waits writes nothing; as with `asyncio.to_thread`, what runs is not stopped.
        """
        done: Future[_Result] = Future()
        self._waiting.append((done, partial(copy_context().run, write, *given, **options)))
        asyncio.get_running_loop().run_in_executor(None, self._next)
        return await asyncio.wrap_future(done)

    def _next(self) -> None:
        with self._at_work:
            done, write = self._waiting.popleft()
            if not done.set_running_or_notify_cancel():
                return
            try:
                result = write()
            except BaseException as error:  # noqa: BLE001 - raised where it is awaited
                done.set_exception(error)
            else:
                done.set_result(result)

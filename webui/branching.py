"""Runs a command on a recorded beginning and lets it live on from there, recorded. Prints nothing."""

import asyncio
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import Any

from ledger.capture.proxy import Runs
from ledger.home import Ledger
from ledger.protocols.wire import HttpExchange
from replay.branching import Branch, BranchPlayer
from replay.player import Answer
from replay.report import Report
from webui.asgi import Receive, Scope, Send
from webui.listening import served
from webui.playing import PlayerApp
from webui.proxy import ProxyApp
from webui.rerun import Rerun, finished, folders, prepare, recorded_run, room_for
from webui.upstreams import Upstreams


def run_branch(
    ledger: Ledger,
    session: str,
    branch: Branch,
    how: Rerun,
    *,
    upstream: Sequence[str] = (),
    upstream_ca: Path | None = None,
) -> Report:
    """Run a command on the beginning of a session. Raises InputError, RecordNotFoundError, SandboxUnavailableError."""
    origin = ledger.store.resolve(session)
    known = recorded_run(ledger, origin)
    with room_for(ledger, known, how) as (command, room):
        prepared = prepare(room, command, known, is_replay=branch.models == "blocked")
        upstreams = Upstreams([*prepared.upstreams, *upstream])
        recorded, replayed = folders(known, how, room)
        player = BranchPlayer(
            ledger,
            origin,
            branch,
            recorded=recorded,
            replayed=replayed,
            gate_timeout_s=how.gate_timeout_s,
        )
        assert player.journal is not None
        runs = Runs(ledger.recorder)
        live = _Live(runs, player.journal.session, upstreams, upstream_ca)
        try:
            with served(PlayerApp(player, with_pauses=how.with_pauses, live=live), room.listening):
                status = room.run(prepared.command, prepared.environment)
        finally:
            runs.close()
        return finished(player, room, command, status, status)


class _Live:
    """The part of a branch that was never recorded: it is recorded now, in the session of the branch."""

    def __init__(self, runs: Runs, session: str, upstreams: Upstreams, upstream_ca: Path | None) -> None:
        self._runs = runs
        self._session = session
        self._proxy = ProxyApp(runs, upstreams, upstream_ca=upstream_ca)

    async def pass_on(self, scope: Scope, body: bytes, target: str, receive: Receive, send: Send) -> None:
        """Ask the model by way of the recording proxy."""
        path, _, query = target.partition("?")
        path = f"/run/{self._session}{path}"
        named = {"raw_path": path.encode("latin-1"), "path": path, "query_string": query.encode("latin-1")}
        is_given = False

        async def receive_again() -> MutableMapping[str, Any]:
            nonlocal is_given
            if is_given:
                return await receive()
            is_given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._proxy({**scope, **named}, receive_again, send)

    async def close(self) -> None:
        """Give the connections to models back."""
        await self._proxy.close()

    async def keep(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes, answer: Answer
    ) -> None:
        """Record the answer as if a model had given it."""
        assert answer.status is not None
        exchange = HttpExchange(target, method, headers, body)
        live = self._runs.exchange(self._session, exchange)
        begun = live.begin()
        await asyncio.wrap_future(begun)
        live.begun(begun)
        live.sent()
        live.responded(answer.status, answer.headers)
        live.chunk(answer.body)
        live.end("complete")

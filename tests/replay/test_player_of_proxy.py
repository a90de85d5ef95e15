"""A player over what the recording proxy has recorded: the same bytes, for every protocol."""

from pathlib import Path
from typing import Any

import pytest

from ledger.home import open_ledger
from replay.player import open_player
from replay.proving import prove_requests, prove_states
from tests.scripted_model import ScriptedModel
from tests.webui.proxied import RUN, encoded, proxying, script, send
from tests.webui.test_proxy import PROTOCOLS


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_player_gives_the_bytes_that_the_proxy_passed_on(name: str, tmp_path: Path) -> None:
    target, asked = PROTOCOLS[name]
    asks: list[tuple[str, str, Any]] = [("GET", "/v1/models", b""), ("POST", target, encoded(asked))]
    with ScriptedModel(script()) as model, proxying(tmp_path, model.url) as base:
        recorded = [send(base, path, raw or None, method=method) for method, path, raw in asks]
    with open_ledger(tmp_path) as ledger:
        player = open_player(ledger, RUN, gate_timeout_s=0.0)
        for one, (status, _, body) in zip(asks, recorded, strict=True):
            method, path, raw = one
            answer = player.answer(method, path, [("content-type", "application/json")], raw)
            player.delivered(answer)
            assert (answer.source, answer.status, answer.body, answer.ended) == (
                "recorded",
                status,
                body,
                "complete",
            )
        assert player.finish().verdict == "equal"
        report = prove_requests(ledger.store, RUN)
        assert (report.divergence, report.facts["raw_bytes_equal"]) == (None, 1)
        assert prove_states(ledger.store, RUN).divergence is None

"""The proxy puts a rule back into a request in which the model could not see it, and holds one where it must."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ledger.capture.gates.pinning import HEADING
from ledger.effects.constraints import Constraint
from ledger.effects.loop_policy import LoopPolicy
from ledger.events.compaction import ConstraintPinned
from ledger.events.governance import ConstraintDeclared
from ledger.events.policy import Held
from tests.commands import answer
from tests.scripted_model import ScriptedModel, Step, Text
from tests.webui.proxied import RUN, asked_raw, encoded, messages, proxying, recorded, script, send, waited

RULE = "Never drop a table in the orders database."
PIN = LoopPolicy(constraints=(Constraint(name="no-drop", text=RULE),))
HOLD = LoopPolicy(constraints=(Constraint(name="no-drop", text=RULE, when_lost="hold"),))
STEP = Step([Text("fine")])
RESPONSES = {"model": "m", "input": [{"role": "user", "content": "hi"}]}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", messages("hi")),
        ("/v1/messages", messages("hi", stream=True, system=[{"type": "text", "text": "Be brief."}])),
        ("/v1/chat/completions", messages("hi")),
        ("/v1/responses", RESPONSES),
        ("/v1beta/models/m:generateContent", GEMINI),
    ],
)
def test_a_rule_is_put_back_before_the_request_leaves(
    path: str, body: dict[str, Any], tmp_path: Path
) -> None:
    with ScriptedModel(script(STEP)) as model, proxying(tmp_path, model.url, policy=PIN) as base:
        status, _, _ = send(base, path, encoded(body))
        sent = model.exchanges[0].body
    assert status == 200
    assert HEADING + RULE in json.dumps(sent)
    (pinned,) = recorded(tmp_path, ConstraintPinned)
    assert pinned.constraint == "no-drop"
    (raw,) = asked_raw(tmp_path)
    assert raw is not None
    assert json.loads(raw) == sent  # what is recorded is what was sent
    assert [one.constraint for one in recorded(tmp_path, ConstraintDeclared)] == ["no-drop"]


def test_a_request_that_shows_the_rule_goes_through_byte_for_byte(tmp_path: Path) -> None:
    body = encoded(messages(f"{RULE} Now to work."), indent=1)
    with ScriptedModel(script(STEP)) as model, proxying(tmp_path, model.url, policy=PIN) as base:
        send(base, "/v1/messages", body)
    assert asked_raw(tmp_path) == [body]
    assert recorded(tmp_path, ConstraintPinned) == []


def test_a_packed_request_is_sent_on_unpacked(tmp_path: Path) -> None:
    body = gzip.compress(encoded(messages("hi")))
    with ScriptedModel(script(STEP)) as model, proxying(tmp_path, model.url, policy=PIN) as base:
        status, _, _ = send(base, "/v1/messages", body, headers={"content-encoding": "gzip"})
        assert HEADING + RULE in json.dumps(model.exchanges[0].body)
    assert status == 200


def test_a_request_waits_where_the_policy_says_so(tmp_path: Path) -> None:
    with (
        ScriptedModel(script(STEP)) as model,
        proxying(tmp_path, model.url, policy=HOLD) as base,
        ThreadPoolExecutor() as pool,
    ):
        sent = pool.submit(send, base, "/v1/messages", encoded(messages("hi")))
        (held,) = waited(lambda: recorded(tmp_path, Held))
        assert held.breaker == "constraint no-drop"
        assert not model.exchanges
        answer(tmp_path, "release", RUN, "--by", "alice")
        assert sent.result(120)[0] == 200
        assert json.dumps(model.exchanges[0].body).count(RULE) == 0

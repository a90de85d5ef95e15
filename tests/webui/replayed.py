"""A recorded loop, run again with other words: its replay leaves the recording at the second request."""

import contextlib
from typing import Any

from ledger.capture import record_loop
from ledger.errors import NotRecordedError
from ledger.events import Draft
from ledger.events.model_call import ModelCallRequested
from ledger.events.session import SessionStarted
from ledger.home import Ledger
from replay.inprocess import replay_loop

ORIGIN, FORGED = "loop-0001", "forged-0001"
"""The recorded loop; and a session of which a request is not what its digest says."""


def fill_replayed(ledger: Ledger) -> str:
    """Record it, replay it; gives the session of the replay."""
    with record_loop(ledger, harness="test-harness", session=ORIGIN, name="Answer the mail") as run:
        _answer_mail(run, "Be polite. Never promise a date.")
    with replay_loop(ledger, ORIGIN) as again, contextlib.suppress(NotRecordedError):
        _answer_mail(again, "Be polite.")
    assert again.report.verdict == "diverged"
    _forge(ledger)
    return str(again.report.replay_session)


def _answer_mail(run: Any, rules: str) -> None:
    """Two questions to a model, between them a tool; the second says the rules again."""
    messages: list[Any] = [{"role": "user", "content": "Answer the mail of Ada."}]
    run.message(messages[0])
    _ask(run, messages, "I read it first.")
    run.tool(lambda box: f"1 mail in {box}: when?", {"box": "inbox"}, name="read_mail", effect_class="read")
    messages.append({"role": "user", "content": f"Rules: {rules}"})
    _ask(run, messages, "Dear Ada, soon.")


def _ask(run: Any, messages: list[Any], says: str) -> None:
    message = {"role": "assistant", "content": says}
    run.model(
        lambda **_: {"choices": [{"index": 0, "message": message}]}, model="scripted", messages=messages
    )
    messages.append(message)


def _forge(ledger: Ledger) -> None:
    asked = next(ledger.store.read(ORIGIN, names=(ModelCallRequested.TYPE,))).event
    forged = asked.model_copy(update={"body_digest": "ab" * 32})
    keeper = ledger.recorder.keeper()
    ledger.recorder.append(FORGED, [Draft(SessionStarted(harness="forger")), Draft(forged)], keeper)

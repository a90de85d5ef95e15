"""Size of a conversation whose every request carries the whole history."""

import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ledger.events import Draft
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested, Usage
from ledger.events.session import SessionStarted
from ledger.home import open_ledger
from ledger.recorder import ContextChain, Recorder
from tests.benchmarks.measure import Result

_TURNS = 200
_WORDS = (
    "the a order supplier part price margin policy mail quote draft approve steel valve pump flange gasket bolt"
).split()


def messages(turns: int = _TURNS, *, seed: int = 7) -> list[dict[str, object]]:
    """A conversation of `turns` calls, with tool results of lognormal length; the same for the same seed."""
    draw = random.Random(seed)

    def text(size: float) -> str:
        words = []
        while size > 0:
            word = draw.choice(_WORDS) if draw.random() < 0.9 else f"{draw.getrandbits(40):x}"
            words.append(word)
            size -= len(word) + 1
        return " ".join(words)

    made: list[dict[str, object]] = [{"role": "user", "content": text(300)}]
    for turn in range(turns):
        call = {
            "type": "tool_use",
            "id": f"toolu_{turn}",
            "name": f"tool_{turn % 15}",
            "input": {"query": text(60)},
        }
        made.append({"role": "assistant", "content": [{"type": "text", "text": text(120)}, call]})
        result = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{turn}",
            "content": text(draw.lognormvariate(7.3, 1.0)),
        }
        made.append({"role": "user", "content": [result]})
    return made


def run() -> Iterator[Result]:
    """The lines of this part."""
    made = messages()
    unique = len(json.dumps(made, ensure_ascii=False).encode())
    inline = sum(len(json.dumps(made[: 2 * turn + 1], ensure_ascii=False).encode()) for turn in range(_TURNS))
    with tempfile.TemporaryDirectory() as folder:
        with open_ledger(folder) as ledger:
            keeper = ledger.recorder.keeper()
            context_of = _Context(ledger.recorder)
            ledger.recorder.append("talk", [Draft(SessionStarted(harness="bench"))], keeper)
            for turn in range(_TURNS):
                context_of.turn(made, turn)
        stored = sum(path.stat().st_size for path in Path(folder).glob("ledger.sqlite*"))
    ratio = stored / unique
    kept_inline = f"{inline / unique:.0f}x if each request were kept inline"
    value = f"{ratio:.2f}x its {unique / 1000:.0f} kB of unique text ({kept_inline})"
    yield Result(
        f"storage of a {_TURNS}-turn conversation, whole history in every request", value, "<= 1x", ratio <= 1
    )


class _Context:
    """Records the conversation as a loop does: request with context, then the answer."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._keeper = recorder.keeper()
        self._chain = ContextChain(self._keeper)

    def turn(self, made: list[dict[str, object]], turn: int) -> None:
        keep, chain = self._keeper, self._chain
        for message in made[len(chain) : 2 * turn + 1]:
            chain.append(keep.json(message))
        request = ModelCallRequested(
            call_id=f"m{turn}",
            protocol="anthropic.messages",
            model="bench",
            context=chain.head,
            context_length=len(chain),
            context_added=chain.take_added(),
            completeness="messages",
        )
        self._recorder.append("talk", [Draft(request)], keep)
        answer = keep.json(made[2 * turn + 1])
        usage = Usage(input_tokens=1000, output_tokens=50)
        self._recorder.append(
            "talk", [Draft(ModelCallAnswered(call_id=f"m{turn}", message=answer, usage=usage))], keep
        )

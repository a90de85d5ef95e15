"""The command `demo`: a fresh ledger, real sessions, and each answer as a user would ask for it."""

import shlex
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer

from ledger.capture import record_loop
from ledger.cli.settings import Settings, settings_of
from ledger.cli.terminal import say
from ledger.errors import InputError
from ledger.events import Record
from ledger.events.model_call import ModelCallRequested
from ledger.home import Ledger

_FIXTURES = Path(__file__).parent.parent / "fixtures" / "importers"
_STEPS = 12
_LISTED = 16
_QUESTION = (
    "select tool, effect_class, count(*) as calls, count(*) filter (outcome = 'failed') as failed"
    " from tool_calls group by all order by calls desc, tool, effect_class limit 8"
)


def add_demo_command(app: typer.Typer) -> None:
    """Add this file's command."""

    @app.command("demo", epilog="Example: loopledger demo, or: loopledger --home /tmp/tour demo")
    def demo(context: typer.Context) -> None:
        """Import real sessions, record a live loop, and show what the ledger knows of them."""
        settings = settings_of(context)
        program = context.find_root().command
        if not _FIXTURES.is_dir():
            raise InputError(
                f"the demo needs the sample sessions of the repository: there is no {_FIXTURES};"
                " run `make demo` in a checkout, or `loopledger import PATH` on sessions of your own"
            )
        if settings.home is not None or settings.store is not None:
            _Tour(program, settings).run()
            return
        with tempfile.TemporaryDirectory(prefix="loopledger-demo-") as folder:
            _Tour(program, Settings(folder)).run()
            say("\nThat was a ledger of its own, now removed. `loopledger --home DIR demo` keeps it in DIR.")


class _Tour:
    def __init__(self, program: Callable[..., Any], settings: Settings) -> None:
        self._program = program
        self._settings = settings

    def run(self) -> None:
        """All stations."""
        here = Path.cwd()
        folder = _FIXTURES.relative_to(here) if _FIXTURES.is_relative_to(here) else _FIXTURES
        self._step("Sessions of harnesses, as they lie on disk, come into the ledger.", "import", str(folder))
        say("\n# A loop of one's own is recorded while it runs (its model is scripted here).", bold=True)
        with self._settings.open() as ledger:
            live = _live_loop(ledger)
            session, request = _best_example(ledger, live)
        say(f"recorded session {live}")
        self._step("All of them side by side.", "sessions", "--last", str(_LISTED))
        self._step(
            "The live loop: the key in its tool's arguments never reached the disk.", "events", live[:8]
        )
        self._step("One session in the middle, as it stood.", "state", session, "--at", str(request))
        self._step(
            "What changed in the steps after it.", "diff", session, str(request), str(request + _STEPS)
        )
        self._step("A model request, rebuilt.", "request", session, str(request))
        self._step("Is every byte as it was written?", "verify")
        self._step("The same records as Parquet files, for SQL here and elsewhere.", "export")
        self._step("Which tools were called most, and how did that go?", "sql", _QUESTION)

    def _step(self, what: str, *arguments: str) -> None:
        say(f"\n# {what}", bold=True)
        say(f"$ loopledger {shlex.join(arguments)}", color="cyan")
        given = ["--home", self._settings.home] if self._settings.home is not None else []
        given += ["--store", self._settings.store] if self._settings.store is not None else []
        status: Any = self._program([*given, *arguments], standalone_mode=False)
        if status:
            raise typer.Exit(int(status))


def _best_example(ledger: Ledger, other_than: str) -> tuple[str, int]:
    """A request near the middle of the session whose requests are known best, and among those the longest."""
    best: tuple[int, int, str, list[int]] | None = None
    for session in ledger.store.sessions():
        requests = list(_requests(ledger.store.read(session)))
        head = ledger.store.head(session).seq
        if session == other_than or not requests or head <= _STEPS:
            continue
        whole = [seq for seq, completeness in requests if completeness == "body"]
        known = [seq for seq, completeness in requests if completeness in ("body", "messages")]
        seqs = [seq for seq in whole or known if seq + _STEPS <= head]
        if seqs and (best is None or (len(whole), head) > best[:2]):
            best = (len(whole), head, session, seqs)
    if best is None:
        raise InputError(f"none of the sample sessions in {_FIXTURES} holds a model request to show")
    return best[2], best[3][len(best[3]) // 2]


def _requests(records: Iterator[Record]) -> Iterator[tuple[int, str]]:
    for record in records:
        if isinstance(record.event, ModelCallRequested):
            yield record.seq, record.event.completeness


# -- the live loop ---------------------------------------------------------------------------------------------------


def _live_loop(ledger: Ledger) -> str:
    """Two turns with one tool, whose arguments hold a made-up key."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Is the supplier's price list in?"}]
    with record_loop(ledger, harness="demo-loop", agent="triage", name="a loop of one's own") as run:
        run.message(messages[0])
        answer = run.model(_scripted_model, protocol="openai.chat", model="scripted-1", messages=messages)
        messages.append(answer["choices"][0]["message"])
        key = "sk-" + "proj-" + "q7Jd2mXv9Rk4TzLw8Bn3" * 2
        result = run.tool(_look_up, {"folder": "inbox", "api_key": key}, effect_class="external")
        messages.append({"role": "tool", "tool_call_id": "call_1", "content": result})
        run.checkpoint("price list found")
        run.model(_scripted_model, protocol="openai.chat", model="scripted-1", messages=messages)
        return run.session


def _scripted_model(**request: Any) -> dict[str, Any]:
    """Stands for a provider's SDK."""
    if len(request["messages"]) == 1:
        function = {"name": "_look_up", "arguments": '{"folder":"inbox"}'}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        }
    else:
        message = {"role": "assistant", "content": "Yes: prices-2026.csv arrived this morning."}
    reason = "stop" if message["content"] else "tool_calls"
    return {
        "id": f"scripted-{len(request['messages'])}",
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 20 * len(request["messages"]), "completion_tokens": 12},
    }


def _look_up(folder: str, api_key: str) -> str:
    """Stands for a tool that reaches another system."""
    return f"{folder}: prices-2026.csv"

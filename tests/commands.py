"""Runs the program as a user does: in this process for speed, as a process of its own where that is the point."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from ledger.capture import record_loop
from ledger.home import open_ledger
from webui.cli import app

FIXTURES = Path(__file__).parent.parent / "fixtures" / "importers"
DAMAGED = FIXTURES / "claude-code" / "damaged"

HOSTILE = "\x1b[31mred\x07 \u202eevil\u2066 \ud83d zero\x00width\u200b\x9b2J"
"""What a terminal would obey, hide or reorder, and half a character."""


def run(home: Path, *arguments: object) -> Result:
    """Run a command on the ledger of a folder."""
    result = CliRunner().invoke(app, ["--home", str(home), *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answer(home: Path, *arguments: object) -> Any:
    """The JSON answer of a command that goes well."""
    result = run(home, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def process(home: Path, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    """The program as a process, with pipes for its output."""
    code = "from webui.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "--home", str(home), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def record_session(home: Path, session: str = "live-1", *, text: str = "hello", turns: int = 2) -> None:
    """Record a small loop."""
    with (
        open_ledger(home) as ledger,
        record_loop(ledger, harness="my-loop", agent=text, session=session) as loop,
    ):
        messages: list[Any] = []
        for turn in range(turns):
            messages.append({"role": "user", "content": f"{text} {turn}"})
            loop.message(messages[-1])
            reply = {"role": "assistant", "content": f"{text} back"}
            usage = {"prompt_tokens": 5, "completion_tokens": 2}
            response = {"choices": [{"index": 0, "message": reply}], "usage": usage}
            loop.model(lambda _response=response, **request: _response, model="scripted", messages=messages)
            messages.append(reply)
        loop.tool(lambda **given: text, {"text": text}, name="echo")

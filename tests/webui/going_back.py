"""A loop that works in a real folder, takes a checkpoint, and then does what it should not have done."""

from pathlib import Path
from typing import Any

from ledger.capture import CheckpointRules, record_loop
from ledger.home import Ledger

SHOP = "shop-0001"
"""Its session."""

LABEL = "before the mess"
"""Label of its checkpoint."""


def fill_workspace(folder: Path) -> None:
    """The files as they were."""
    folder.mkdir()
    (folder / "notes.txt").write_text("nothing yet\n")
    (folder / "old.txt").write_text("keep me\n")


def act(ledger: Ledger, folder: Path) -> None:
    """Work, a checkpoint, the mess."""

    def edit(path: str, content: str) -> str:
        (folder / path).write_text(content)
        return f"wrote {path}"

    def transfer(**order: Any) -> str:
        return f"transfer tr_77120043 of {order['amount']}"

    def model(**request: Any) -> Any:
        message = {"role": "assistant", "content": "done, see tr_77120043"}
        return {"choices": [{"index": 0, "message": message}], "asked": len(request)}

    messages: list[Any] = [{"role": "user", "content": "tidy up"}]
    with record_loop(
        ledger, harness="shop", session=SHOP, name="Tidy up", workspace=folder, checkpoints=CheckpointRules()
    ) as loop:
        loop.message(messages[0])
        loop.tool(edit, {"path": "notes.txt", "content": "good\n"}, effect_class="write")
        loop.checkpoint(LABEL)
        loop.tool(edit, {"path": "notes.txt", "content": "bad\n"}, effect_class="write", call_id="e1")
        loop.tool(edit, {"path": "new.txt", "content": "more\n"}, effect_class="write", call_id="e2")
        loop.tool(transfer, {"amount": 100, "to": "acct-77"}, effect_class="irreversible", call_id="t1")
        messages.append({"role": "tool", "tool_call_id": "t1", "content": "transfer tr_77120043 of 100"})
        loop.model(model, model="scripted", messages=messages)

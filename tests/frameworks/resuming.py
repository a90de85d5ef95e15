"""What tests of going on in a framework share: a buyer who is asked before it orders, and what its tools did."""

from tests.scripted_model import Lane, Script, Step, Text, ToolCall

BEFORE, SEEN, AFTER = "Buy pumps, see offer 77.", "offer 77: 40 pumps", "Now buy anchors too."
"""What the user says first, what the first tool gives, what the user says last."""

STEPS = (
    Step(blocks=(ToolCall("read_offer", {"number": "77"}, id="call_read"),)),
    Step(blocks=(ToolCall("place_order", {"item": "pumps"}, id="call_order"),)),
    Step(blocks=(Text("Ordered what was approved."),)),
    Step(blocks=(Text("Anchors are out."),)),
    Step(blocks=(Text("Resumed."),)),
)
"""What the buyer's model answers; the last after going on."""


def script() -> Script:
    """The model of a buyer alone."""
    return Script(lanes=[Lane("buyer", STEPS)], prefix="resume-")


class Tools:
    """The buyer's tools, and what they did."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def read_offer(self, number: str) -> str:
        """Read an offer."""
        self.ran.append("read")
        return f"offer {number}: 40 pumps"

    def place_order(self, item: str) -> str:
        """Place an order."""
        self.ran.append(f"order {item}")
        return f"ordered {item}"

"""A model server that answers from a script, for tests that drive a real agent harness.

It speaks four wire protocols on loopback and keeps every exchange as ground truth.
It must never reach another host, and it holds no model.
"""

from .script import Error, Lane, Match, Script, Step, Text, Thinking, ToolCall, Usage, load_script
from .server import ScriptedModel
from .wire import Exchange

__all__ = [
    "Error",
    "Exchange",
    "Lane",
    "Match",
    "Script",
    "ScriptedModel",
    "Step",
    "Text",
    "Thinking",
    "ToolCall",
    "Usage",
    "load_script",
]

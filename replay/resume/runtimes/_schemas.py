"""System prompts and tool schemas, from one protocol to another."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from replay.resume.runtimes._openai import as_text
from replay.resume.turns import plain_text

TOOLS_LOST = "Tools that are no functions of your own: the other protocol has no like of them."


class Schema(NamedTuple):
    """A function that a model may call."""

    name: str
    """Its name."""

    description: str | None
    """What it is for."""

    arguments: dict[str, Any]
    """JSON schema of its arguments."""


def system_words(system: Any) -> str | None:
    """The system prompt as one text, whatever shape it has; None where there is none."""
    if isinstance(system, dict):
        system = system.get("content", system.get("parts"))
    if system is None:
        return None
    if isinstance(system, list):
        system = [{"type": "text", **part} if isinstance(part, dict) else part for part in system]
    words = plain_text(system)
    return as_text(system) if words is None else words


def schemas(tools: Any, lost: set[str]) -> Iterator[Schema]:
    """The functions among tools of any protocol; others are told in `lost`."""
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        declared = tool.get("functionDeclarations") or [tool.get("function", tool)]
        for one in declared if isinstance(declared, list) else ():
            schema = _schema(one)
            if schema is None:
                lost.add(TOOLS_LOST)
            else:
                yield schema


def _schema(tool: Any) -> Schema | None:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    arguments = tool.get("input_schema") or tool.get("parameters") or tool.get("parametersJsonSchema")
    if not isinstance(arguments, dict):
        return None
    description = tool.get("description")
    return Schema(tool["name"], description if isinstance(description, str) else None, arguments)

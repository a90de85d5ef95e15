"""Hooks of frameworks that are not installed here: importable, and clear about what is missing."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from ledger.capture.hooks.agent_framework import LedgerMiddleware
from ledger.capture.hooks.crewai import LedgerListener
from ledger.capture.hooks.google_adk import LedgerPlugin
from ledger.capture.hooks.openai_agents import LedgerTracing
from ledger.capture.hooks.pydantic_ai import LedgerCapability
from ledger.errors import InputError
from ledger.home import Ledger


@pytest.mark.parametrize(
    ("hook", "module", "distribution"),
    [
        (LedgerMiddleware, "agent_framework", "agent-framework-core"),
        (LedgerListener, "crewai", "crewai"),
        (LedgerPlugin, "google.adk", "google-adk"),
        (LedgerTracing, "agents", "openai-agents"),
        (LedgerCapability, "pydantic_ai", "pydantic-ai-slim"),
    ],
)
def test_a_hook_without_its_framework_names_what_to_install(
    ledger: Ledger, hook: Callable[[Any], Any], module: str, distribution: str
) -> None:
    try:
        is_there = find_spec(module) is not None
    except ModuleNotFoundError:
        is_there = False
    if is_there:
        pytest.skip(f"{distribution} is installed here")
    with pytest.raises(InputError, match=f"needs {distribution}"):
        hook(ledger)

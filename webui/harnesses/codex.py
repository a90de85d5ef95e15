"""Codex: a provider of its own, given as configuration on the command line; the log is in `~/.codex/sessions`."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from webui.surroundings import Config, Pointed, Setting

NAME = "codex"
PROGRAMS = ("codex", "@openai/codex")
CONFIG = Config("CODEX_HOME", ".codex", ("config.toml", "AGENTS.md", "prompts", "rules", "skills"))

_PROVIDER = "loopledger"


def point(setting: Setting) -> Pointed:
    """By `-c`. A provider that the user's configuration describes keeps all but its address."""
    url = json.dumps(f"{setting.base_url}/v1")
    moved = setting.moved(CODEX_HOME=".codex")
    settings = _settings(setting)
    name = settings.get("model_provider")
    providers = settings.get("model_providers")
    own = providers.get(name) if isinstance(name, str) and isinstance(providers, dict) else None
    if isinstance(own, dict) and isinstance(own.get("base_url"), str):
        key = own.get("env_key")
        return Pointed(
            {**moved, **(setting.placeholders(key) if isinstance(key, str) else {})},
            ("-c", f"model_providers.{name}.base_url={url}"),
            (f"openai={own['base_url']}",),
        )
    placeholders = setting.placeholders("OPENAI_API_KEY")
    has_key = bool(setting.environ.get("OPENAI_API_KEY") or placeholders)
    access = 'env_key="OPENAI_API_KEY"' if has_key else "requires_openai_auth=true"
    described = f'{{name="{_PROVIDER}",base_url={url},wire_api="responses",{access}}}'
    return Pointed(
        {**moved, **placeholders},
        ("-c", f'model_provider="{_PROVIDER}"', "-c", f"model_providers.{_PROVIDER}={described}"),
        setting.endpoint("OPENAI_BASE_URL", "openai"),
    )


def logs(environ: Mapping[str, str], home: Path, cwd: Path) -> Iterable[Path]:
    """Rollouts by day; those of sub-agents lie beside."""
    return (_folder(environ, home) / "sessions",)


def _folder(environ: Mapping[str, str], home: Path) -> Path:
    return Path(environ.get("CODEX_HOME") or home / ".codex")


def _settings(setting: Setting) -> dict[str, Any]:
    """The user's configuration, as far as it can be read: Codex itself complains about the rest."""
    try:
        text = (_folder(setting.environ, setting.home) / "config.toml").read_text(encoding="utf-8")
        return tomllib.loads(text)
    except (OSError, ValueError):
        return {}

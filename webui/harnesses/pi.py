"""pi: a temporary extension gives its providers another address; the log is in `~/.pi/agent/sessions`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from webui.surroundings import Config, Pointed, Setting

NAME = "pi"
PROGRAMS = ("pi", "pi-coding-agent", "@mariozechner/pi-coding-agent")
CONFIG = Config(
    "PI_CODING_AGENT_DIR",
    ".pi/agent",
    (
        "settings.json",
        "models.json",
        "AGENTS.md",
        "SYSTEM.md",
        "APPEND_SYSTEM.md",
        "extensions",
        "prompts",
        "skills",
    ),
)

_BUILT_IN = {"anthropic": "", "openai": "/v1", "google": "/v1beta"}


def point(setting: Setting) -> Pointed:
    """By `--extension`: providers that pi knows, and those that the user's `models.json` describes."""
    addresses = {name: f"{setting.base_url}{version}" for name, version in _BUILT_IN.items()}
    upstreams = []
    for name, provider in _described(_agent_folder(setting.environ, setting.home) / "models.json").items():
        url = provider.get("baseUrl")
        if isinstance(url, str):
            kind = _provider_of(str(provider.get("api")))
            version = {"anthropic": "", "gemini": "/v1beta"}.get(kind, "/v1")
            addresses[name] = f"{setting.base_url}{version}"
            upstreams.append(f"{kind}={url}")
    extension = setting.folder / "loopledger.ts"
    lines = [
        f"  pi.registerProvider({orjson.dumps(name).decode()}, {{ baseUrl: {orjson.dumps(url).decode()} }});\n"
        for name, url in addresses.items()
    ]
    extension.write_text(f"export default function (pi: any) {{\n{''.join(lines)}}}\n", encoding="utf-8")
    return Pointed(
        {
            **setting.moved(
                PI_CODING_AGENT_DIR=".pi/agent", PI_CODING_AGENT_SESSION_DIR=".pi/agent/sessions"
            ),
            **setting.unless_given(PI_SKIP_VERSION_CHECK="1"),
            **setting.placeholders("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"),
        },
        ("--extension", str(extension)),
        upstreams,
    )


def logs(environ: Mapping[str, str], home: Path, cwd: Path) -> Iterable[Path]:
    """Sessions by working directory."""
    named = environ.get("PI_CODING_AGENT_SESSION_DIR")
    return (Path(named) if named else _agent_folder(environ, home) / "sessions",)


def _agent_folder(environ: Mapping[str, str], home: Path) -> Path:
    return Path(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent")


def _provider_of(api: str) -> str:
    if "anthropic" in api:
        return "anthropic"
    return "gemini" if "google" in api else "openai"


def _described(path: Path) -> dict[str, dict[str, Any]]:
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    providers = found.get("providers") if isinstance(found, dict) else None
    listed = providers.items() if isinstance(providers, dict) else ()
    return {name: provider for name, provider in listed if isinstance(provider, dict)}

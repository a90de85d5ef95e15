"""opencode: a configuration in the environment is laid over the user's; the log is a database."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from webui.surroundings import Config, Pointed, Setting

NAME = "opencode"
PROGRAMS = ("opencode", "opencode-ai")
CONFIG = Config("XDG_CONFIG_HOME", ".config", ("opencode",))

_CONTENT = "OPENCODE_CONFIG_CONTENT"
_BUILT_IN = {"anthropic": "/v1", "openai": "/v1", "google": "/v1beta"}


def point(setting: Setting) -> Pointed:
    """Providers that opencode knows, and those that the user's configuration describes, get another address."""
    overlay = _object(setting.environ.get(_CONTENT, ""))
    providers = overlay.setdefault("provider", {})
    for name, version in _BUILT_IN.items():
        _aim(providers, name, f"{setting.base_url}{version}")
    upstreams = []
    for path in _files(setting):
        for name, provider in _described(path).items():
            options = provider.get("options")
            url = options.get("baseURL") if isinstance(options, dict) else None
            if isinstance(url, str):
                speaks_anthropic = "anthropic" in str(provider.get("npm"))
                _aim(providers, name, f"{setting.base_url}/v1")
                upstreams.append(f"{'anthropic' if speaks_anthropic else 'openai'}={url}")
    environment = {
        **setting.moved(OPENCODE_DB=".local/share/opencode/opencode.db"),
        _CONTENT: orjson.dumps(overlay).decode(),
        **setting.unless_given(OPENCODE_DISABLE_AUTOUPDATE="1", OPENCODE_DISABLE_MODELS_FETCH="1"),
        **setting.placeholders("ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
    }
    return Pointed(environment, upstreams=upstreams)


def logs(environ: Mapping[str, str], home: Path, cwd: Path) -> Iterable[Path]:
    """One database for all sessions."""
    named = environ.get("OPENCODE_DB")
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return (Path(named) if named else data / "opencode" / "opencode.db",)


def _aim(providers: dict[str, Any], name: str, url: str) -> None:
    providers.setdefault(name, {}).setdefault("options", {})["baseURL"] = url


def _files(setting: Setting) -> Iterable[Path]:
    """The user's configuration files, the nearest last."""
    config = Path(setting.environ.get("XDG_CONFIG_HOME") or setting.home / ".config") / "opencode"
    folders = [config, *reversed((setting.cwd, *setting.cwd.parents))]
    yield from (folder / f"opencode.{kind}" for folder in folders for kind in ("json", "jsonc"))
    if named := setting.environ.get("OPENCODE_CONFIG"):
        yield Path(named)


def _described(path: Path) -> dict[str, dict[str, Any]]:
    try:
        providers = _object(path.read_text(encoding="utf-8")).get("provider")
    except (OSError, ValueError):
        return {}
    found = providers.items() if isinstance(providers, dict) else ()
    return {name: provider for name, provider in found if isinstance(provider, dict)}


def _object(text: str) -> dict[str, Any]:
    """A JSON object; an empty one for anything else, such as JSON with comments."""
    try:
        found = orjson.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

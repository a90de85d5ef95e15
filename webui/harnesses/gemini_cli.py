"""Gemini CLI: the environment names its endpoint, and the log is in `~/.gemini/tmp`."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ledger.errors import InputError
from webui.surroundings import Config, Pointed, Setting

NAME = "gemini-cli"
PROGRAMS = ("gemini", "@google/gemini-cli")
CONFIG = Config(
    "GEMINI_CLI_HOME",
    "",
    (".gemini/settings.json", ".gemini/GEMINI.md", ".gemini/commands", ".gemini/skills"),
)

_CHOICE = "selectedType"
_SETTINGS = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
_SYSTEM = (Path("/etc/gemini-cli/settings.json"), Path("/etc/gemini-cli/system-defaults.json"))


def point(setting: Setting) -> Pointed:
    """By its variable. A login with Google goes to another service, and past us: an API key is needed.

    Beside a base URL, Gemini CLI takes a key only where its settings say so. Raises InputError where they do not.
    """
    own = _folder(setting.environ, setting.home) / "settings.json"
    if setting.has_fresh_home:
        fresh = setting.home / ".gemini" / "settings.json"
        if not fresh.exists():
            fresh.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(_SETTINGS, encoding="utf-8")
    elif not any(_chooses(path) for path in (own, setting.cwd / ".gemini" / "settings.json", *_SYSTEM)):
        raise InputError(
            f"Gemini CLI takes an API key beside a base URL only where its settings say so: expected {_SETTINGS} "
            f"in {own} (choose `Use Gemini API Key` at its start)"
        )
    environment = {
        "GOOGLE_GEMINI_BASE_URL": setting.base_url,
        **setting.moved(GEMINI_CLI_HOME=""),
        **setting.placeholders("GEMINI_API_KEY"),
    }
    return Pointed(environment, upstreams=setting.endpoint("GOOGLE_GEMINI_BASE_URL", "gemini"))


def logs(environ: Mapping[str, str], home: Path, cwd: Path) -> Iterable[Path]:
    """Chats by project."""
    return (_folder(environ, home) / "tmp",)


def _folder(environ: Mapping[str, str], home: Path) -> Path:
    return Path(environ.get("GEMINI_CLI_HOME") or home) / ".gemini"


def _chooses(path: Path) -> bool:
    try:
        return _CHOICE in path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False

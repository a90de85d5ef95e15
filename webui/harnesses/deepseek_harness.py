"""DeepSeek Harness: the environment names its endpoint and its home, and the log is there."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from webui.surroundings import Config, Pointed, Setting

NAME = "deepseek-harness"
PROGRAMS = ("dsh", "deepseek-harness-sdk")
CONFIG: Config | None = None

_PUBLIC = "anthropic=https://api.deepseek.com/anthropic"


def point(setting: Setting) -> Pointed:
    """By its variable."""
    environment = {
        "DEEPSEEK_BASE_URL": setting.base_url,
        **setting.moved(DSH_HOME=".dsh"),
        **setting.placeholders("DEEPSEEK_API_KEY"),
    }
    return Pointed(environment, upstreams=setting.endpoint("DEEPSEEK_BASE_URL", "anthropic") or (_PUBLIC,))


def logs(environ: Mapping[str, str], home: Path, cwd: Path) -> Iterable[Path]:
    """A folder for each session, also of sub-agents."""
    folder = environ.get("DSH_HOME")
    return (Path(folder) / "sessions",) if folder else ()

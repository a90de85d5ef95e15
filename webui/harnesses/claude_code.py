"""Claude Code: the environment names its endpoint, and the log is in `~/.claude/projects`."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from webui.surroundings import Config, Pointed, Setting

NAME = "claude-code"
PROGRAMS = ("claude", "@anthropic-ai/claude-code")
CONFIG = Config(
    "CLAUDE_CONFIG_DIR",
    ".claude",
    ("settings.json", "CLAUDE.md", "agents", "commands", "output-styles", "rules", "skills"),
)


def point(setting: Setting) -> Pointed:
    """By its variable. Traffic that is not needed goes past a recording and would be missed in a replay: off."""
    environment = {
        "ANTHROPIC_BASE_URL": setting.base_url,
        **setting.moved(CLAUDE_CONFIG_DIR=".claude"),
        **setting.unless_given(CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1"),
    }
    if not setting.environ.get("ANTHROPIC_AUTH_TOKEN"):
        environment |= setting.placeholders("ANTHROPIC_API_KEY")
    return Pointed(environment, upstreams=setting.endpoint("ANTHROPIC_BASE_URL", "anthropic"))


def logs(environ: Mapping[str, str], home: Path, cwd: Path) -> Iterable[Path]:
    """Sessions by project, with those of sub-agents below."""
    return (Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects",)

"""Any program that uses an SDK of OpenAI, Anthropic or Google: they read their endpoint from the environment."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from webui.surroundings import GENERIC, Config, Pointed, Setting

NAME = GENERIC
PROGRAMS: tuple[str, ...] = ()
CONFIG: Config | None = None


def point(setting: Setting) -> Pointed:
    """By the variables of all SDKs."""
    base = setting.base_url
    return Pointed(
        environment={
            "ANTHROPIC_BASE_URL": base,
            "OPENAI_BASE_URL": f"{base}/v1",
            "OPENAI_API_BASE": f"{base}/v1",
            "GOOGLE_GEMINI_BASE_URL": base,
            **setting.placeholders("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"),
        },
        upstreams=(
            *setting.endpoint("ANTHROPIC_BASE_URL", "anthropic"),
            *setting.endpoint("OPENAI_BASE_URL", "openai"),
            *setting.endpoint("GOOGLE_GEMINI_BASE_URL", "gemini"),
        ),
    )


def logs(environ: Mapping[str, str], home: Path, cwd: Path) -> Iterable[Path]:
    """It has none that we know of."""
    return ()

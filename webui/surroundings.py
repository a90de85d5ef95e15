"""The surroundings in which a command talks to a base URL of ours, whatever harness it starts.

A harness is a module in `webui/harnesses`, or one of another package under the entry point group
`loopledger.harnesses`: see `Harness`. Nothing here writes outside the folder that it was given, and a replay's home.
"""

import contextlib
import importlib
import pkgutil
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from ledger.errors import InputError
from webui import harnesses

GENERIC = "generic"
"""Any program that uses the SDK of a provider."""

PLACEHOLDER = "replayed-without-a-key"
"""A credential for a replay: nothing is sent on, but programs ask for one."""

_LAUNCHERS = frozenset(
    "bun bunx deno doas env exec ionice nice node nohup npx pnpm pnpx poetry python python3 run setsid stdbuf sudo"
    " time timeout uv uvx yarn x dlx".split()
)

_BASE_FOLDERS = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}


@dataclass(frozen=True)
class Setting:
    """What a harness is to be pointed at, and from where."""

    base_url: str
    """Root of the proxy or the player, without `/v1`."""

    folder: Path
    """Empty temporary folder that lives as long as the command."""

    environ: Mapping[str, str]
    """Environment that the command would have."""

    cwd: Path
    """Working directory."""

    is_replay: bool = False
    """Whether answers come from the record: then placeholders stand in for missing credentials."""

    has_fresh_home: bool = False
    """Whether the home is not the user's own: then no other folder of theirs is used either."""

    @property
    def home(self) -> Path:
        """Home of the command."""
        return Path(self.environ.get("HOME") or Path.home())

    def placeholders(self, *names: str) -> dict[str, str]:
        """Credentials that a replay lacks; none when recording, where the user's own must do."""
        return {name: PLACEHOLDER for name in names if self.is_replay and not self.environ.get(name)}

    def moved(self, **folders: str) -> dict[str, str]:
        """Variables that name a folder of the user's own: in a fresh home there is another one."""
        if not self.has_fresh_home:
            return {}
        return {name: str(self.home / folder) for name, folder in folders.items() if name in self.environ}

    def unless_given(self, **values: str) -> dict[str, str]:
        """Variables that the user's environment leaves open."""
        return {name: value for name, value in values.items() if name not in self.environ}

    def endpoint(self, variable: str, provider: str) -> tuple[str, ...]:
        """The endpoint that the user's environment names, for what goes to a provider."""
        url = self.environ.get(variable, "")
        return (f"{provider}={url}",) if url.startswith(("http://", "https://")) else ()


@dataclass(frozen=True)
class Pointed:
    """How a harness is pointed somewhere."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables to set."""

    arguments: Sequence[str] = ()
    """Arguments to put behind the program's name."""

    upstreams: Sequence[str] = ()
    """Endpoints that its configuration named until now, as `PROVIDER=URL`: where a proxy sends requests on to."""


class Config(NamedTuple):
    """The folder of a user's own settings for a harness, and what in it shapes requests."""

    variable: str
    """Variable that names the folder."""

    folder: str
    """The folder in the home, where the variable is not set."""

    names: tuple[str, ...]
    """Files and folders in it that a replay needs: no credentials, no logs."""


class Harness(Protocol):
    """What a module of a harness offers."""

    NAME: str
    """Name for `--harness`, the one that the importers use too."""

    PROGRAMS: tuple[str, ...]
    """Names of its program, and of the packages that hold it."""

    CONFIG: Config | None
    """Settings that a replay takes along into its fresh home."""

    def point(self, setting: Setting) -> Pointed:
        """Make it talk to the base URL, leaving the user's files alone."""

    def logs(self, environ: Mapping[str, str], home: Path, cwd: Path) -> Iterable[Path]:
        """Folders and files where its session log appears."""


class Surroundings(NamedTuple):
    """What a command is started with."""

    harness: str
    """Harness that was recognised."""

    command: list[str]
    """The command, with the arguments that were added."""

    environment: dict[str, str]
    """The whole environment."""

    upstreams: tuple[str, ...]
    """Endpoints that the harness' configuration named until now."""

    logs: tuple[Path, ...]
    """Folders and files where the session log appears."""


def discover() -> dict[str, Harness]:
    """All harnesses by name: ours, then those of other packages."""
    found: dict[str, Harness] = {}
    for module in pkgutil.iter_modules(harnesses.__path__):
        if not module.name.startswith("_"):
            harness = cast(Harness, importlib.import_module(f"{harnesses.__name__}.{module.name}"))
            found[harness.NAME] = harness
    for point in entry_points(group="loopledger.harnesses"):
        harness = cast(Harness, point.load())
        found.setdefault(harness.NAME, harness)
    return dict(sorted(found.items()))


def surroundings(
    command: Sequence[str],
    base_url: str,
    folder: Path,
    *,
    environ: Mapping[str, str],
    cwd: Path,
    harness: str | None = None,
    is_replay: bool = False,
    settings_of: Path | None = None,
) -> Surroundings:
    """Command and environment with which a harness talks to `base_url`; recognised by its program unless named.

    `settings_of`: the user's home, where that of the command is fresh: settings are copied from it. Raises InputError
    for a harness that is not known, or one that cannot be pointed there in this command.
    """
    known = discover()
    if harness is not None and harness not in known:
        raise InputError(f"{harness!r} is no harness: expected one of {', '.join(known)}")
    at = _program_at(command)
    names = _names_of(command[at])
    recognised = next((name for name, one in known.items() if names & set(one.PROGRAMS)), GENERIC)
    chosen = known[harness or recognised]
    is_fresh = is_replay or settings_of is not None
    setting = Setting(base_url.rstrip("/"), folder, environ, cwd, is_replay, is_fresh)
    if settings_of is not None and chosen.CONFIG is not None:
        _copy_settings(chosen.CONFIG, environ, settings_of, setting.home)
    pointed = chosen.point(setting)
    arguments = list(pointed.arguments)
    if arguments and not names & set(chosen.PROGRAMS):
        raise InputError(
            f"{chosen.NAME} takes its endpoint as an argument: expected its program in the command itself, found "
            f"{command[at]!r}; or give `{' '.join(arguments)}` to it yourself and leave out --harness"
        )
    environment = {
        **environ,
        **setting.moved(**_BASE_FOLDERS),
        **pointed.environment,
        **_past_proxies(environ),
    }
    home = Path(environ.get("HOME") or Path.home())
    return Surroundings(
        chosen.NAME,
        [*command[: at + 1], *arguments, *command[at + 1 :]],
        environment,
        tuple(dict.fromkeys(pointed.upstreams)),
        tuple(chosen.logs(environment, home, cwd)),
    )


def _copy_settings(config: Config, environ: Mapping[str, str], source: Path, target: Path) -> None:
    """Copy what shapes requests; what cannot be read shows in the replay as a difference."""
    folder = Path(environ.get(config.variable) or source / config.folder)
    for name in config.names:
        path, copy = folder / name, target / config.folder / name
        with contextlib.suppress(OSError, shutil.Error):
            if path.is_dir():
                left_out = shutil.ignore_patterns("node_modules", ".git")
                shutil.copytree(
                    path, copy, ignore=left_out, ignore_dangling_symlinks=True, dirs_exist_ok=True
                )
            elif path.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)


def _program_at(command: Sequence[str]) -> int:
    """Where the program stands, behind launchers such as `npx -y`."""
    for at, word in enumerate(command):
        is_launcher = Path(word).name in _LAUNCHERS
        is_detail = at > 0 and (word.startswith("-") or "=" in word or word.replace(".", "").isdigit())
        if not is_launcher and not is_detail:
            return at
    return 0


def _names_of(word: str) -> set[str]:
    """The program's name, and each folder above it: a package may be one of them."""
    path = Path(word)
    parts = {part.partition("@")[0] or part for part in (*path.parts, path.stem)}
    scoped = word.removeprefix("@").partition("@")[0]
    return parts | {path.name, f"@{scoped}" if word.startswith("@") else scoped}


def _past_proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """This machine is not asked for by way of a proxy of the network."""
    lower = {name.lower() for name in environ}
    if not lower & {"http_proxy", "https_proxy", "all_proxy"}:
        return {}
    there = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    value = ",".join(part for part in (there, "127.0.0.1", "localhost") if part)
    return {"NO_PROXY": value, "no_proxy": value}

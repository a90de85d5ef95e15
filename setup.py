"""The build takes htmx from its npm package, where the machine has an npm; all else stands in pyproject.toml."""

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithScripts(build_py):
    """Builds the packages with the scripts of the pages in them."""

    def run(self) -> None:
        """Fetch the scripts first. A machine without npm gets pages of links and forms."""
        done = subprocess.run(
            [sys.executable, "-m", "webui.vendoring"], cwd=Path(__file__).parent, check=False
        )
        if done.returncode:
            self.warn("the pages are built without htmx: they will work as links and forms")
        super().run()


setup(cmdclass={"build_py": BuildWithScripts})

"""Loads the function that a user names on the command line. Only ever what the user typed, never what data says."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledger.errors import InputError
from replay.inprocess.frozen import thawed


def load_function(name: str) -> Callable[[Any], Any]:
    """The function `package.module:function` or `path/to/file.py:function`, which takes the recorder of a loop.

    Raises InputError when there is no such module, file or function, or when loading it fails.
    """
    place, separator, attribute = name.rpartition(":")
    if not separator or not place or not attribute:
        raise InputError(f"{name!r}: expected module:function or file.py:function")
    try:
        with thawed():
            module = _file(Path(place)) if place.endswith(".py") else _module(place)
    except InputError:
        raise
    except BaseException as error:
        raise InputError(f"{place} cannot be loaded: {type(error).__name__}: {error}") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        raise InputError(f"{place} has no function {attribute!r}")
    return function  # type: ignore[no-any-return]


def _module(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does
    return importlib.import_module(name)


def _file(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"{path} is no file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as `python file.py` does
    spec.loader.exec_module(module)
    return module

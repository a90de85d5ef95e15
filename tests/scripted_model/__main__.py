"""Serve a script to a harness run from a shell: python -m tests.scripted_model --script FILE."""

import argparse
import signal
import threading
from pathlib import Path

from . import ScriptedModel, load_script


def main() -> None:
    """Serve until interrupted; the URL is the one line on standard output."""
    parser = argparse.ArgumentParser(prog="scripted_model", description=__doc__)
    parser.add_argument("--script", type=Path, required=True, help="JSON file with lanes and steps")
    parser.add_argument("--log", type=Path, help="JSON lines file to which exchanges are appended")
    parser.add_argument("--port", type=int, default=0, help="any free port when left out")
    given = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with ScriptedModel(load_script(given.script), log=given.log, port=given.port) as model:
        print(model.url, flush=True)
        stop.wait()


if __name__ == "__main__":
    main()

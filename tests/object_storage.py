"""A real server that speaks S3, started from a package on loopback: for tests of a lake on object storage."""

import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

BUCKET = "lakes"
SETTINGS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What clients are told besides the address."""


@contextmanager
def object_storage() -> Iterator[str]:
    """Its address; it has one bucket, and is gone with all it holds when the block ends."""
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    environment = {**os.environ, **SETTINGS, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        try:
            assert server.stderr is not None
            for line in server.stderr:
                if (found := re.search(r"http://127\.0\.0\.1:\d+", line)) is not None:
                    break
            else:
                raise AssertionError("the server of object storage did not start")
            threading.Thread(
                target=server.stderr.read, daemon=True
            ).start()  # a full pipe would stop the server
            _make_bucket(f"{found[0]}/{BUCKET}")
            yield found[0]
        finally:
            server.kill()


def _make_bucket(url: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=10):
            return
        time.sleep(0.1)
    raise AssertionError("the server of object storage makes no bucket")

"""A Spark cluster on this machine: a master, two workers and a Connect server, each a process, on loopback alone.

All of it comes from the package `pyspark`, but for Java, which the system has to have: what packages bring of it lacks
a module that Spark asks for.
"""

import contextlib
import ctypes
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HOST = "127.0.0.1"
"""Where everything listens."""

WORKERS = 2
"""Processes that run tasks; one core each."""

OLDEST_JAVA = 17
"""What Spark 4 needs."""

_START_S = 120
_STOP_S = 15
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG: no Java may be left when the tests are killed


class ClusterFailedError(RuntimeError):
    """A process of the cluster ended, or did not answer in time; the message ends with its own words."""


class Cluster(NamedTuple):
    """A cluster that runs."""

    url: str
    """Of its Connect server: `sc://HOST:PORT`."""

    master_log: Path
    """What the master said: which executors were started where."""


def java_home() -> Path | None:
    """A Java that Spark runs on: of `$JAVA_HOME`, or of the system; None where there is none."""
    given = os.environ.get("JAVA_HOME")
    found = shutil.which("java")
    homes = [Path(given)] if given else []
    homes += [Path(found).resolve().parent.parent] if found else []
    return next((home for home in homes if _java_version(home) >= OLDEST_JAVA), None)


def _java_version(home: Path) -> int:
    try:
        done = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    version = re.search(r'version "(\d+)', done.stderr)
    return int(version[1]) if version else 0


@contextlib.contextmanager
def running_cluster(folder: Path, java: Path) -> Iterator[Cluster]:
    """A cluster that lives as long as the block. Raises ClusterFailedError."""
    package = importlib.util.find_spec("pyspark")
    assert package is not None and package.origin is not None
    home = Path(package.origin).parent
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("SPARK_")},
        "JAVA_HOME": str(java),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
    }
    with contextlib.ExitStack() as stack:

        def start(name: str, said: str, *command: str) -> str:
            log = folder / f"{name}.log"
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [home / "bin" / command[0], *command[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    cwd=folder,
                    start_new_session=True,
                    preexec_fn=_die_with_parent,  # noqa: PLW1509 - it calls the kernel and no more
                )
            stack.callback(_stop, process)
            return _wait_for(said, log, process)

        deploy = "org.apache.spark.deploy"
        nowhere = ("--host", HOST, "--port", "0", "--webui-port", "0")
        master = start(
            "master", r"(spark://127\.0\.0\.1:\d+)", "spark-class", f"{deploy}.master.Master", *nowhere
        )
        for number in range(WORKERS):
            small = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}"))
            start(
                f"worker-{number}",
                r"(Successfully registered) with master",
                *("spark-class", f"{deploy}.worker.Worker", *nowhere, *small, master),
            )
        settings = {
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": "0",
            "spark.cores.max": str(WORKERS),
            "spark.driver.bindAddress": HOST,
            "spark.driver.host": HOST,
            "spark.executor.cores": "1",
            "spark.executor.memory": "768m",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.ui.enabled": "false",
        }
        port = start(
            "connect",
            r"Spark Connect server started at: \S*:(\d+)",
            *("spark-submit", "--master", master),
            *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
        )
        yield Cluster(f"sc://{HOST}:{port}", folder / "master.log")


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGTERM)


def _wait_for(said: str, log: Path, process: subprocess.Popen[bytes]) -> str:
    """What the process says of itself when it is ready."""
    ends_at = time.monotonic() + _START_S
    text = ""
    while time.monotonic() < ends_at:
        text = log.read_text(errors="replace")
        found = re.search(said, text)
        if found is not None:
            return found[1]
        if process.poll() is not None:
            raise ClusterFailedError(f"{log.stem} ended with status {process.returncode}:\n{text[-3000:]}")
        time.sleep(0.1)
    raise ClusterFailedError(f"{log.stem} did not say {said!r} in {_START_S} s:\n{text[-3000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

"""One cluster for all tests, and a ledger in which every table, query and detector has something to say."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from ledger.audit import Detector, discover
from ledger.home import Ledger
from ledger.lake import Lake, connect
from ledger.lake.engines.portable import problems
from ledger.lake.engines.spark import SparkLake
from ledger.lake.feed import Stored
from ledger.views.lake import lake_feed
from tests.commands import FIXTURES, run
from tests.ledger.audit.histories import History
from tests.ledger.audit.test_detectors import cases_of
from tests.ledger.lake.feeds import feed_of, golden_rows
from tests.spark.cluster import OLDEST_JAVA, Cluster, java_home, running_cluster

OWN = Path(__file__).parent / "own"
"""What a user may add: queries, detectors in SQL and Python, rules."""

IMPORTED = ("claude-code", "codex", "muse-code", "langgraph", "otlp")

GOLDEN = 700
"""Records with every event there is: the golden ones several times, in five sessions, over two days."""


def all_detectors() -> list[Detector]:
    """Those that are shipped and those of OWN, but for what is off and not portable: Spark is not asked these, and
    `queries --portable` names them.
    """
    return [
        detector
        for detector in discover(OWN, OWN / "python").values()
        if detector.sql is None or not detector.is_experimental or not problems(detector.sql)
    ]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running cluster."""
    java = java_home()
    if java is None:
        pytest.skip(
            f"no Java {OLDEST_JAVA} or later, by $JAVA_HOME or on the path: apt install openjdk-17-jre-headless"
        )
    with running_cluster(tmp_path_factory.mktemp("cluster"), java) as running:
        yield running


@pytest.fixture(scope="session")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """The cases of every detector and what importers read, looked through for findings and rules that were lost."""
    home = tmp_path_factory.mktemp("audited") / "home"
    shutil.copytree(OWN, home, ignore=shutil.ignore_patterns("python"))
    with History(home) as history:
        for detector in all_detectors():
            for number, case in enumerate(cases_of(detector.name)):
                # a detector in SQL may compare the runs of an agent: those of a case are among themselves
                alone = {} if detector.sql is None else {"@agent": f"{detector.name}-{number:02}"}
                history.add([alone | told for told in case.events], prefix=f"{detector.name}-{number:02}-")
        for example in IMPORTED:
            run(home, "import", FIXTURES / example)
        run(home, "decay")
        Lake(home / "lake").export(lake_feed(history.ledger.store))
        yield history.ledger


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, ledger: Ledger) -> Path:
    """A lake of that ledger and the golden records, in several files."""
    folder = tmp_path_factory.mktemp("shared") / "lake"
    feed = lake_feed(ledger.store)
    both = [*feed.rows(0), *golden_rows(GOLDEN)]
    rows = [Stored(number, *row[1:]) for number, row in enumerate(both, start=1)]
    golden = feed_of(rows)

    def contents(digests: list[str]) -> Mapping[str, bytes]:
        return {**golden.contents(digests), **feed.contents(digests)}

    lake = Lake(folder)
    for upto in (1000, len(rows) - GOLDEN, len(rows)):
        lake.export(replace(feed_of(rows[:upto]), contents=contents))
    return folder


@pytest.fixture(scope="session")
def on_spark(cluster: Cluster, folder: Path) -> Iterator[SparkLake]:
    """The lake on the cluster."""
    with SparkLake(cluster.url, folder) as lake:
        yield lake


@pytest.fixture(scope="session")
def on_duckdb(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The lake on DuckDB."""
    with connect(folder) as connection:
        yield connection

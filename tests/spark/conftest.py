"""One cluster for all tests, and a lake of every event there is, asked on both engines."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ledger.lake import Lake, connect
from ledger.lake.engines.spark import SparkLake
from tests.ledger.lake.feeds import feed_of, golden_rows
from tests.spark.cluster import OLDEST_JAVA, Cluster, java_home, running_cluster

RECORDS = 2000
"""In the lake: all golden events several times, in five sessions, over two days."""


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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake, of several files."""
    folder = tmp_path_factory.mktemp("shared") / "lake"
    rows = golden_rows(RECORDS)
    lake = Lake(folder)
    lake.export(feed_of(rows[: RECORDS // 2]))
    lake.export(feed_of(rows))
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

"""All detectors find the same bytes in a store, in its lake on DuckDB, and in its lake on a cluster of two workers."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from ledger.audit import Report, discover
from ledger.cli.engines import Engine, auditing
from ledger.home import Ledger
from ledger.lake import Lake
from ledger.lake.engines.portable import problems
from ledger.lake.records import LakeRecords
from ledger.views.findings import audit
from ledger.views.lake import lake_feed
from ledger.views.lake_audit import audit_lake
from tests.commands import FIXTURES, answer, run
from tests.ledger.audit.histories import History
from tests.ledger.audit.test_detectors import cases_of
from tests.spark.cluster import Cluster

SHIPPED = [
    detector
    for detector in discover().values()
    if detector.sql is None or not detector.is_experimental or not problems(detector.sql)
]
"""All but those that are off and not portable: Spark is not asked these, `queries --portable` names them."""

IMPORTED = ("claude-code", "codex", "muse-code", "langgraph", "otlp")


def told(report: Report) -> bytes:
    """All that a report says, of a lake or of a store."""
    return orjson.dumps({"missing_input": None, **report.as_json(everything=True)})


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """The cases of every detector and what importers read, in one ledger and its lake."""
    home = tmp_path_factory.mktemp("audited")
    with History(home) as history:
        for detector in SHIPPED:
            for number, case in enumerate(cases_of(detector.name)):
                history.add(case.events, prefix=f"{detector.name}-{number:02}-")
        for example in IMPORTED:
            run(home, "import", FIXTURES / example)
        Lake(home / "lake").export(lake_feed(history.ledger.store))
        yield history.ledger


def test_all_detectors_find_the_same_bytes_on_both_engines(cluster: Cluster, ledger: Ledger) -> None:
    with auditing(ledger.home, Engine.DUCKDB, None) as there:
        in_store = audit(ledger.store, SHIPPED, there.query)
        on_duckdb = audit_lake(LakeRecords(there.ask), SHIPPED, there.query)
    with auditing(ledger.home, Engine.SPARK, cluster.url) as there:
        beside_the_store = audit(ledger.store, SHIPPED, there.query)
        on_spark = audit_lake(LakeRecords(there.ask), SHIPPED, there.query)
    assert {detector.name for detector in SHIPPED if detector.sql is not None} <= {
        one.detector.partition(".")[0] for one in in_store.findings
    }
    assert told(beside_the_store) == told(in_store)
    assert told(on_spark) == told(on_duckdb)


def test_the_command_audits_on_a_cluster(cluster: Cluster, ledger: Ledger, tmp_path: Path) -> None:
    on_spark = ("--engine", "spark", "--spark", cluster.url)
    asked = ("audit", "--no-keep", "--all")
    assert answer(ledger.home, *asked, *on_spark) == answer(ledger.home, *asked)
    one = ("audit", "28f49215-b231-41f4-92f9-45c1ffc91638", "--lake", ledger.home)
    assert answer(tmp_path, *one, *on_spark) == answer(tmp_path, *one)

"""All detectors find the same bytes in a store, in its lake on DuckDB, and in its lake on a cluster of two workers."""

from pathlib import Path

import orjson

from ledger.audit import Report
from ledger.cli.engines import Engine, auditing
from ledger.home import Ledger
from ledger.lake.records import LakeRecords
from ledger.views.findings import audit
from ledger.views.lake_audit import audit_lake
from tests.commands import answer
from tests.spark.cluster import Cluster
from tests.spark.conftest import OWN, all_detectors

DETECTORS = all_detectors()


def told(report: Report) -> bytes:
    """All that a report says, of a lake or of a store."""
    return orjson.dumps({"missing_input": None, **report.as_json(everything=True)})


def test_all_detectors_find_the_same_bytes_on_both_engines(cluster: Cluster, ledger: Ledger) -> None:
    with auditing(ledger.home, Engine.DUCKDB, None) as there:
        in_store = audit(ledger.store, DETECTORS, there.query)
        on_duckdb = audit_lake(LakeRecords(there.ask), DETECTORS, there.query)
    with auditing(ledger.home, Engine.SPARK, cluster.url) as there:
        beside_the_store = audit(ledger.store, DETECTORS, there.query)
        on_spark = audit_lake(LakeRecords(there.ask), DETECTORS, there.query)
    for report in (in_store, on_duckdb):
        found = {one.detector.partition(".")[0] for one in report.findings}
        assert {detector.name for detector in DETECTORS} - found == set()
    assert told(beside_the_store) == told(in_store)
    assert told(on_spark) == told(on_duckdb)


def test_the_command_audits_on_a_cluster(cluster: Cluster, ledger: Ledger, tmp_path: Path) -> None:
    on_spark = ("--engine", "spark", "--spark", cluster.url)
    asked = ("audit", "--no-keep", "--all", "--experimental", "--detectors", OWN / "python")
    assert answer(ledger.home, *asked, *on_spark) == answer(ledger.home, *asked)
    one = ("audit", "28f49215-b231-41f4-92f9-45c1ffc91638", "--lake", ledger.home)
    assert answer(tmp_path, *one, *on_spark) == answer(tmp_path, *one)

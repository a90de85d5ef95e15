"""Why a file gave no session: the reason names what it seems to be, whatever its bytes are."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.home import Ledger
from ledger.importers import Sniff
from ledger.importers._intake import import_paths
from ledger.importers._likely import reason_for

SAMPLES = [
    (b'{"schema_version": "ATIF-v1.5", "steps": []}', "ATIF"),
    (b'{"trace": {"id": "t", "projectId": "p"}, "observations": []}', "Langfuse export"),
    (b'{"ai.x": [{"name": "ai.x", "spanContext": {"traceId": "1"}}]}', "JavaScript SDK"),
    (b'{"environment": "main", "trajectory": [{"action": "ls", "observation": ""}]}', "SWE-agent"),
    (b'[{"id": 0, "timestamp": "t", "source": "user", "action": "message"}]', "OpenHands"),
    (b'{"agents": [{"name": "a", "block_ids": []}], "blocks": []}', "Letta"),
    (b'{"version": 1, "updated_at": "t", "sessionId": "s", "messages": []}', "Cline"),
    (b'{"criteria": {"response_match_score": 0.5}}', "criteria"),
    (b"", "empty file"),
    (b"\x7fELF\0\0\0", "binary"),
    (b'{"colour": "blue"}', "JSON without a run"),
    (b"Dear all,\n", "text without a run"),
]


@pytest.mark.parametrize(("content", "named"), SAMPLES, ids=[named for _, named in SAMPLES])
def test_the_report_names_what_a_file_seems_to_be(
    content: bytes, named: str, ledger: Ledger, tmp_path: Path
) -> None:
    path = tmp_path / "some.file"
    path.write_bytes(content)
    (report,) = import_paths(ledger.recorder, [path]).files
    assert report["format"] is None
    assert named in report["reason"]


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes_give_a_reason(start: bytes, size: int) -> None:
    assert reason_for(Sniff(Path("x"), start, size))

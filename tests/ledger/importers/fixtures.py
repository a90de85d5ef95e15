"""The fixture folders of all importers: `fixtures/importers/<source>/<case>/`, and what an import of a case gives."""

from pathlib import Path
from typing import Any

from ledger.home import Ledger, open_ledger
from ledger.importers._intake import ImportReport, import_paths

FIXTURES = Path(__file__).parents[3] / "fixtures" / "importers"
"""Folder with one folder for each source."""

_BESIDE = ("expected.json", "wire.json", "README.md")
_COUNTS = (
    "format",
    "grade",
    "lines",
    "records",
    "model_calls",
    "failed_calls",
    "tool_calls",
    "tool_results",
    "error_results",
    "unanswered_calls",
    "orphan_results",
    "compactions",
    "quarantined",
    "repaired",
    "duplicates",
    "dangling_parents",
    "unknown",
    "tokens",
    "redacted",
)


def case_folders(source: str = "*") -> list[Path]:
    """Folders of all cases, of one source or of all."""
    return sorted(folder.parent for folder in FIXTURES.glob(f"{source}/*/expected.json"))


def trace_files(case: Path) -> list[Path]:
    """The files of a case that are there to be imported."""
    return sorted(path for path in case.rglob("*") if path.is_file() and path.name not in _BESIDE)


def import_case(ledger: Ledger, case: Path) -> ImportReport:
    """Import a case, file by file, in the order of names."""
    return import_paths(ledger.recorder, trace_files(case))


def promise(case: Path, home: Path) -> dict[str, Any]:
    """What an import into a fresh ledger gives: counts by file, types of events by session."""
    with open_ledger(home) as ledger:
        report = import_case(ledger, case)
        return {
            "files": {
                str(Path(file["path"]).relative_to(case)): {
                    name: file[name] for name in _COUNTS if name in file
                }
                for file in report.files
            },
            "events": {
                session: [record.type for record in ledger.store.read(session)] for session in report.sessions
            },
        }

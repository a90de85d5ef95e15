"""/jobs/JOB: how far work is that takes long, and what came of it."""

from typing import Annotated, Any

from fastapi import HTTPException, Path

from webui.dependencies import WebDep, segment
from webui.importing import Imported, imported
from webui.jobs import Job
from webui.page import Context, Page

_WORDS = {
    "import": "Import",
    "verify": "Verification",
    "export": "Export to the lake",
    "audit": "Audit",
    "backtest": "Backtest",
    "scorecard": "Scorecard",
    "constraints": "Constraints by compaction",
}

page = Page("Work")


class JobContext(Context):
    """What job.html may use."""

    id: str
    """Its id; empty where nothing was started."""
    kind: str
    """`import`, `verify` or `export`."""
    title: str
    """What it does."""
    state: str
    """`waits`, `runs`, `done` or `failed`."""
    done: int
    """How much is done."""
    total: int
    """Of how much."""
    note: str
    """What it is at."""
    failed: str
    """Why it failed; empty where it did not."""
    to: str
    """Where to look at what came of it; empty: here."""
    report: Imported | None
    """What an import did."""


@page.view("/jobs/{job}", template="job.html", part="_job.html")
def job(
    web: WebDep,
    job: Annotated[str, Path(max_length=40, description="Id of a piece of work; `latest` for the last.")],
) -> JobContext:
    """How far it is, and what came of it."""
    found = web.jobs.latest() if job == "latest" else web.jobs.find(job)
    if found is None and job != "latest":
        raise HTTPException(404, f"No work is known as {job[:40]!r}: the server forgets it when it ends.")
    return _told(found)


def _told(found: Job | None) -> JobContext:
    if found is None:
        return JobContext(
            id="",
            kind="",
            title="Work",
            state="none",
            done=0,
            total=0,
            note="",
            failed="",
            to="",
            report=None,
        )
    progress: dict[str, Any] = found.progress
    is_import = found.kind == "import" and found.state == "done"
    return JobContext(
        id=found.id,
        kind=found.kind,
        title=_WORDS[found.kind],
        state=found.state,
        done=int(progress.get("done", 0)),
        total=int(progress.get("total", 0)),
        note=str(progress.get("note", ""))[:120],
        failed=str(found.result.get("failed", ""))[:600],
        to=_place(found),
        report=imported(found.result) if is_import else None,
    )


def _place(found: Job) -> str:
    places = {"export": "/sql", "audit": "/findings", "backtest": "/backtest"}
    if found.kind in places:
        return places[found.kind]
    if found.kind == "verify":
        session = found.asked["session"]
        return "/integrity" if session is None else f"/sessions/{segment(session)}/integrity"
    if found.kind in ("scorecard", "constraints"):
        return f"/sessions/{segment(found.asked['session'])}/{found.kind}"
    return ""

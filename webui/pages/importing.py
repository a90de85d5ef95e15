"""/import: give trace files by dropping or choosing them; they are imported by a process of its own."""

import shutil
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import Depends, HTTPException, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from ledger.events import Actor
from ledger.events.keeping import FilesGiven
from ledger.importers import discover
from webui.acts import record_act
from webui.dependencies import Web, WebDep, WhoDep
from webui.forms import checked_form
from webui.importing import take_files
from webui.page import Context, Done, Page
from webui.problems import PROBLEMS

_MOST_FILES = 500

page = Page("Import", link="/import", order=80)


class Format(Context):
    """A format that can be imported."""

    name: str
    """Its name."""
    title: str
    """Name for people."""
    grade: str
    """How much it proves."""


class ImportContext(Context):
    """What importing.html may use."""

    formats: list[Format]
    """What is known."""
    most_files: int
    """Most files at a time."""
    most_mb: int
    """Most megabytes at a time."""


@page.view("/import", template="importing.html")
def importing(web: WebDep) -> ImportContext:
    """Where files can be given, and which formats are known."""
    return ImportContext(
        formats=[
            Format(name=name, title=one.TITLE, grade=one.GRADE) for name, one in sorted(discover().items())
        ],
        most_files=_MOST_FILES,
        most_mb=web.settings.most_upload >> 20,
    )


async def _bounded(request: Request, web: WebDep) -> AsyncIterator[None]:
    """Refuse what is too long before any of it is read; forget the rest when it was answered."""
    length = request.headers.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        raise HTTPException(411, "Expected files with a Content-Length.")
    most = web.settings.most_upload
    if int(length) > most:
        raise HTTPException(
            413,
            f"These files have {int(length)} bytes: expected at most {most}. `loopledger import` has no limit.",
        )
    async with request.form(max_files=_MOST_FILES, max_fields=10):  # whoever asks later gets the same
        yield


_Bounded = Depends(_bounded)


@page.html.post("/import", dependencies=[_Bounded, Depends(checked_form)])
async def give(request: Request, web: WebDep, who: WhoDep) -> Response:
    """Take files from the form."""
    done = await _take(request, web, who)
    return Response(status_code=303, headers={"Location": done.to})


@page.api.post(
    "/import",
    dependencies=[_Bounded],
    response_model=Done,
    responses={**PROBLEMS},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["files"],
                        "properties": {
                            "files": {
                                "type": "array",
                                "minItems": 1,
                                "items": {"type": "string", "format": "binary"},
                            }
                        },
                    }
                }
            },
        }
    },
)
async def give_by_program(request: Request, web: WebDep, who: WhoDep) -> Done:
    """Take files to be imported; `to` says where the progress is, and the report."""
    return await _take(request, web, who)


async def _take(request: Request, web: Web, who: Actor) -> Done:
    form = await request.form()
    given = [one for one in form.getlist("files") if isinstance(one, UploadFile)]
    files = [one for one in given if one.filename or one.size]
    if not files:
        raise HTTPException(400, "Parameter 'files' of the form or body cannot be used: no file was given.")
    return await run_in_threadpool(_begin, web, who, files)


def _begin(web: Web, who: Actor, files: Sequence[UploadFile]) -> Done:
    """Keep them, record who gave them, and begin to import."""
    home = web.ledger.home
    folder, names = take_files(home, [(one.filename or "file", one.file) for one in files])
    size = sum(one.size or 0 for one in files)
    try:
        job = web.jobs.start("import", {"folder": str(folder.resolve())}, partial(_tidy, folder))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    event = FilesGiven(files=tuple(names), size=size)
    place = record_act(web.ledger, who, event, web.ledger.recorder.keeper())
    return Done(to=f"/jobs/{job.id}", recorded=[place])


def _tidy(folder: Path, job: Any) -> None:
    """The records have what the files said; the files go."""
    del job
    shutil.rmtree(folder, ignore_errors=True)

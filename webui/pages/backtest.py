"""/backtest: rules of YAML held against all past sessions: what they would have found, blocked, and could not see."""

import json
from pathlib import Path
from typing import Annotated, Any

from fastapi import HTTPException, Query
from pydantic import BaseModel, Field

from ledger.audit.rules import read_rules
from ledger.views.backtesting import FOLDER
from webui.acts import record_wish
from webui.dependencies import LedgerDep, WebDep, WhoDep
from webui.page import Context, Done, Page

_KEPT = 30
_RULES = 40
_EXAMPLES = 5
_LARGEST = 16_000
_LARGEST_FILE = 4 << 20
_LONGEST = 240

RulesText = Annotated[str, Field(max_length=_LARGEST)]

page = Page("Backtest")


class Example(Context):
    """A match."""

    session: str
    """Its session."""
    seq: int
    """The record that completed it."""
    message: str
    """What it found."""
    fate: str
    """What became of the call, or would have."""


class Tally(Context):
    """One rule over all sessions."""

    rule: str
    """Its name."""
    title: str
    """What it suspects."""
    action: str
    """What a guard should do by it."""
    matched: int
    """Matches."""
    sessions: int
    """Sessions in which it matched."""
    touched: int
    """Sessions in which its first step was seen."""
    would_block: int
    """Calls that it would have stopped or asked about."""
    covered: int
    """Calls that something else had stopped."""
    too_late: int
    """Matches after the call had acted."""
    missing: list[str]
    """What records did not show, and in how many sessions."""
    examples: list[Example]
    """The first matches."""


class Change(Context):
    """A match that only one of two versions has."""

    is_new: bool
    """Whether the new version has it."""
    rule: str
    """The rule."""
    session: str
    """Its session."""
    seq: int
    """Its record."""
    message: str
    """What it found."""


class Answer(Context):
    """A backtest that was kept."""

    name: str
    """Name of the rules."""
    kept: str
    """Its file."""
    position: int
    """How far the ledger went."""
    sessions: int
    """Sessions looked at."""
    tallies: list[Tally]
    """By rule."""
    has_difference: bool
    """Whether it compares two versions."""
    newly: int
    """Matches that the old version did not have."""
    no_longer: int
    """Matches that only the old version had."""
    changes: list[Change]
    """The first of both."""


class BacktestContext(Context):
    """What backtest.html may use."""

    running: str
    """How a backtest stands that was asked for here; empty where none was."""
    latest: str
    """File of the last one that was asked for here; empty where there is none."""
    kept: list[str]
    """Backtests that were kept, the last first."""
    answer: Answer | None
    """The one that is open."""
    name: str
    """Name of the rules in the form."""
    text: str
    """Rules in the form."""


class BacktestForm(BaseModel):
    """Rules to hold against the past."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    """A name for them: small letters, digits, `_`."""
    rules: Annotated[str, Field(min_length=1, max_length=_LARGEST)]
    """The rules, as YAML."""
    against: RulesText = ""
    """An older version of them; empty for none."""


@page.view("/backtest", template="backtest.html")
def backtest(
    web: WebDep,
    kept: Annotated[
        str,
        Query(
            pattern=r"^([A-Za-z][A-Za-z0-9_-]{0,99}-[0-9a-f]{16}\.json)?$", description="One that was kept."
        ),
    ] = "",
) -> BacktestContext:
    """A form for rules, and what a backtest found."""
    folder = web.ledger.home / FOLDER
    told = _read(folder, kept) if kept else None
    files = sorted(folder.glob("*.json"), key=lambda path: (-path.stat().st_mtime_ns, path.name))
    running, latest = _running(web)
    return BacktestContext(
        running=running,
        latest=latest,
        kept=[path.name for path in files[:_KEPT]],
        answer=None if told is None else _answer(told, kept),
        name="" if told is None else str(told["rules"]["name"]),
        text="" if told is None else str(told["rules"]["text"])[:_LARGEST],
    )


@page.action("/backtest")
def start(web: WebDep, ledger: LedgerDep, who: WhoDep, form: BacktestForm) -> Done:
    """Hold rules against all past sessions, in a process of its own; the answer is kept as evidence."""
    rules, against = form.rules.replace("\r\n", "\n"), form.against.replace("\r\n", "\n")
    read_rules(form.name, rules, "rules")
    if against.strip():
        read_rules(form.name, against, "older version")
    web.jobs.start("backtest", {"name": form.name, "rules": rules, "against": against.strip() and against})
    return Done(
        to="/backtest", recorded=[record_wish(ledger, who, f"A backtest of {form.name} was asked for.")]
    )


def _running(web: WebDep) -> tuple[str, str]:
    job = web.jobs.last("backtest")
    if job is None:
        return "", ""
    if job.state in ("waits", "runs"):
        return "A backtest runs; its answer is kept when it is done.", ""
    if job.state == "failed":
        return f"The last backtest failed: {job.result.get('failed', '')}", ""
    return "The last backtest is done.", str(job.result["kept"])


def _read(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise HTTPException(400, "This backtest is too large for a page; its file holds it.")
        told: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise HTTPException(404, f"No backtest was kept as {name!r}; /backtest lists them.") from error
    return told


def _answer(told: dict[str, Any], kept: str) -> Answer:
    difference = told.get("difference")
    changes = [] if difference is None else difference["examples"].items()
    return Answer(
        name=told["rules"]["name"],
        kept=kept,
        position=told["position"],
        sessions=told["sessions"],
        tallies=[_tally(rule, one) for rule, one in list(told["by_rule"].items())[:_RULES]],
        has_difference=difference is not None,
        newly=0 if difference is None else difference["newly_matched"],
        no_longer=0 if difference is None else difference["no_longer_matched"],
        changes=[
            Change(is_new=way == "newly", rule=one["rule"], message=one["message"][:_LONGEST], **_place(one))
            for way, some in changes
            for one in some[:_EXAMPLES]
        ],
    )


def _tally(rule: str, one: dict[str, Any]) -> Tally:
    counts = ("matched", "sessions", "touched", "would_block", "covered", "too_late")
    return Tally(
        rule=rule,
        title=one["title"],
        action=one["action"],
        missing=[f"{what}: {count}" for what, count in one["missing"].items()][:_EXAMPLES],
        examples=[
            Example(message=example["message"][:_LONGEST], fate=example["fate"], **_place(example))
            for example in one["examples"][:_EXAMPLES]
        ],
        **{name: one[name] for name in counts},
    )


def _place(told: dict[str, Any]) -> dict[str, Any]:
    session, _, seq = told["place"].rpartition("#")
    return {"session": session, "seq": int(seq)}

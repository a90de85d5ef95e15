"""Replays: a replay is a session of its own, linked to the one that it replays."""

from typing import Literal

from ledger.events.record import ContentRef, Digest, Event, Part

AnswerSource = Literal["recorded", "live", "blocked"]
"""Where an answer in a replay came from."""

MatchGrade = Literal["raw", "canonical", "lane", "miss"]
"""How a request fits its recording: same body; same under named rules; same lane and turn only; not at all."""

Verdict = Literal["equal", "diverged", "incomplete"]
"""`incomplete`: nothing differed, but it stopped before its end or could not check everything."""


class ToolTreatment(Part):
    """How one tool is treated in a replay."""

    tool: str
    """Name of the tool; `*` for all that are not named."""

    treatment: AnswerSource
    """Answered from the record, run again, or refused."""


class ReplayStarted(Event, name="replay.started", ignorable=True):
    """A replay of another session began; this session holds what it did."""

    origin: str
    """Session that is replayed."""

    origin_seq: int | None = None
    """Last record of the origin that counts."""

    origin_hash: str | None = None
    """Hash of that record: it names the history that was replayed."""

    level: Literal["state", "request", "rerun", "branch"]
    """What is proved: the fold, the model requests, the loop run again, a branch with other answers."""

    mode: Literal["check", "wire", "in_process"] = "check"
    """Whether nothing runs, a command runs against the recorded answers, or a function of the user does."""

    matching: Literal["canonical", "lane"] = "canonical"
    """The weakest match that is answered from the record."""

    tools: tuple[ToolTreatment, ...] = ()
    """How tools are treated; empty where none can run."""

    frozen: bool = True
    """Whether outside calls are refused by the system and not only by agreement."""


class ReplayAnswered(Event, name="replay.answered", ignorable=True):
    """A step of a replay got its answer, or was refused one."""

    origin_session: str | None = None
    """Session of the recorded request, where it is not the one of `replay.started`."""

    origin_seq: int | None = None
    """Seq of the recorded request or call; None where nothing recorded fits."""

    call_id: str | None = None
    """Call of this session that was answered."""

    source: AnswerSource
    """Where the answer came from."""

    match: MatchGrade | None = None
    """How well a request fits; None for what is not a model request."""

    rules: tuple[str, ...] = ()
    """Rules that took a difference away."""

    lane: str | None = None
    """Conversation that the request belongs to."""

    waited_ms: int | None = None
    """Time that the answer was held until those before it were out."""


class ReplayDiverged(Event, name="replay.diverged", ignorable=True):
    """A replay did something else than was recorded; from here on nothing was answered."""

    kind: str
    """What differs: `request`, `effect_type`, `effect_arguments`, `order`, `missing`, `extra`, ..."""

    origin_seq: int | None = None
    """First record of the origin that the replay is not equal to."""

    pointer: str | None = None
    """JSON pointer of the first difference."""

    recorded: Digest | None = None
    """Content on the recorded side."""

    replayed: Digest | None = None
    """Content on the side of the replay."""

    cause: str | None = None
    """Likely cause."""

    detail: ContentRef | None = None
    """The divergence whole, as JSON."""


class ReplayEnded(Event, name="replay.ended", ignorable=True):
    """A replay ended with a verdict."""

    verdict: Verdict
    """What it shows."""

    level: Literal["state", "request", "rerun", "branch"]
    """What was to be proved."""

    checked: int = 0
    """States, requests or steps that were compared."""

    unchecked: int = 0
    """Those that could not be."""

    recorded: int = 0
    """Answers given from the record."""

    live: int = 0
    """Answers that came from outside."""

    blocked: int = 0
    """Requests and calls that were refused."""

    outside_calls: int = 0
    """Attempts to reach outside, refused or not."""

    effects: int = 0
    """Effects that happened outside."""

    detail: ContentRef | None = None
    """The report whole, as JSON."""


class ReplayJudged(Event, name="replay.judged", ignorable=True):
    """A person judged the divergence of a replay."""

    verdict: Literal["drift", "defect"]
    """`drift`: the difference was expected and is accepted; `defect`: it should not be."""

    diverged_seq: int
    """Record of the replay that tells of the divergence."""

    reason: ContentRef | None = None
    """Why."""

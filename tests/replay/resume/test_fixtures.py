"""Sessions of real harnesses, imported, are written and read back as the same conversation."""

from pathlib import Path

import pytest

from ledger.errors import InputError
from ledger.home import Ledger, open_ledger
from ledger.importers._intake import import_paths
from replay.resume.closing import closed
from replay.resume.point import load_point
from replay.resume.resuming import prepare
from replay.resume.turns import Turn
from tests.replay.histories import fresh_ledger

from .conversations import told

_FIXTURES = Path(__file__).parent.parent.parent.parent / "fixtures" / "importers"
_CASES = sorted(
    case
    for harness in ("claude-code", "codex", "deepseek-harness", "pi")
    for case in (_FIXTURES / harness).iterdir()
    if case.is_dir()
)
_OWN = ("<system-reminder>", "<environment_context>", "# AGENTS.md", "<skills_instructions>")
"""How texts begin that a harness puts in itself, and writes anew."""


def _said(turns: list[Turn]) -> list[tuple[str, ...]]:
    """Everything that was said, without what the harness puts in, and without line ends that it puts between texts."""
    return [
        tuple(word.rstrip("\n") for word in piece)
        for _, pieces in told(turns)
        for piece in pieces
        if piece[0] != "says" or not piece[1].startswith(_OWN)
    ]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_what_is_written_of_an_imported_session_is_read_back_alike(
    ledger: Ledger, case: Path, tmp_path: Path
) -> None:
    written, refusals = 0, []
    for number, session in enumerate(import_paths(ledger.recorder, [case]).sessions):
        head = ledger.store.head(session).seq
        try:
            prepared = prepare(ledger, session, head, tmp_path / str(number))
        except InputError as error:
            refusals.append(str(error))
            continue
        prepared.write()
        written += 1
        name = prepared.resumption.native_id
        assert name is not None
        with fresh_ledger() as other:
            report = import_paths(other.recorder, [prepared.into])
            assert name in report.sessions
            again = load_point(other, name, other.store.head(name).seq)
        assert _said(again.turns) == _said(closed(load_point(ledger, session, head).turns))
    reasons = ("incomplete", "outline", "working directory", "start of a session")
    assert all(any(reason in refusal for reason in reasons) for refusal in refusals)
    assert written or case.name in ("envelope", "exec-stream", "flat")


def test_sub_agents_that_had_returned_are_written_beside_the_session(ledger: Ledger, tmp_path: Path) -> None:
    case = _FIXTURES / "claude-code" / "subagents-2.1.332"
    sessions = import_paths(ledger.recorder, [case]).sessions
    root = next(session for session in sessions if ".agent-" not in session)
    prepared = prepare(ledger, root, ledger.store.head(root).seq, tmp_path / "into")
    prepared.write()
    name = prepared.resumption.native_id
    with fresh_ledger() as other:
        found = set(import_paths(other.recorder, [prepared.into]).sessions)
    agents = {session.partition(".")[2] for session in sessions if ".agent-" in session}
    assert agents
    assert found == {name, *(f"{name}.{agent}" for agent in agents)}


def test_a_copy_of_an_imported_session_is_known_as_its_fork(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "home") as ledger:
        (session,) = import_paths(ledger.recorder, [_FIXTURES / "claude-code" / "basic-2.1.332"]).sessions
        head = ledger.store.head(session).seq
        prepared = prepare(ledger, session, head, tmp_path / "into")
        prepared.write()
        (file,) = prepared.into.rglob("*.jsonl")
        own = '{"type":"user","uuid":"11111111-1111-4111-8111-111111111111","timestamp":"2099-01-01T00:00:00.000Z",'
        with file.open("a") as log:
            log.write(own + '"parentUuid":null,"message":{"role":"user","content":"Go on."}}\n')
        import_paths(ledger.recorder, [prepared.into])
        name = prepared.resumption.native_id
        assert name is not None
        (fork,) = ledger.store.read(name, names=["session.forked"])
        assert getattr(fork.event, "origin", None) == session
        assert list(ledger.store.read(session, names=["session.forked"])) == []

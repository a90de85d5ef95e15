"""The command `branch` at each of the first fifty records of a proxied run with a sub-agent: nothing later is known."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.replaying import ReplayAnswered
from ledger.events.session import SessionForked
from ledger.home import open_ledger
from replay.cli import request_json, state_json
from tests.commands import run
from tests.scripted_model import Lane, Match, Script, ScriptedModel, Step, Text, ToolCall
from tests.webui.proxied import RUN
from tests.webui.rerunning import Case, command
from tests.webui.test_branching import sse

FIRST_SEQS = 50
ORDER, INNER = "count the apples", "count the pears"
SAID = re.compile(r"answer [a-z]+ \d+")


def script() -> Script:
    """A boss that counts, hands over, and counts on; every answer has words of its own."""
    boss = [Step([Text(f"answer boss {number}"), ToolCall("count", {})]) for number in range(3)]
    boss.append(Step([Text("answer boss 3"), ToolCall("delegate", {"order": INNER, "agent": "helper"})]))
    boss += [Step([Text(f"answer boss {number}"), ToolCall("count", {})]) for number in range(4, 8)]
    helper = [Step([Text(f"answer helper {number}"), ToolCall("count", {})]) for number in range(4)]
    return Script(
        lanes=[
            Lane("boss", [*boss, Step([Text("answer boss 8")])], Match(first_user=ORDER)),
            Lane("helper", [*helper, Step([Text("answer helper 4")])], Match(first_user=INNER)),
        ]
    )


def living_on() -> Script:
    """A model that ends whatever it is asked about."""
    return Script(
        lanes=[
            Lane(name, [Step([Text(f"live {name}")])] * 5, Match(first_user=order))
            for name, order in (("boss", ORDER), ("helper", INNER))
        ]
    )


@pytest.fixture(scope="module")
def recorded_case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The run, recorded once."""
    case = Case(tmp_path_factory.mktemp("anywhere"))
    assert case.record(script(), ORDER, loop="boss.py") == "answer boss 8\n"
    return case


def branch(case: Case, at: int, *options: str) -> tuple[dict[str, Any], str]:
    """Run the command; its report, and the session that it made."""
    words = ["branch", RUN, "--at", str(at), "--workspace", str(case.workspace), "--no-sandbox", "--json"]
    with ScriptedModel(living_on()) as model:
        upstream = ["--upstream", f"anthropic={model.url}"]
        done = run(case.home, *words, *upstream, *options, "--", *command(ORDER, loop="boss.py"))
    assert done.exit_code == 0, done.output
    report: dict[str, Any] = json.loads(next(line for line in done.stdout.splitlines() if line[:1] == "{"))
    with open_ledger(case.home) as ledger:
        made = [
            record.session
            for record in ledger.store.read_all(names=(SessionForked.TYPE,))
            if isinstance(record.event, SessionForked) and record.event.origin_seq == at
        ]
    return report, made[-1]


def said_until(case: Case, at: int) -> set[str]:
    """What models had said by a record."""
    with open_ledger(case.home) as ledger:
        return {
            words
            for record in ledger.store.read(RUN, upto=at)
            if isinstance(record.event, ModelCallAnswered)
            for words in SAID.findall(ledger.store.content(record.event.message.digest).decode())
        }


@pytest.mark.parametrize("at", range(1, FIRST_SEQS + 1))
def test_a_branch_at_any_record_lives_on_right_there(recorded_case: Case, at: int) -> None:
    said = said_until(recorded_case, at)
    report, session = branch(recorded_case, at)
    assert report["verdict"] == "equal"
    with open_ledger(recorded_case.home) as ledger:
        records = list(ledger.store.read(session))
        told = [record.event.source for record in records if isinstance(record.event, ReplayAnswered)]
        assert told == ["recorded"] * len(said) + ["live"] * (len(told) - len(said))
        assert "live" in told
        requests = [record.seq for record in records if isinstance(record.event, ModelCallRequested)]
        first_live = request_json(ledger, session, requests[len(said)])
        known = set(SAID.findall(json.dumps(first_live["messages"])))
        assert known <= said
        # Both conversations together know all that had been said, and nothing that came later.
        whole = json.dumps([request_json(ledger, session, seq)["messages"] for seq in requests])
        assert set(SAID.findall(whole)) <= said
        state = state_json(ledger, session)
        assert set(SAID.findall(json.dumps(state["context"]))) <= said
        assert (state["forked_from"], state["forked_from_seq"]) == (RUN, at)


def test_another_answer_to_any_of_the_requests_comes_first(recorded_case: Case, tmp_path: Path) -> None:
    with open_ledger(recorded_case.home) as ledger:
        asked = {
            record.event.call_id: record.seq
            for record in ledger.store.read(RUN, upto=FIRST_SEQS)
            if isinstance(record.event, ModelCallRequested)
        }
        answered = [
            (record.seq, asked[record.event.call_id])
            for record in ledger.store.read(RUN, upto=FIRST_SEQS)
            if isinstance(record.event, ModelCallAnswered)
        ]
    other = tmp_path / "other.sse"
    other.write_bytes(sse("Enough of it."))
    assert len(answered) > 8
    for number, (at, seq) in enumerate(answered):
        _, session = branch(recorded_case, at, "--answer", f"{seq}={other}")
        with open_ledger(recorded_case.home) as ledger:
            answers = [
                record.event
                for record in ledger.store.read(session)
                if isinstance(record.event, ModelCallAnswered)
            ]
            words = [ledger.store.content(one.message.digest).decode() for one in answers]
        assert ["Enough of it." in text for text in words[: number + 1]] == [False] * number + [True]
        said = said_until(recorded_case, at - 1)
        assert {found for text in words for found in SAID.findall(text)} <= said


def test_the_fifty_records_hold_a_sub_agent_at_work(recorded_case: Case) -> None:
    with open_ledger(recorded_case.home) as ledger:
        agents = [record.agent for record in ledger.store.read(RUN, upto=FIRST_SEQS)]
    assert len(agents) == FIRST_SEQS
    place = agents.index("helper")
    assert None in agents[:place] and None in agents[place:]

"""What a replay by wire answers, and where it stops."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import InputError
from ledger.events.replaying import ReplayAnswered, ReplayDiverged, ReplayEnded, ReplayStarted
from ledger.home import Ledger
from replay.matching import Folders
from replay.player import Player, open_player

from .wire import (
    SYSTEM,
    TOOLS,
    Exchange,
    calls,
    conversation,
    messages,
    play,
    record,
    results,
    send,
    text,
    user,
)


def player_of(ledger: Ledger, folder: Path, exchanges: list[Exchange], **options: Any) -> Player:
    """A player of these exchanges that waits for nothing."""
    return open_player(ledger, record(ledger, folder, exchanges), **{"gate_timeout_s": 0.0, **options})


def test_the_same_requests_get_the_recorded_answers(ledger: Ledger, tmp_path: Path) -> None:
    turns = conversation()
    player = player_of(ledger, tmp_path, turns)
    answers = play(player, turns)
    assert [answer.match for answer in answers] == ["raw"] * 3
    assert [json.loads(answer.body) for answer in answers] == [one.answer for one in turns]
    assert all(answer.source == "recorded" for answer in answers)
    assert player.finish().as_json()["verdict"] == "equal"


def test_parallel_results_in_another_order_match_by_a_named_rule(ledger: Ledger, tmp_path: Path) -> None:
    turns = conversation()
    player = player_of(ledger, tmp_path, turns)
    send(player, turns[0])
    ask, called, _ = turns[1].body["messages"]
    swapped = turns[1].sent(messages=[ask, called, results(call_2="two", call_1="one")])
    answer = send(player, swapped)
    assert (answer.match, answer.rules) == ("canonical", ("result-order",))
    assert player.finish().divergence is not None  # the third turn did not come


def changed(turns: list[Exchange], what: str) -> list[Exchange]:
    """The second request changed in one place."""
    ask, called, answered = turns[1].body["messages"]
    other: dict[str, dict[str, Any]] = {
        "system": {"system": SYSTEM.replace("careful", "careless")},
        "tool": {"tools": [TOOLS[0], {**TOOLS[1], "description": "Bash a thing!"}]},
        "result": {"messages": [ask, called, results(call_1="one", call_2="three")]},
        "user": {"messages": [user("What do the folders say?"), called, answered]},
        "time": {"system": SYSTEM + "It is 2026-11-29T18:25:00Z."},
    }
    return [turns[0], turns[1].sent(**other[what]), turns[2]]


@pytest.mark.parametrize(
    ("what", "kind", "pointer", "excerpt", "cause"),
    [
        ("system", "request", "/system", "careless clerk", "system prompt"),
        ("tool", "schema", "/tools/1/description", "Bash a thing!", "schema of tool 'Bash'"),
        ("result", "request", "/messages/2/content/1/content", "three", "tool call 'call_2'"),
        ("user", "request", "/messages/0/content", "folders", "user"),
    ],
)
def test_a_change_is_named_at_its_place_and_nothing_is_served_after_it(
    ledger: Ledger, tmp_path: Path, what: str, kind: str, pointer: str, excerpt: str, cause: str
) -> None:
    turns = conversation()
    player = player_of(ledger, tmp_path, turns)
    first, second, third = play(player, changed(turns, what))
    divergence = second.divergence
    assert divergence is not None
    assert (divergence.kind, divergence.pointer) == (kind, pointer)
    assert divergence.seq == seqs(ledger, player.session)[1]
    assert excerpt in str(divergence.replayed.excerpt)
    assert cause in str(divergence.cause)
    assert divergence.candidates
    assert (first.source, second.source, third.source) == ("recorded", "blocked", "blocked")
    assert second.body == third.body
    assert send(player, turns[1]).source == "blocked"  # what would have matched is not served either
    report = player.finish().as_json()
    assert report["verdict"] == "diverged"
    assert report["divergence"]["kind"] == kind


def seqs(ledger: Ledger, session: str) -> list[int]:
    """The records of the model requests."""
    return [one.seq for one in ledger.store.read(session) if one.type == "model_call.requested"]


def test_a_word_in_a_long_system_prompt_gives_a_readable_excerpt(ledger: Ledger, tmp_path: Path) -> None:
    prompt = " ".join(f"Rule {number} of the house." for number in range(15_000))
    assert len(prompt) > 300_000
    body = messages(
        user("Hello"), system=[{"type": "text", "text": "You are."}, {"type": "text", "text": prompt}]
    )
    turns = [Exchange(body, text("Hello."))]
    player = player_of(ledger, tmp_path, [Exchange(messages(user("First")), text("Yes.")), *turns])
    other = prompt.replace("Rule 9000 of the house", "Rule 9000 of the garden")
    system = [body["system"][0], {"type": "text", "text": other}]
    divergence = send(player, turns[0].sent(system=system)).divergence
    assert divergence is not None
    assert divergence.pointer == "/system/1/text"
    assert "house." in str(divergence.recorded.excerpt)
    assert "Rule 9000 of the garden" in str(divergence.replayed.excerpt)
    assert len(str(divergence.replayed.excerpt)) < 300
    assert len(divergence.text()) < 2000


def test_a_time_that_differs_is_an_undeclared_input(ledger: Ledger, tmp_path: Path) -> None:
    turns = [Exchange(messages(user("Hi"), system="It is 2026-11-29T10:00:00Z."), text("Hi."))]
    player = player_of(ledger, tmp_path, turns)
    divergence = send(player, turns[0].sent(system="It is 2026-12-01T11:30:00Z.")).divergence
    assert divergence is not None
    assert (divergence.kind, divergence.cause) == ("undeclared_input", "a draw that was not recorded: a time")


def test_calls_in_another_order_stop_the_replay(ledger: Ledger, tmp_path: Path) -> None:
    turns = [
        Exchange(messages(user(f"Question {number}")), text(f"{number}", number), started=number)
        for number in range(3)
    ]
    player = player_of(ledger, tmp_path, turns)
    answers = play(player, [turns[0], turns[2], turns[1]])
    assert [answer.source for answer in answers] == ["recorded", "blocked", "blocked"]
    divergence = player.finish().divergence
    assert divergence is not None
    assert (divergence.kind, divergence.seq) == ("order", seqs(ledger, player.session)[1])


def test_a_request_too_few_is_missing_and_one_too_many_is_extra(ledger: Ledger, tmp_path: Path) -> None:
    turns = conversation()
    player = player_of(ledger, tmp_path, turns)
    play(player, turns[:2])
    divergence = player.finish().divergence
    assert divergence is not None
    assert (divergence.kind, divergence.seq) == ("missing", seqs(ledger, player.session)[2])
    player = open_player(ledger, player.session)
    play(player, turns)
    divergence = send(player, turns[2]).divergence
    assert divergence is not None
    assert divergence.kind == "extra"


def test_equal_requests_are_answered_in_recorded_order(ledger: Ledger, tmp_path: Path) -> None:
    body = messages(user("The same"))
    turns = [Exchange(body, text(f"answer {number}", number), took=0.9 + number) for number in range(3)]
    player = player_of(ledger, tmp_path, turns)
    answers = play(player, turns)
    assert [json.loads(one.body)["id"] for one in answers] == ["msg_0000", "msg_0001", "msg_0002"]
    assert player.finish().verdict == "equal"


def test_failures_and_retries_are_given_back_as_they_came(ledger: Ledger, tmp_path: Path) -> None:
    body = messages(user("Try"))
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}}
    turns = [Exchange(body, error, 503, started=n) for n in range(2)] + [
        Exchange(body, text("Yes"), started=2)
    ]
    player = player_of(ledger, tmp_path, turns)
    answers = play(player, turns)
    assert [answer.status for answer in answers] == [503, 503, 200]
    assert json.loads(answers[0].body) == error
    assert player.finish().verdict == "equal"


def test_a_stream_comes_back_in_its_pieces_and_a_cut_one_is_cut_again(ledger: Ledger, tmp_path: Path) -> None:
    start = {"type": "message_start", "message": {**text(""), "content": []}}
    pieces = [f"event: message_start\ndata: {json.dumps(start)}\n\n"]
    pieces.append('event: content_block_start\ndata: {"type":"content_block_start","index":0}\n\n')
    turns = [
        Exchange(messages(user("Cut")), pieces),
        Exchange(messages(user("Whole")), [*pieces, 'data: {"type":"message_stop"}\n\n'], started=1),
    ]
    player = player_of(ledger, tmp_path, turns)
    cut, whole = play(player, turns)
    assert [piece.decode() for _, piece in cut.pieces] == pieces
    assert whole.ended == "complete"
    assert cut.pieces[0][0] == 500


def test_side_calls_use_up_no_recording_of_the_conversation(ledger: Ledger, tmp_path: Path) -> None:
    title = messages(user("Make a title"), system="Generate a concise title.", tools=[])
    turns = [Exchange(title, text("A title"), took=3.0), *conversation()]
    player = player_of(ledger, tmp_path, turns, matching="lane")
    other = turns[0].sent(messages=[user("Make another title")], system="Generate a concise title, please.")
    answer = send(player, other)
    assert answer.source == "blocked"
    player = open_player(ledger, player.session, gate_timeout_s=0.0)
    assert [one.source for one in play(player, turns[1:])] == ["recorded"] * 3
    report = player.finish()
    assert report.verdict == "equal"
    assert len(report.unused) == 1  # nobody asked for the title


def test_the_same_place_of_a_lane_is_served_only_when_asked_for(ledger: Ledger, tmp_path: Path) -> None:
    turns = conversation()
    player = player_of(ledger, tmp_path, turns, matching="lane")
    first, second, third = play(player, changed(turns, "result"))
    assert (first.match, second.match, third.match) == ("raw", "lane", "raw")
    assert second.divergence is not None
    assert second.divergence.pointer == "/messages/2/content/1/content"
    assert player.finish().verdict == "equal"


def test_a_redacted_key_still_replays_strictly(ledger: Ledger, tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "Zq8" * 31 + "AA"
    turns = [Exchange(messages(user(f"My key is {key}")), text("Keep it safe."))]
    player = player_of(ledger, tmp_path, turns)
    [request] = [one for one in ledger.store.read(player.session) if one.type == "model_call.requested"]
    assert key not in str(request)
    assert send(player, turns[0]).match == "raw"
    other = open_player(ledger, player.session)
    wrong = turns[0].sent(messages=[user(f"My key is {key.replace('Zq8', 'Yq7')}")])
    assert send(other, wrong).source == "blocked"  # two secrets stay two


def test_other_traffic_is_given_back_or_refused_but_never_sent_on(ledger: Ledger, tmp_path: Path) -> None:
    turns = conversation()
    player = player_of(ledger, tmp_path, turns)
    answer = send(player, Exchange({"event": 1}, path="/api/telemetry"))
    assert (answer.status, answer.source) == (404, "blocked")
    assert send(player, turns[0]).source == "recorded"
    assert player.finish().outside_calls == 1


def test_another_home_is_mapped_by_a_named_rule(ledger: Ledger, tmp_path: Path) -> None:
    turns = [Exchange(messages(user("Hi"), system="Memory lies in /home/old/.memory here."), text("Hi."))]
    folders = {"recorded": Folders.of(home=["/home/old"]), "replayed": Folders.of(home=["/tmp/fresh"])}
    player = player_of(ledger, tmp_path, turns, **folders)
    answer = send(player, turns[0].sent(system="Memory lies in /tmp/fresh/.memory here."))
    assert (answer.match, answer.rules) == ("canonical", ("folders",))


def test_a_replay_is_a_session_that_can_be_replayed(ledger: Ledger, tmp_path: Path) -> None:
    turns = conversation()
    session = record(ledger, tmp_path, turns)
    player = open_player(ledger, session, started=ReplayStarted(origin=session, level="rerun", mode="wire"))
    play(player, turns)
    player.finish()
    assert player.journal is not None
    kept = list(ledger.store.read(player.journal.session))
    assert [one.event.origin for one in kept if isinstance(one.event, ReplayStarted)] == [session]
    steps = [one.event for one in kept if isinstance(one.event, ReplayAnswered)]
    assert [step.origin_seq for step in steps] == seqs(ledger, session)
    assert {(step.source, step.match) for step in steps} == {("recorded", "raw")}
    assert [one.event.verdict for one in kept if isinstance(one.event, ReplayEnded)] == ["equal"]
    again = open_player(ledger, player.journal.session)
    assert [one.match for one in play(again, turns)] == ["raw"] * 3
    assert again.finish().verdict == "equal"


def test_a_replay_that_diverged_keeps_why(ledger: Ledger, tmp_path: Path) -> None:
    turns = conversation()
    session = record(ledger, tmp_path, turns)
    player = open_player(ledger, session, started=ReplayStarted(origin=session, level="rerun", mode="wire"))
    play(player, changed(turns, "system"))
    player.finish()
    assert player.journal is not None
    kept = [one.event for one in ledger.store.read(player.journal.session)]
    [diverged] = [event for event in kept if isinstance(event, ReplayDiverged)]
    assert (diverged.kind, diverged.pointer) == ("request", "/system")
    assert [event.verdict for event in kept if isinstance(event, ReplayEnded)] == ["diverged"]


def test_a_session_without_whole_requests_is_refused(ledger: Ledger) -> None:
    with pytest.raises(Exception, match="no session"):
        open_player(ledger, "nothing")
    with pytest.raises(InputError, match="no model request whole enough"):
        Player(ledger, ["empty"])


# -- the order of answers ----------------------------------------------------------------------------------------------


def parallel() -> list[Exchange]:
    """A main request and two sub-agents side by side; the one that began later ended first."""
    return [
        Exchange(messages(user("Task A")), text("A", 1), started=0.0, took=2.0),
        Exchange(messages(user("Task B")), text("B", 2), started=0.1, took=1.0),
    ]


def test_an_answer_waits_for_those_that_ended_before_it(ledger: Ledger, tmp_path: Path) -> None:
    slow, fast = parallel()
    player = player_of(ledger, tmp_path, [slow, fast])
    first = player.match("POST", slow.path, [], json.dumps(slow.body).encode())
    turn = player.turn(first)
    assert not turn.done()
    second = player.match("POST", fast.path, [], json.dumps(fast.body).encode())
    assert player.turn(second).done()
    assert not turn.done()
    player.delivered(second)
    assert turn.done()


def test_who_waits_too_long_goes_on_without_what_does_not_come(ledger: Ledger, tmp_path: Path) -> None:
    slow, fast = parallel()
    player = player_of(ledger, tmp_path, [slow, fast])
    assert send(player, slow).source == "recorded"  # they had run side by side: no order between the two
    assert send(player, fast).source == "recorded"
    assert player.finish().verdict == "equal"


def test_fifty_coroutines_wait_without_a_thread_each(ledger: Ledger, tmp_path: Path) -> None:
    turns = [
        Exchange(
            messages(user(f"Task {number}")),
            text(str(number), number),
            started=0.01 * number,
            took=60.0 - number,
        )
        for number in range(50)
    ]
    player = player_of(ledger, tmp_path, turns, gate_timeout_s=60.0)
    out: list[int] = []

    async def one(number: int) -> None:
        exchange = turns[number]
        answer = await player.aanswer("POST", exchange.path, [], json.dumps(exchange.body).encode())
        out.append(number)
        player.delivered(answer)

    async def all_of_them() -> None:
        await asyncio.gather(*(one(number) for number in range(50)))

    asyncio.run(all_of_them())
    assert out == list(range(49, -1, -1))
    assert player.finish().verdict == "equal"


def test_ids_of_this_run_stand_in_the_answers_that_name_recorded_ones(ledger: Ledger, tmp_path: Path) -> None:
    old, new = "a75185eb283636f3e", "a11185eb2836aaaaa"
    headers = {"user-agent": "claude-cli/2.1.332 (external, cli)"}

    def turn(agent: str) -> Exchange:
        said = results(call_1=f"agentId: {agent} (use SendMessage to go on)")
        body = messages(user("Ask an agent"), calls("call_1"), said)
        return Exchange(body, text(f"I write to {old}."), headers=headers)

    player = player_of(ledger, tmp_path, [turn(old)])
    answer = send(player, turn(new))
    assert answer.match == "canonical"
    assert {"random-ids", "ids-of-this-run"} <= set(answer.rules)
    assert json.loads(answer.body)["content"][0]["text"] == f"I write to {new}."


def test_a_request_of_twenty_megabytes_matches(ledger: Ledger, tmp_path: Path) -> None:
    small = Exchange(messages(user("First")), text("Yes."))
    large = Exchange(messages(user("words " * 3_500_000)), text("Long."), started=1)
    player = player_of(ledger, tmp_path, [small, large])
    assert [one.match for one in play(player, [small, large])] == ["raw", "raw"]

"""The command `scorecard`: six questions to a loop, answered from evidence or not at all."""

from collections.abc import Iterator
from typing import Annotated

import typer

from ledger.cli.settings import JsonOption, settings_of
from ledger.cli.terminal import amount, progress, say, show_json, visible
from ledger.home import Ledger
from replay.scorecard.answer import NO_EVIDENCE, Card
from replay.scorecard.card import HarnessCard, by_harness, card_of


def add_scorecard_command(app: typer.Typer) -> None:
    """Add this file's command."""
    app.command("scorecard", epilog="Example: loopledger scorecard 3f2a --json")(scorecard_command)


def scorecard_command(
    context: typer.Context,
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION]", help="Only this one; all by harness by default.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer six questions to a loop from its records, with the records that show it; or say that none does."""
    with settings_of(context).open_existing() as ledger:
        if session is not None:
            _show_card(card_of(ledger.store, ledger.store.resolve(session)), as_json)
        else:
            _show_all(by_harness(_cards(ledger)), as_json)


def _cards(ledger: Ledger) -> Iterator[Card]:
    with progress("proving sessions") as bar:
        for count, session in enumerate(ledger.store.sessions(), 1):
            bar.move(count)
            yield card_of(ledger.store, session)


# -- for people ------------------------------------------------------------------------------------------------------


def _show_card(card: Card, as_json: bool) -> None:
    if as_json:
        show_json(card.as_json())
        return
    say(f"{visible(card.session)}  {visible(card.harness or '-')}")
    for answer in card.as_json()["answers"]:
        say()
        say(f"{answer['asks']}  {visible(answer['answer'])}", bold=True, color=_color(answer["answer"]))
        say(f"  {visible(answer['told'])}")
        for one in answer["evidence"]:
            say(f"  {visible(one['place'])}  {visible(one['what'])}")


def _show_all(harnesses: list[HarnessCard], as_json: bool) -> None:
    if as_json:
        show_json({"harnesses": [one.as_json() for one in harnesses]})
        return
    for one in harnesses:
        _show_harness(one)


def _show_harness(harness: HarnessCard) -> None:
    told = harness.as_json()
    say(f"{visible(told['harness'])}  {told['sessions']} sessions", bold=True)
    for question in told["answers"]:
        answers = ", ".join(f"{one['sessions']} {visible(one['answer'])}" for one in question["answers"])
        say(f"  {question['asks']:<51} {answers}")
        first = question["answers"][0]
        for one in first["evidence"][:1]:
            say(f"    {visible(one['place'])}  {visible(one['what'])}")
    turn = told["a_turn"]
    if turn["turns"]:
        say(
            f"  A turn carries {amount(turn['results'])} bytes of tool results, of {_of(turn['bytes'], turn['turns'])}"
        )
    if turn["schema_turns"]:
        of = _of(turn["schema_turn_bytes"], turn["schema_turns"])
        say(f"  and {amount(turn['schemas'])} of tool schemas, of {of} where they are on record")


def _of(size: int | None, turns: int) -> str:
    return f"{amount(size)} ({turns} turns)"


def _color(answer: str) -> str | None:
    return "yellow" if answer == NO_EVIDENCE else None

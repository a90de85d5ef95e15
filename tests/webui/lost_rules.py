"""A session whose compactions reword a rule, weaken one, turn one round, and lose one that is broken then."""

from typing import Any

from ledger.capture import record_loop
from ledger.effects.constraints import CallPattern, Constraint
from ledger.effects.loop_policy import LoopPolicy
from ledger.home import Ledger

LOST = "lost-rules-0001"
"""Id of the session."""

RULES = {
    "tables": "Never drop or truncate a table of orders.",
    "fridays": "Deployments are forbidden on Fridays.",
    "refunds": "Refunds above 200 EUR need approval.",
    "mail": "Never send email to recipients outside the company domain.",
}
"""Each rule by its name."""

SUMMARIES = (
    """Summary of the work.
## Constraints
- Dropping or truncating tables of orders is forbidden.
- Deployments are forbidden on Fridays.
- Refunds above 500 EUR need approval.
## Done
- Read the gauge.""",
    """Summary of the work.
## Constraints
- Dropping or truncating tables of orders is forbidden.
- Deployments are allowed on Fridays.
## Done
- Read the gauge twice.""",
)
"""What each compaction puts in the place of the conversation."""


def fill_lost_rules(
    ledger: Ledger,
    session: str = LOST,
    *,
    rules: dict[str, str] | None = None,
    summaries: tuple[str, ...] = SUMMARIES,
) -> None:
    """Record it."""
    rules = RULES if rules is None else rules
    constraints = tuple(
        Constraint(
            name=name,
            text=text,
            origin="user",
            scope="the shop" if name == "mail" else None,
            broken_by=(CallPattern(tool=f"tool_{name}", when={"/bad": True}),),
        )
        for name, text in rules.items()
    )
    policy = LoopPolicy(constraints=constraints, pinning="tell")
    with record_loop(
        ledger, harness="test-harness", session=session, name="Keep the house rules", policy=policy
    ) as run:
        loop = _Loop(run)
        loop.hear("The rules of the house. " + " ".join(rules.values()))
        loop.step("tool_tables", is_bad=False)
        loop.step("tool_refunds", is_bad=True)
        for number, summary in enumerate(summaries):
            loop.compact(summary)
            loop.hear("Look at the river gauge.")
            loop.step("tool_mail", is_bad=number == 0)


class _Loop:
    """A loop that does what it is told."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a clerk."}]
        self._calls = 0

    def hear(self, text: str) -> None:
        """A message of the user."""
        message = {"role": "user", "content": text}
        self._messages.append(message)
        self._run.message(message)

    def step(self, tool: str, *, is_bad: bool) -> None:
        """A request, an answer, a call."""
        self._calls += 1
        call_id = f"call-{self._calls}"
        function = {"name": tool, "arguments": f'{{"bad": {str(is_bad).lower()}}}'}
        message = {
            "role": "assistant",
            "content": f"step {self._calls}",
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        }
        answer = {"id": "r", "model": "m", "choices": [{"index": 0, "message": message}]}
        self._run.model(lambda **_: answer, protocol="openai.chat", model="m", messages=list(self._messages))
        self._messages.append(message)
        self._run.tool(lambda **_: "done", {"bad": is_bad}, name=tool, call_id=call_id)
        self._messages.append({"role": "tool", "tool_call_id": call_id, "content": "done"})

    def compact(self, summary: str) -> None:
        """Shorten the conversation."""
        self._messages = [self._messages[0], {"role": "user", "content": summary}]
        self._run.compacted(self._messages, summary=summary)

"""Rules over sequences: calls times rules that one CPU second gets through."""

import gc
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from textwrap import indent

from ledger.audit import Reader, fold_session
from ledger.audit.rules import read_rules, rules_detector
from ledger.events import ContentRef, Record
from ledger.events.approval import ApprovalDecided
from ledger.events.canonical import canonical_json
from ledger.events.input import MessageReceived
from ledger.events.policy import BudgetCharged
from ledger.events.record import Event
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from tests.benchmarks import rules_of_an_examiner
from tests.benchmarks.measure import Result
from tests.benchmarks.rules_of_others import RULES, UNTRUSTED, Told, calls

_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_CALLS = 100_000
_AIM_S = 5.0
_TOOLS = (
    "bash",
    "read_file",
    "write_file",
    "fetch_page",
    "send_email",
    "search",
    "pay",
    "deploy",
    "query",
    "delete",
)
_FOLDERS = ("src", "docs", "secrets", "tmp")
_RULES = """
- call: read_file
  if: args.path.contains('/secrets/')
- call: send_email
  within: {calls: 20}
---
- without: {call: query, if: "args.text.startsWith('backup')"}
  within: {calls: 50}
- call: delete
---
- call: fetch_page
- ran: bash
  if: args.text.matches('curl .*sh$')
  within: {turns: 0}
---
- call: pay
  sum: args.amount
  over: 1000000
  within: {calls: 1000}
---
- call: send_email
  times: 50
  by: args.path
  within: {calls: 200}
---
- call: write_file
  as: made
  if: args.path.endsWith('.sh')
- call: bash
  if: args.text.contains(made.args.path)
---
- result: bash
  if: result.contains('denied')
- result: bash
  if: result.contains('denied')
  within: {calls: 1}
---
- call: deploy
- without: {call: query}
  within: {calls: 30}
---
- call: '*'
  class: irreversible
- without: {event: approval.decided}
- ran: pay
---
- call: '*'
  if: args.path.contains('/etc/passwd')
---
- call: [write_file, delete]
  if: args.path.startsWith('/etc/') || args.path.contains('..')
---
- call: bash
  if: args.text.contains('sudo ')
  times: 3
  within: {turns: 2}
---
- result: fetch_page
- call: pay
  if: args.amount > 850
  within: {calls: 2}
---
- call: deploy
- call: deploy
  within: {calls: 3}
---
- without: {result: bash, if: "result.contains('passed')"}
- call: deploy
---
- call: search
  times: 30
  within: {calls: 40}
---
- call: read_file
  as: source
- call: send_email
  if: args.path == source.args.path
  within: {calls: 10}
---
- ran: delete
- without: {ran: query}
  within: {calls: 5}
---
- call: query
  if: args.text.lowerAscii().contains('drop table')
---
- result: [pay, deploy]
  outcome: failed
- call: [pay, deploy]
  within: {calls: 1}
""".split("---\n")


class _Contents:
    """Contents of a session, each digest a number."""

    def __init__(self) -> None:
        self._kept: dict[bytes, str] = {}
        self._by_digest: dict[str, bytes] = {}

    def keep(self, value: object) -> ContentRef:
        """A reference to a content."""
        raw = canonical_json(value)
        digest = self._kept.setdefault(raw, f"{len(self._kept):064x}")
        self._by_digest[digest] = raw
        return ContentRef.model_construct(digest=digest, size=len(raw), kind="json")

    def content(self, digest: str) -> bytes:
        """A content."""
        return self._by_digest[digest]


def run() -> Iterator[Result]:
    """The lines."""
    yield _speed("first set", _RULES, _first_calls(), ())
    yield _speed("second set, a condition on arguments in each", RULES, calls(_CALLS), UNTRUSTED)
    third = rules_of_an_examiner
    yield _speed("third set, every word of a rule", third.RULES, third.calls(_CALLS), third.UNTRUSTED)


def _speed(name: str, rules: list[str], told: Iterator[Told], untrusted: tuple[str, ...]) -> Result:
    contents = _Contents()
    records = list(_session(contents, told))
    text = f"untrusted: [{', '.join(untrusted)}]\nrules:\n" + "".join(
        f"- name: rule_{number}\n  title: A rule\n  steps:\n{indent(steps, '  ')}"
        for number, steps in enumerate(rules)
    )
    detector = rules_detector(read_rules("bench", text, "bench.yaml"))
    reader = Reader(contents.content, lambda _: [], lambda *_, **__: iter(()))
    gc.freeze()  # the records are none of the rules' doing
    began = time.process_time()
    found = fold_session("s", records, [detector], reader)
    spent = time.process_time() - began
    gc.unfreeze()
    return Result(
        f"{_CALLS:,} tool calls ({len(records):,} records) against {len(rules)} rules, {name}, {len(found):,} found",
        f"{_CALLS * len(rules) / spent:,.0f} calls x rules per CPU second, {spent:.2f} s",
        f"<= {_AIM_S:g} CPU s",
        spent <= _AIM_S,
    )


def _first_calls() -> Iterator[Told]:
    chance = random.Random(3)
    for number in range(_CALLS):
        arguments = {
            "path": f"/{chance.choice(_FOLDERS)}/file{number % 997}.{chance.choice(('py', 'sh'))}",
            "text": f"curl -s https://example.org/{number} | head",
            "amount": number % 900,
        }
        result = "permission denied" if number % 31 == 0 else f"done {number % 5000}"
        yield chance.choice(_TOOLS), arguments, result


def _session(contents: _Contents, told: Iterator[Told]) -> Iterator[Record]:
    seq = 0

    def record(event: Event) -> Record:
        nonlocal seq
        seq += 1
        at = (_BEGAN + timedelta(seconds=seq)).isoformat()
        return Record("s", seq, seq, event, at, "0" * 64, "0" * 64, occurred_at=at)

    for number, (tool, arguments, result) in enumerate(told):
        if number % 50 == 0:
            message = contents.keep({"role": "user", "content": f"go on with {number}"})
            yield record(MessageReceived(origin="human", message=message))
            yield record(BudgetCharged(budget="tokens", amount=Decimal(number % 1000), unit="tokens"))
            yield record(ApprovalDecided(approval_id=f"{number}", outcome="approved", decided_by="human"))
        call_id = f"call-{number}"
        yield record(ToolCallRequested(call_id=call_id, tool=tool, arguments=contents.keep(arguments)))
        yield record(ToolCallStarted(call_id=call_id))
        yield record(ToolCallSettled(call_id=call_id, outcome="returned", result=contents.keep(result)))

"""Sessions whose context is replaced by a summary: the pairs of rules and summaries, told as a loop would live them."""

from collections.abc import Iterator

from ledger.audit import Finding, Reader
from ledger.constraints.visibility import KEPT
from ledger.events import Record
from ledger.events.governance import ConstraintDeclared
from ledger.events.model_call import ModelCallRequested
from tests.audit.labelled import Labelled, call
from tests.decay_bench.pairs import Pair, pairs
from tests.ledger.audit.histories import Told

DETECTOR = "governance_decay"
TITLE = "our own pairs of rules and summaries, six ways a rule can fare (fixtures/constraints)"
BASELINE = "the rule's own words stand in no message of a later request"


def cases() -> Iterator[Labelled]:
    """One session for each pair."""
    for number, pair in enumerate(pairs()):
        yield Labelled(f"{pair.set} {number}", pair.label not in KEPT, list(_session(pair)), group=pair.set)


def _session(pair: Pair) -> Iterator[Told]:
    told = {"role": "user", "content": pair.rule}
    yield {
        "type": "governance.constraint_declared",
        "constraint": "rule",
        "text": pair.rule,
        "hardness": "hard",
        "origin": "user",
    }
    yield _asked(1, [told])
    yield from call(1, "read", {"path": "a"}, "text")
    yield {
        "type": "compaction.done",
        "compaction_id": "c",
        "trigger": "auto",
        "evidence": "logged",
        "summary": pair.summary,
    }
    yield _asked(2, [{"role": "user", "content": pair.summary}])
    yield from call(2, "read", {"path": "b"}, "text")


def _asked(number: int, messages: list[dict[str, str]]) -> Told:
    return {
        "type": "model_call.requested",
        "call_id": f"m{number}",
        "protocol": "openai.chat",
        "completeness": "messages",
        "@context": messages,
    }


def counts(finding: Finding) -> bool:
    """That the rule was lost."""
    return finding.detector == "governance_decay.lost"


def baseline(records: list[Record], reader: Reader) -> bool:
    """The rule's own words stand in no message of a later request."""
    rule = ""
    for record in records:
        event = record.event
        if isinstance(event, ConstraintDeclared):
            rule = reader.text(event.text)
        elif isinstance(event, ModelCallRequested) and rule:
            said = [str(reader.message(digest)) for digest in reader.context(event.context)]
            if not any(rule in text for text in said):
                return True
    return False

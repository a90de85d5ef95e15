"""One session: what the model saw of each rule, which cut took it, which calls broke it, and why."""

from pathlib import Path
from typing import Any

from ledger.audit.decay import SessionDecay, decay_report
from ledger.effects.constraints import CallPattern, Constraint, Demand
from ledger.views.decay import decays
from tests.audit.labelled import call
from tests.ledger.audit.histories import History, Told

RULE = "Never send email to recipients outside the company domain."
MAIL = Constraint(
    name="mail", text=RULE, broken_by=(CallPattern(tool="send_email", unless={"/to": r"@corp\.example$"}),)
)
OUT = {"to": "jo@partner.example"}


def asked(number: int, *texts: str, system: str | None = None, **more: Any) -> Told:
    told = [{"role": "user", "content": text} for text in texts]
    event: Told = {
        "type": "model_call.requested",
        "call_id": f"m{number}",
        "protocol": "openai.chat",
        "completeness": "body",
        "@context": told,
        **more,
    }
    return event if system is None else {**event, "system": system}


def compacted(summary: str) -> Told:
    return {
        "type": "compaction.done",
        "compaction_id": "c",
        "trigger": "auto",
        "evidence": "logged",
        "summary": summary,
    }


def decay(
    tmp_path: Path, *events: Told, rules: tuple[Constraint, ...] = (MAIL,), finds: bool = False
) -> SessionDecay:
    with History(tmp_path) as history:
        history.add(events)
        (found,) = decays(history.ledger.store, ["main"], rules, finds=finds)
        return found


def test_a_rule_that_a_compaction_lost_is_broken_by_decay(tmp_path: Path) -> None:
    found = decay(
        tmp_path,
        asked(1, RULE),
        *call(1, "send_email", {"to": "me@corp.example"}),
        compacted("Work on the report."),
        asked(2, "Work on the report.", "Send it to Jo."),
        *call(2, "read", {}),
        *call(3, "send_email", OUT),
    )
    assert [(use.is_violation, use.how, use.why) for use in found.uses] == [
        (False, "verbatim", "wilful"),
        (True, "absent", "decay"),
    ]
    (cut,) = found.cuts
    assert (found.uses[1].lost_by, found.uses[1].steps) == (cut.seq, 2)
    assert (cut.before, cut.lost, cut.is_logged) == (["mail"], {"mail": "absent"}, True)
    assert [(one.how, one.lost_by) for one in found.sightings] == [("verbatim", None), ("absent", cut.seq)]
    assert found.exposure == {"mail": 2}


def test_a_rule_that_is_there_and_broken_is_broken_wilfully(tmp_path: Path) -> None:
    found = decay(
        tmp_path,
        asked(1, RULE),
        compacted("Do not email anyone who is not at our company."),
        asked(2, "Do not email anyone who is not at our company."),
        *call(1, "send_email", OUT),
    )
    assert [(use.how, use.why) for use in found.uses] == [("paraphrase", "wilful")]
    assert found.cuts[0].lost == {}
    assert [(one.cuts, one.is_lost) for one in found.outlived] == [(1, False)]


def test_a_rule_that_was_never_shown_is_no_decay(tmp_path: Path) -> None:
    found = decay(tmp_path, asked(1, "Hello."), *call(1, "send_email", OUT))
    assert [(use.how, use.why) for use in found.uses] == [("absent", "unknown")]
    assert decay_report([found]).accounts().holds()


def test_a_call_that_was_denied_breaks_nothing(tmp_path: Path) -> None:
    assert decay(tmp_path, asked(1, RULE), *call(1, "send_email", OUT, outcome="denied")).uses == []


def test_a_cut_that_nobody_logged_is_seen_in_the_next_request(tmp_path: Path) -> None:
    found = decay(
        tmp_path, asked(1, RULE, "one", "two"), asked(2, "two", "three"), *call(1, "send_email", OUT)
    )
    assert [(cut.is_logged, cut.lost) for cut in found.cuts] == [(False, {"mail": "absent"})]
    assert found.uses[0].why == "decay"


def test_what_is_said_again_after_a_compaction_does_not_count_as_survival(tmp_path: Path) -> None:
    again = {"role": "user", "content": RULE}
    found = decay(
        tmp_path,
        asked(1, RULE),
        compacted("Work."),
        {"type": "input.message_received", "origin": "human", "message": again},
        asked(2, "Work.", RULE),
        *call(1, "send_email", OUT),
    )
    assert found.cuts[0].lost == {"mail": "absent"}
    assert [(use.how, use.why) for use in found.uses] == [("verbatim", "wilful")]
    assert [(one.cuts, one.is_lost) for one in found.outlived] == [(1, True)]


def test_a_system_prompt_outlives_compactions(tmp_path: Path) -> None:
    found = decay(tmp_path, asked(1, "a", system=RULE), compacted("b"), asked(2, "b", system=RULE))
    assert [(one.cuts, one.is_lost) for one in found.outlived] == [(1, False)]


def test_a_request_that_cannot_be_rebuilt_says_nothing(tmp_path: Path) -> None:
    found = decay(tmp_path, asked(1, "Hello.", completeness="partial"), *call(1, "send_email", OUT))
    assert [(use.how, use.why) for use in found.uses] == [("unknown", "unknown")]


def test_a_demand_is_met_once_for_each_call(tmp_path: Path) -> None:
    rule = Constraint(
        name="order",
        text="Always look up the order before you issue a refund.",
        demands=Demand(before=CallPattern(tool="refund"), call=CallPattern(tool="get_order"), each_time=True),
    )
    found = decay(
        tmp_path,
        asked(1, rule.text),
        *call(1, "get_order", {}),
        *call(2, "refund", {}),
        *call(3, "refund", {}),
        rules=(rule,),
    )
    assert [use.is_violation for use in found.uses] == [False, True]


def test_rules_are_found_where_they_are_told(tmp_path: Path) -> None:
    found = decay(
        tmp_path,
        {
            "type": "governance.artifact_changed",
            "artifact": "file:AGENTS.md",
            "kind": "rule_file",
            "content": "You must run the tests before each commit.",
            "cause": "human",
        },
        {"type": "input.message_received", "origin": "human", "message": {"role": "user", "content": RULE}},
        asked(1, RULE, system="Never call `drop_table`."),
        *call(1, "drop_table", {}),
        rules=(),
        finds=True,
    )
    assert sorted((rule.origin, rule.modality) for rule in found.rules.values()) == [
        ("file", "requirement"),
        ("system", "prohibition"),
        ("user", "prohibition"),
    ]
    assert [(use.tool, use.is_violation, use.why) for use in found.uses] == [("drop_table", True, "wilful")]


def test_a_rule_that_was_withdrawn_is_watched_no_more(tmp_path: Path) -> None:
    found = decay(
        tmp_path,
        asked(1, RULE),
        {"type": "governance.constraint_withdrawn", "constraint": "mail"},
        *call(1, "send_email", OUT),
    )
    assert found.uses == []
    assert found.rules["mail"].withdrawn == 2


def test_a_summary_that_nobody_logged_is_what_the_cut_left(tmp_path: Path) -> None:
    """As the proxy sees it: the summary is one more message of the user's, and comes in before the next request."""
    summary, more = "Summary: do not email anyone who is not at our company.", "What now?"
    found = decay(
        tmp_path,
        asked(1, RULE, "one", "two"),
        *({"type": "input.message_received", "origin": "unknown", "message": {"role": "user", "content": text}}
          for text in (summary, more)),
        asked(2, summary, more),
        *call(1, "send_email", OUT),
    )  # fmt: skip
    assert [(cut.is_logged, cut.before, cut.lost) for cut in found.cuts] == [(False, ["mail"], {})]
    assert found.uses[0].why == "wilful"


def test_what_a_person_types_after_a_cut_that_nobody_logged_is_no_survival(tmp_path: Path) -> None:
    again = f"Once more: {RULE}"
    typed: Told = {
        "type": "input.message_received",
        "origin": "human",
        "message": {"role": "user", "content": again},
    }
    found = decay(tmp_path, asked(1, RULE, "one"), typed, asked(2, "Summary: nothing.", again))
    assert [cut.lost for cut in found.cuts] == [{"mail": "absent"}]

"""Can a run be rebuilt from its traces? By the proof itself: every state, and every request."""

from ledger.store import EventStore
from replay.proving import Tell, prove_requests, prove_states
from replay.scorecard.answer import Answer, Witness, nothing

_MOST_PLACES = 5


def rebuilding(store: EventStore, session: str, tell: Tell = lambda seq: None) -> Answer:
    """Run the proofs `state` and `request` on a session."""
    states = prove_states(store, session, tell)
    requests = prove_requests(store, session, tell)
    facts = {
        "states": states.facts.get("states", 0),
        "state_verdict": states.verdict,
        "request_verdict": requests.verdict,
        **requests.facts,
    }
    broken = states.divergence or requests.divergence
    if broken is not None:
        place = f"{session}#{broken.seq}" if broken.seq is not None else session
        told = f"no: {broken.kind} at {place}: {broken.cause or 'the rebuilt one is another'}"
        return Answer("rebuild", "no", told, (Witness(place, broken.kind),), facts)
    matched = [one for one in requests.requests if one.match != "miss" and one.seq is not None]
    count, left = len(matched), len(requests.unchecked)
    if not count:
        why = f"{left} requests are not on record" if left else "no request to a model is on record"
        told = f"{why}; all {facts['states']} states can be rebuilt"
        return nothing("rebuild", told, **facts)
    witnesses = tuple(
        Witness(
            f"{session}#{one.seq}", "rebuilt, body equal" if one.match == "raw" else "rebuilt, messages equal"
        )
        for one in matched[:_MOST_PLACES]
    ) + tuple(
        Witness(f"{session}#{one.seq}", f"not: {one.reason}") for one in requests.unchecked[:_MOST_PLACES]
    )
    bodies = requests.facts["bodies_equal"]
    told = (
        f"all {facts['states']} states; {bodies} of {count + left} requests with their whole body,"
        f" {requests.facts['messages_equal']} message for message, {left} not on record"
    )
    if left:
        return Answer("rebuild", "in part", told, witnesses, facts)
    return Answer("rebuild", "whole" if bodies == count else "message for message", told, witnesses, facts)

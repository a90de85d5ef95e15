-- title:    Effect done twice
-- severity: medium
-- why:      The same call outside, with the same arguments, acted a second time: a payment, a message or a deletion that nobody asked for twice.
-- misses:   Repetitions in other words; calls that share an idempotency key; effects that the class of the call does not show.
-- reads:    tool_calls, events
-- source:   Idempotency keys of payment interfaces; "outcome unknown, do not retry blindly" of DeepSeek Harness.
with acted as (
    select
        calls.session,
        calls.call_id,
        calls.requested_seq,
        calls.settled_seq,
        calls.tool,
        calls.effect_class,
        calls.outcome,
        calls.arguments_digest,
        row_number() over same_call             as place,
        lag(calls.requested_seq) over same_call as before_seq,
        lag(calls.outcome) over same_call       as before_outcome
    from tool_calls as calls
    where calls.effect_class in ('external', 'irreversible')
        and calls.outcome in ('returned', 'unknown')
        and calls.arguments_size > 2
    window same_call as (
        partition by calls.session, calls.tool, calls.arguments_digest
        order by calls.requested_seq
    )
),
keyed as (
    select
        session,
        seq
    from events
    where type = 'tool_call.requested'
        and json_extract_string(payload, '$.idempotency_key') is not null
)
select
    acted.session,
    acted.requested_seq                                              as seq,
    case
        when acted.before_outcome = 'unknown' then
            format('{} was sent again although nobody knows whether the call before it acted', acted.tool)
        else format('{} did the same once more, with the same arguments', acted.tool)
    end                                                              as message,
    [acted.before_seq, acted.requested_seq]                          as witnesses,
    case when acted.before_outcome = 'unknown' then 'high' end       as severity
from acted
anti join keyed
    on  keyed.session = acted.session
    and keyed.seq = acted.requested_seq
where acted.place > 1
order by acted.session, acted.requested_seq

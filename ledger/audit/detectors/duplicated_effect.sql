-- title:    Effect done twice
-- severity: medium
-- why:      The same call outside, with the same arguments, acted a second time: a payment, a message or a deletion that nobody asked for twice.
-- misses:   Repetitions in other words; repetitions under the idempotency key of the first; effects that the class of the call does not show; that a person asked for the same again.
-- reads:    tool_calls, tool_call.requested
-- source:   Idempotency keys of payment interfaces; "outcome unknown, do not retry blindly" of DeepSeek Harness.
with keys as (
    select
        session,
        seq,
        json_extract_string(payload, '$.idempotency_key') as idempotency_key
    from events
    where type = 'tool_call.requested'
),
acted as (
    select
        calls.session,
        calls.requested_seq,
        calls.tool,
        keys.idempotency_key,
        row_number() over same_call             as place,
        row_number() over same_key              as place_of_key,
        lag(calls.requested_seq) over same_call as before_seq,
        lag(calls.outcome) over same_call       as before_outcome
    from tool_calls as calls
    left join keys
        on  keys.session = calls.session
        and keys.seq = calls.requested_seq
    where calls.effect_class in ('external', 'irreversible')
        and calls.outcome in ('returned', 'unknown')
        and calls.arguments_size > 2
    window
        same_call as (
            partition by calls.session, calls.tool, calls.arguments_digest
            order by calls.requested_seq
        ),
        same_key as (
            partition by calls.session, calls.tool, calls.arguments_digest, keys.idempotency_key
            order by calls.requested_seq
        )
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
where acted.place > 1
    and (acted.idempotency_key is null or acted.place_of_key = 1) -- under one key it acts once
order by acted.session, acted.requested_seq

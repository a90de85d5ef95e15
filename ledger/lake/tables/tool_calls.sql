-- One row for each tool call: what was asked for, and what came of it. `open`: nobody told how it ended.
select
    session,
    call_id,
    min(seq) filter (type = 'tool_call.requested')                             as requested_seq,
    min(seq) filter (type = 'tool_call.started')                               as started_seq,
    min(seq) filter (type = 'tool_call.settled')                               as settled_seq,
    min(coalesce(occurred_at, recorded_at))                                    as happened_at,
    min_by(agent, seq)                                                         as agent,
    min_by(tool, seq) filter (type = 'tool_call.requested')                    as tool,
    min_by(server, seq) filter (type = 'tool_call.requested')                  as server,
    coalesce(
        min_by(effect_class, seq) filter (type = 'tool_call.requested'),
        min_by(effect_guess, seq)
    )                                                                          as effect_class,
    coalesce(
        min_by(effect_declared, seq) filter (type = 'tool_call.requested'),
        case when min_by(effect_guess, seq) is not null then 'inferred' end
    )                                                                          as effect_said_by,
    coalesce(max_by(outcome, seq) filter (type = 'tool_call.settled'), 'open') as outcome,
    max_by(error, seq) filter (type = 'tool_call.settled')                     as error,
    max(duration_ms)                                                           as duration_ms,
    min_by(content_digest, seq) filter (type = 'tool_call.requested')          as arguments_digest,
    min_by(content_size, seq) filter (type = 'tool_call.requested')            as arguments_size,
    max_by(content_digest, seq) filter (type = 'tool_call.settled')            as result_digest,
    max_by(content_size, seq) filter (type = 'tool_call.settled')              as result_size,
    min_by(text, seq) filter (type = 'tool_call.requested')                    as arguments,
    max_by(text, seq) filter (type = 'tool_call.settled')                      as result
from events
where type in ('tool_call.requested', 'tool_call.started', 'tool_call.settled')
group by session, call_id

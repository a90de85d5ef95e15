-- One row for each model call: the request, and its answer, the fullest reading of it, or its failure.
select
    session,
    call_id,
    min(seq) filter (type = 'model_call.requested')                           as requested_seq,
    min(seq) filter (type in ('model_call.answered', 'model_call.failed'))    as ended_seq,
    min(coalesce(occurred_at, recorded_at))                                   as happened_at,
    min_by(purpose, seq) filter (type = 'model_call.requested')               as purpose,
    min_by(protocol, seq) filter (type = 'model_call.requested')              as protocol,
    min_by(provider, seq) filter (type = 'model_call.requested')              as provider,
    min_by(model, seq) filter (type = 'model_call.requested')                 as requested_model,
    min_by(model, seq) filter (type = 'model_call.answered')                  as answered_model,
    min_by(context_length, seq) filter (type = 'model_call.requested')        as context_length,
    min_by(completeness, seq) filter (type = 'model_call.requested')          as request_known,
    min_by(system_digest, seq) filter (type = 'model_call.requested')         as system_digest,
    min_by(tools_digest, seq) filter (type = 'model_call.requested')          as tools_digest,
    case
        when bool_or(type = 'model_call.answered') then 'answered'
        when bool_or(type = 'model_call.failed') then 'failed'
        else 'open'
    end                                                                       as outcome,
    max_by(stop_reason, reading) filter (type = 'model_call.answered')        as stop_reason,
    max_by(completeness, reading) filter (type = 'model_call.answered')       as answer_known,
    max_by(input_tokens, reading) filter (type = 'model_call.answered')       as input_tokens,
    max_by(output_tokens, reading) filter (type = 'model_call.answered')      as output_tokens,
    max_by(cache_read_tokens, reading) filter (type = 'model_call.answered')  as cache_read_tokens,
    max_by(cache_write_tokens, reading) filter (type = 'model_call.answered') as cache_write_tokens,
    max_by(reasoning_tokens, reading) filter (type = 'model_call.answered')   as reasoning_tokens,
    max_by(cost_usd, reading) filter (type = 'model_call.answered')           as cost_usd,
    max(first_byte_ms)                                                        as first_byte_ms,
    max(duration_ms)                                                          as duration_ms,
    max(attempt)                                                              as attempt,
    min_by(status, seq)                                                       as status,
    min_by(error, seq)                                                        as error,
    coalesce(bool_or(synthetic), false)                                       as synthetic,
    max_by(text, reading) filter (type = 'model_call.answered')               as answer
from (
    select
        *,
        coalesce(revision, 0) * 1000000000 + seq as reading
    from events
    where type in ('model_call.requested', 'model_call.answered', 'model_call.failed') and call_id is not null
) as told
group by session, call_id

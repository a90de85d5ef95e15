-- One row for each model call: the request, and its answer, the fullest reading of it, or its failure.
select
    session,
    call_id,
    min(seq) filter (type = 'model_call.requested')                              as requested_seq,
    min(seq) filter (type in ('model_call.answered', 'model_call.failed'))       as ended_seq,
    min(coalesce(occurred_at, recorded_at))                                      as happened_at,
    any_value(purpose) filter (type = 'model_call.requested')                    as purpose,
    any_value(protocol) filter (type = 'model_call.requested')                   as protocol,
    any_value(provider) filter (type = 'model_call.requested')                   as provider,
    any_value(model) filter (type = 'model_call.requested')                      as requested_model,
    any_value(model) filter (type = 'model_call.answered')                       as answered_model,
    any_value(context_length) filter (type = 'model_call.requested')             as context_length,
    any_value(completeness) filter (type = 'model_call.requested')               as request_known,
    case
        when bool_or(type = 'model_call.answered') then 'answered'
        when bool_or(type = 'model_call.failed') then 'failed'
        else 'open'
    end                                                                          as outcome,
    max_by(stop_reason, revision) filter (type = 'model_call.answered')          as stop_reason,
    max_by(completeness, revision) filter (type = 'model_call.answered')         as answer_known,
    max_by(input_tokens, revision) filter (type = 'model_call.answered')         as input_tokens,
    max_by(output_tokens, revision) filter (type = 'model_call.answered')        as output_tokens,
    max_by(cache_read_tokens, revision) filter (type = 'model_call.answered')    as cache_read_tokens,
    max_by(cache_write_tokens, revision) filter (type = 'model_call.answered')   as cache_write_tokens,
    max_by(reasoning_tokens, revision) filter (type = 'model_call.answered')     as reasoning_tokens,
    max_by(cost_usd, revision) filter (type = 'model_call.answered')             as cost_usd,
    max(first_byte_ms)                                                           as first_byte_ms,
    max(duration_ms)                                                             as duration_ms,
    max(attempt)                                                                 as attempt,
    any_value(status)                                                            as status,
    any_value(error)                                                             as error,
    coalesce(bool_or(synthetic), false)                                          as synthetic,
    max_by(text, revision) filter (type = 'model_call.answered')                 as answer
from events
where type in ('model_call.requested', 'model_call.answered', 'model_call.failed') and call_id is not null
group by session, call_id

-- title: Slowest calls
-- doc:   Calls of models and tools that took longest.
-- param: least integer = 0: milliseconds from which a call counts
-- chart: bar name duration_ms
select
    'model'                                      as kind,
    coalesce(answered_model, requested_model)    as name,
    session,
    requested_seq                                as seq,
    duration_ms,
    first_byte_ms,
    outcome
from model_calls
where duration_ms >= $least
union all
select
    'tool'                                       as kind,
    tool                                         as name,
    session,
    requested_seq                                as seq,
    duration_ms,
    null                                         as first_byte_ms,
    outcome
from tool_calls
where duration_ms >= $least
order by duration_ms desc, session, seq

-- title: Longest sessions
-- doc:   Sessions by their number of records.
select
    session,
    harness,
    name,
    records,
    model_calls,
    tool_calls,
    compactions,
    output_tokens,
    started_at,
    outcome
from sessions
order by records desc, session

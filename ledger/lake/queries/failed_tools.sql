-- title: Tool calls that failed
-- doc:   Each failed call with its arguments, the last first.
-- param: tool text = %: name of the tool, with % for any text
select
    session,
    settled_seq as seq,
    happened_at,
    tool,
    error,
    arguments,
    result
from tool_calls
where outcome = 'failed' and coalesce(tool, '') like $tool
order by happened_at desc nulls last, session, seq

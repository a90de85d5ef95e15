-- title: Calls that were denied
-- doc:   Tool calls that a person or a rule refused, with the reason that is on record.
select
    tool_calls.session,
    tool_calls.requested_seq as seq,
    tool_calls.happened_at,
    tool_calls.tool,
    approvals.decided_by,
    approvals.how,
    tool_calls.error,
    tool_calls.arguments
from tool_calls
left join approvals
    on  approvals.session = tool_calls.session
    and approvals.call_id = tool_calls.call_id
where tool_calls.outcome = 'denied' or approvals.outcome = 'denied'
order by tool_calls.happened_at desc nulls last, tool_calls.session, seq

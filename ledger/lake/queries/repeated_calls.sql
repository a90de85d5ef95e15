-- title: Repeated tool calls
-- doc:   The same tool with the same arguments, several times in one session.
-- param: least integer = 3: calls from which a repetition counts
select
    session,
    tool,
    count(*)                         as calls,
    min(requested_seq)               as first_seq,
    max(requested_seq)               as last_seq,
    count(distinct result_digest)    as different_results,
    min_by(arguments, requested_seq) as arguments
from tool_calls
where arguments_digest is not null
group by session, tool, arguments_digest
having count(*) >= $least
order by calls desc, session, first_seq

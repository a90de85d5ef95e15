-- title: More than half of the calls of a tool failed
-- severity: low
-- why: A tool that mostly fails is broken, or is used wrongly.
-- misses: Tools that report their failures as text.
-- reads: tool_calls
-- source: Written for the tests.
select
    session,
    max(settled_seq) as seq,
    format('{} of {} calls of {} failed', count(*) filter (where outcome = 'failed'), count(*), tool) as message,
    list_sort(list(settled_seq)) as witnesses,
    tool as key
from tool_calls
where settled_seq is not null
group by session, tool
having count(*) >= 2 and count(*) filter (where outcome = 'failed') * 2 > count(*)
order by session, tool

-- title: Calls that were tried again at once
-- doc:   The same tool, asked for again by the next call after it failed.
-- param: outcome text = failed: how the first of them ended
-- chart: bar tool times
with calls as (
    select
        tool,
        outcome,
        lead(tool) over (partition by session order by requested_seq) as next_tool
    from tool_calls
    where requested_seq is not null
)
select tool, count(*) as times
from calls
where outcome = $outcome and next_tool = tool
group by tool
order by times desc, tool nulls last

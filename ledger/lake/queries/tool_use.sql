-- title: Tool use
-- doc:   How often each tool was called, how often that failed or was denied, and how long it took.
-- chart: bar tool calls
select
    tool                                                as tool,
    count(*)                                            as calls,
    count(*) filter (where outcome = 'failed')          as failed,
    count(*) filter (where outcome = 'denied')          as denied,
    count(*) filter (where outcome in ('open', 'unknown')) as without_result,
    count(distinct session)                             as sessions,
    cast(round(median(duration_ms)) as bigint)          as median_ms,
    max(duration_ms)                                    as longest_ms
from tool_calls
group by tool
order by calls desc, tool nulls last

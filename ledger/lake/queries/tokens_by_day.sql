-- title: Tokens by day
-- doc:   Tokens of all model calls, by the day on which they happened (UTC).
-- chart: line day output_tokens
select
    cast(happened_at as date)                        as day,
    count(*)                                as calls,
    cast(sum(input_tokens) as bigint)       as input_tokens,
    cast(sum(cache_read_tokens) as bigint)  as cache_read_tokens,
    cast(sum(output_tokens) as bigint)      as output_tokens,
    sum(cost_usd)                           as cost_usd
from model_calls
where not synthetic
group by cast(happened_at as date)
order by day nulls last

-- title: Cost by model
-- doc:   Calls, tokens and cost of each model. Cost as the sources say it: NULL where none does.
-- chart: bar model cost_usd
select
    coalesce(answered_model, requested_model)   as model,
    count(*)                                    as calls,
    count(*) filter (where outcome = 'failed')  as failed,
    cast(sum(input_tokens) as bigint)           as input_tokens,
    cast(sum(cache_read_tokens) as bigint)      as cache_read_tokens,
    cast(sum(cache_write_tokens) as bigint)     as cache_write_tokens,
    cast(sum(output_tokens) as bigint)          as output_tokens,
    sum(cost_usd)                               as cost_usd
from model_calls
where not synthetic
group by coalesce(answered_model, requested_model)
order by cost_usd desc nulls last, calls desc, model nulls last

-- One row for each session: what ran, when, how it ended, what it used. A fuller reading of an answer counts once.
with answers as (
    select
        session,
        call_id,
        max_by(struct_pack(
            input       := input_tokens,
            output      := output_tokens,
            cache_read  := cache_read_tokens,
            cache_write := cache_write_tokens,
            cost        := cost_usd
        ), coalesce(revision, 0) * 1000000000 + seq) as told
    from events
    where type = 'model_call.answered' and synthetic is distinct from true
    group by session, call_id
),
used as (
    select
        session,
        count(*)                            as model_calls,
        cast(sum(told.input) as bigint)       as input_tokens,
        cast(sum(told.output) as bigint)      as output_tokens,
        cast(sum(told.cache_read) as bigint)  as cache_read_tokens,
        cast(sum(told.cache_write) as bigint) as cache_write_tokens,
        sum(told.cost)                      as cost_usd
    from answers
    group by session
),
told as (
    select
        session,
        max_by(harness, seq) filter (type = 'session.started')       as harness,
        max_by(name, seq) filter (type = 'session.started')          as name,
        max_by(agent, seq) filter (agent is not null)                as agent,
        min_by(model, seq) filter (model is not null)                as model,
        max_by(cwd, seq) filter (type = 'session.started')           as cwd,
        max_by(parent, seq) filter (type = 'session.started')        as parent,
        max_by(outcome, seq) filter (type = 'session.ended')         as outcome,
        min(occurred_at)                                             as started_at,
        max(occurred_at)                                             as last_at,
        min(recorded_at)                                             as recorded_from,
        max(recorded_at)                                             as recorded_to,
        count(*)                                                     as records,
        count(*) filter (type = 'tool_call.requested')               as tool_calls,
        count(*) filter (type = 'compaction.done')                   as compactions,
        count(*) filter (type = 'review.finding_raised')             as findings
    from events
    group by session
)
select
    told.*,
    coalesce(used.model_calls, 0) as model_calls,
    used.input_tokens,
    used.output_tokens,
    used.cache_read_tokens,
    used.cache_write_tokens,
    used.cost_usd
from told
left join used
    on used.session = told.session

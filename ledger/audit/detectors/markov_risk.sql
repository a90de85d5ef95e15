-- title: Course that led to grave findings before
-- severity: low
-- why: Some states of a run are soon followed by harm; a person who looks then is in time.
-- misses: Ledgers without findings of severity high or worse that nobody dismissed: from them it learns what harm is. What depends on more than the last call. Live, it is not asked.
-- reads: tool_calls findings
-- state: experimental
-- live: no
-- source: SafetyDrift (arXiv 2603.27148), an absorbing Markov chain over steps; fitted on the user's own sessions, each on all others but itself.
with harm as (
    select session, min(seq) as seq
    from findings
    where severity in ('high', 'critical') and coalesce(verdict, '') not in ('dismissed', 'duplicate')
    group by session
),
steps as (
    select
        tool_calls.session,
        requested_seq as seq,
        coalesce(effect_class, 'write')
            || case when outcome in ('failed', 'denied') then ' failed' else '' end as state,
        lead(requested_seq) over (partition by tool_calls.session order by requested_seq) as next_seq,
        harm.seq as harm_seq
    from tool_calls
    left join harm on harm.session = tool_calls.session
    where requested_seq is not null
),
moves as (
    select
        session,
        seq,
        state,
        case
            when harm_seq is not null and (next_seq is null or harm_seq < next_seq) then 'harm'
            else coalesce(lead(state) over (partition by session order by seq), 'end')
        end as next_state
    from steps
    where harm_seq is null or seq <= harm_seq
),
counts as (
    select session, state, next_state, count(*) as times from moves group by session, state, next_state
),
pooled as (
    select state, next_state, sum(times) as times from counts group by state, next_state
),
-- each session is judged by all others: its own moves are taken out
left_out as (
    select
        sessions.session,
        pooled.state,
        pooled.next_state,
        pooled.times - coalesce(counts.times, 0) as times
    from (select distinct session from counts) as sessions
    cross join pooled
    left join counts
        on  counts.session = sessions.session
        and counts.state = pooled.state
        and counts.next_state = pooled.next_state
),
chances as (
    select
        session,
        state,
        next_state,
        times / nullif(sum(times) over (partition by session, state), 0) as chance,
        sum(times) over (partition by session, state) as seen
    from left_out
    where times > 0
),
-- the chance of harm within one, two, ... five calls
within_1 as (
    select session, state, sum(case when next_state = 'harm' then chance else 0 end) as risk, min(seen) as seen
    from chances
    group by session, state
),
within_2 as (
    select chances.session, chances.state, min(chances.seen) as seen,
        sum(chance * case when next_state = 'harm' then 1 else coalesce(later.risk, 0) end) as risk
    from chances
    left join within_1 as later on later.session = chances.session and later.state = chances.next_state
    group by chances.session, chances.state
),
within_3 as (
    select chances.session, chances.state, min(chances.seen) as seen,
        sum(chance * case when next_state = 'harm' then 1 else coalesce(later.risk, 0) end) as risk
    from chances
    left join within_2 as later on later.session = chances.session and later.state = chances.next_state
    group by chances.session, chances.state
),
within_4 as (
    select chances.session, chances.state, min(chances.seen) as seen,
        sum(chance * case when next_state = 'harm' then 1 else coalesce(later.risk, 0) end) as risk
    from chances
    left join within_3 as later on later.session = chances.session and later.state = chances.next_state
    group by chances.session, chances.state
),
within_5 as (
    select chances.session, chances.state, min(chances.seen) as seen,
        sum(chance * case when next_state = 'harm' then 1 else coalesce(later.risk, 0) end) as risk
    from chances
    left join within_4 as later on later.session = chances.session and later.state = chances.next_state
    group by chances.session, chances.state
),
risky as (
    select
        moves.session,
        moves.seq,
        moves.state,
        within_5.risk,
        row_number() over (partition by moves.session order by moves.seq) as place
    from moves
    join within_5 on within_5.session = moves.session and within_5.state = moves.state
    where within_5.risk >= 0.5 and within_5.seen >= 10
)
select
    session,
    min(seq) as seq,
    format('after a call of class {}, {} % of other runs came to a grave finding within five calls', min_by(state, seq), cast(round(100 * min_by(risk, seq)) as bigint)) as message,
    list_sort(list(seq)) as witnesses,
    'risk' as key
from risky
where place <= 20
group by session
order by session

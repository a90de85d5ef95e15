-- title:    Work handed over whose end is on no record
-- severity: medium
-- why:      A session that ended well rests on what another agent, or a server, did: nobody can show whether that was done, and how.
-- misses:   Hand-offs, after which nothing comes back by design; sessions whose own end is not on record; an end that is told and wrong.
-- reads:    edges, tool_calls, session.ended
-- source:   Evaluate the node, govern the edge; "outcome unknown" of DeepSeek Harness.
with ended as (
    select
        session,
        max(seq) as seq
    from events
    where type = 'session.ended' and outcome = 'completed'
    group by session
),
handed as (
    select
        given.session,
        given.seq,
        coalesce(given.to_agent, 'another agent') as party
    from edges as given
    inner join events as told
        on  told.session = given.session
        and told.seq = given.seq
    left join edges as back
        on  back.session = given.session
        and back.kind = 'returned'
        and back.delegation_id = given.delegation_id
        and back.outcome is distinct from 'unknown'
    where given.kind = 'delegated'
        and back.seq is null
        and coalesce(json_extract_string(told.payload, '$.how'), 'unknown') <> 'handoff'
),
called as (
    select
        session,
        requested_seq                      as seq,
        format('the server {}', server)    as party
    from tool_calls
    where server is not null
        and outcome in ('open', 'unknown')
        and effect_class in ('write', 'external', 'irreversible')
        and requested_seq is not null
)
select
    open_ones.session,
    open_ones.seq,
    format('the session ended well, and the end of what was given to {} is on no record', open_ones.party) as message,
    [open_ones.seq, ended.seq]                                                                           as witnesses
from (
    select * from handed
    union all
    select * from called
) as open_ones
inner join ended
    on  ended.session = open_ones.session
    and ended.seq > open_ones.seq
order by open_ones.session, open_ones.seq

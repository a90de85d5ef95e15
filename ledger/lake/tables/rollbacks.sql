-- One row for each rollback whose target is known; what lies between is abandoned, where no later one undid it (`in_force`).
with recursive checkpoints as (
    select
        session,
        checkpoint_id,
        seq,
        coalesce(checkpoint_seq, cast(json_extract(payload, '$.seq') as bigint), seq - 1) as target
    from events
    where type = 'recovery.checkpoint_taken'
),
found as (
    select
        back.session,
        back.seq,
        coalesce(back.to_seq, max_by(checkpoints.target, checkpoints.seq)) as to_seq
    from events as back
    left join checkpoints
        on  checkpoints.session = back.session
        and checkpoints.checkpoint_id = back.checkpoint_id
        and checkpoints.seq < back.seq
    where back.type = 'recovery.rolled_back'
    group by back.session, back.seq, back.to_seq
),
back as (
    select
        found.session,
        found.seq,
        found.to_seq,
        max(earlier.seq) as stands_on
    from found
    left join found as earlier
        on  earlier.session = found.session
        and earlier.seq <= found.to_seq
        and earlier.to_seq between 0 and earlier.seq - 1
    where found.to_seq between 0 and found.seq - 1
    group by found.session, found.seq, found.to_seq
),
in_force as (
    select
        session,
        max(seq) as seq
    from back
    group by session
    union all
    select
        back.session,
        back.stands_on as seq
    from in_force
    inner join back
        on  back.session = in_force.session
        and back.seq = in_force.seq
    where back.stands_on is not null
)
select
    back.session,
    back.seq,
    back.to_seq,
    back.stands_on,
    in_force.seq is not null as in_force
from back
left join in_force
    on  in_force.session = back.session
    and in_force.seq = back.seq

-- One row for each session that continues another: the one before it, the last record that they share, the first of all.
with recursive forks as (
    select
        session,
        origin      as parent_session,
        origin_seq  as at_seq,
        runs_again
    from events
    where type = 'session.forked'
    union all
    select
        coalesce(branch, json_extract_string(payload, '$.branch'))                   as session,
        session                                                                      as parent_session,
        coalesce(at_seq, cast(json_extract(payload, '$.at_seq') as bigint))          as at_seq,
        false                                                                        as runs_again
    from events
    where type = 'recovery.branch_opened'
),
branch as (
    select
        session,
        min(parent_session)                  as parent_session,
        min(at_seq)                          as at_seq,
        coalesce(bool_or(runs_again), false) as runs_again
    from forks
    where session is not null
    group by session
),
line as (
    select
        session,
        parent_session as root_session,
        1              as depth
    from branch
    union all
    select
        line.session,
        branch.parent_session as root_session,
        line.depth + 1        as depth
    from line
    inner join branch
        on branch.session = line.root_session
    where line.depth < 1000
)
select
    branch.session,
    branch.parent_session,
    branch.at_seq,
    branch.runs_again,
    max_by(line.root_session, line.depth) as root_session,
    max(line.depth)                       as depth
from branch
inner join line
    on line.session = branch.session
group by branch.session, branch.parent_session, branch.at_seq, branch.runs_again

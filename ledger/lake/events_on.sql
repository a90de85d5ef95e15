-- events_on(SESSION): the records that a session stands on: its own, and those of the sessions that it continues, up to
-- the record from which it continues them.
create macro events_on(branch) as table
    with recursive forks as (
        select
            session     as session,
            any_value(parent_session) as parent,
            min(at_seq) as at_seq
        from branches
        group by session
    ),
    line as (
        select branch::varchar as session, null::bigint as last_seq, 0 as steps
        union all
        select forks.parent, forks.at_seq, line.steps + 1
        from line
        inner join forks
            on forks.session = line.session
        where line.steps < 1000
    )
    select events.*
    from events
    inner join line
        on  line.session = events.session
        and (line.last_seq is null or events.seq <= line.last_seq);

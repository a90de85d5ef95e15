-- events_on(SESSION): the records that a session stands on: its own, and those of the sessions that it continues, up to
-- the record from which it continues them; without those that had been abandoned by then.
create macro events_on(of_session) as table
    with recursive line as (
        select of_session::varchar as session, null::bigint as last_seq, 0 as steps
        union all
        select branches.parent_session, branches.at_seq, line.steps + 1
        from line
        inner join branches
            on branches.session = line.session
        where line.steps < 1000 and branches.at_seq is not null and not branches.runs_again
    ),
    back as (
        select line.session, max(rollbacks.seq) as seq
        from line
        inner join rollbacks
            on  rollbacks.session = line.session
            and (line.last_seq is null or rollbacks.seq <= line.last_seq)
        group by line.session
        union all
        select rollbacks.session, rollbacks.stands_on
        from back
        inner join rollbacks
            on  rollbacks.session = back.session
            and rollbacks.seq = back.seq
        where rollbacks.stands_on is not null
    )
    select events.*
    from events
    inner join line
        on  line.session = events.session
        and (line.last_seq is null or events.seq <= line.last_seq)
    anti join (
        select rollbacks.session, rollbacks.seq, rollbacks.to_seq
        from back
        inner join rollbacks
            on  rollbacks.session = back.session
            and rollbacks.seq = back.seq
    ) as abandoning
        on  abandoning.session = events.session
        and events.seq > abandoning.to_seq
        and events.seq < abandoning.seq;

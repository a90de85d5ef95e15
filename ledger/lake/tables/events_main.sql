-- The records that stand: those that no rollback in force abandoned; columns as in events.
select events.*
from events
anti join (
    select session, seq, to_seq
    from rollbacks
    where in_force
) as back
    on  back.session = events.session
    and events.seq > back.to_seq
    and events.seq < back.seq

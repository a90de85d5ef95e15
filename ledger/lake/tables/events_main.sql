-- The records that were not abandoned by a rollback of their session; columns as in events.
select events.*
from events
anti join (
    select session, seq, to_seq
    from events
    where type = 'recovery.rolled_back' and to_seq is not null
) as back
    on  back.session = events.session
    and events.seq > back.to_seq
    and events.seq < back.seq

-- title: Replays that diverged
-- doc:   The first place where a replay did something else than was recorded.
select
    events.session                                   as replay,
    replayed.origin                                  as origin,
    events.origin_seq,
    events.kind,
    json_extract_string(events.payload, '$.pointer') as pointer,
    events.cause
from events
left join (
    select session, min_by(origin, seq)              as origin
    from events
    where type = 'replay.started'
    group by session
) as replayed
    on replayed.session = events.session
where events.type = 'replay.diverged'
order by replay, events.seq

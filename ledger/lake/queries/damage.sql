-- title: Damage
-- doc:   Parts of sources that could not be read, and records of the store that cannot.
select
    session,
    seq,
    type,
    coalesce(damage, reason)  as reason,
    source_file,
    source_line
from events
where type = 'recovery.damage_found' or damage is not null
order by session, seq

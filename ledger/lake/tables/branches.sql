-- One row for each session that continues another: the session, the one before it, and the last record that they share.
select
    session,
    origin     as parent_session,
    origin_seq as at_seq
from events
where type = 'session.forked'
union
select
    json_extract_string(payload, '$.branch')               as session,
    session                                                as parent_session,
    cast(json_extract(payload, '$.at_seq') as bigint)      as at_seq
from events
where type = 'recovery.branch_opened'

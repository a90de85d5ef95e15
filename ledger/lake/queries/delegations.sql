-- title: Delegations
-- doc:   What agents handed to others, and how that ended.
select
    started.session,
    started.seq,
    started.to_agent,
    started.other_session    as to_session,
    started.size             as payload_bytes,
    returned.outcome         as outcome,
    returned.size            as result_bytes
from edges as started
left join edges as returned
    on  returned.session = started.session
    and returned.delegation_id = started.delegation_id
    and returned.kind = 'returned'
where started.kind = 'delegated'
order by started.session, started.seq, returned.seq nulls last

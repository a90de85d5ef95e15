-- One row for each tie between two sessions: work handed over, work given back, a branch, another telling of one run.
select
    session,
    seq,
    coalesce(occurred_at, recorded_at) as happened_at,
    case type
        when 'delegation.started' then 'delegated'
        when 'delegation.returned' then 'returned'
        when 'session.forked' then 'continues'
        when 'session.linked' then 'same_run'
        else 'child_of'
    end                                as kind,
    case type
        when 'delegation.started' then to_session
        when 'delegation.returned' then from_session
        when 'session.forked' then origin
        when 'session.linked' then json_extract_string(payload, '$.other')
        else parent
    end                                as other_session,
    to_agent,
    delegation_id,
    call_id,
    outcome,
    content_size                       as size,
    text                               as content
from events
where type in ('delegation.started', 'delegation.returned', 'session.forked', 'session.linked')
    or (type = 'session.started' and parent is not null)

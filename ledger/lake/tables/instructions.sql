-- One row for each system prompt and each set of tool schemas that models were sent: its text, and where it was used.
select
    'system_prompt'                 as kind,
    system_digest                   as digest,
    min_by(session, position)       as first_session,
    min_by(seq, position)           as first_seq,
    count(*)                        as model_calls,
    count(distinct session)         as sessions,
    min_by(system_prompt, position) as content
from events
where type = 'model_call.requested' and system_digest is not null
group by system_digest
union all
select
    'tool_schemas'                  as kind,
    tools_digest                    as digest,
    min_by(session, position)       as first_session,
    min_by(seq, position)           as first_seq,
    count(*)                        as model_calls,
    count(distinct session)         as sessions,
    min_by(tool_schemas, position)  as content
from events
where type = 'model_call.requested' and tools_digest is not null
group by tools_digest

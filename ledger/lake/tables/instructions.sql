-- One row for each system prompt and each set of tool schemas that models were sent: its text, and where it was used.
select
    kind,
    digest,
    min_by(session, position) as first_session,
    min_by(seq, position)     as first_seq,
    count(*)                  as model_calls,
    count(distinct session)   as sessions,
    min_by(content, position) as content
from (
    select 'system_prompt' as kind, system_digest as digest, session, seq, position, system_prompt as content
    from events
    where type = 'model_call.requested'
    union all
    select 'tool_schemas' as kind, tools_digest as digest, session, seq, position, tool_schemas as content
    from events
    where type = 'model_call.requested'
) as sent
where digest is not null
group by kind, digest

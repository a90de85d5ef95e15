-- One row for each message that a session holds: from people, from the harness, from models and from tools.
select
    session,
    seq,
    coalesce(occurred_at, recorded_at)         as happened_at,
    type,
    case type
        when 'input.message_received' then coalesce(origin, 'unknown')
        when 'input.context_injected' then 'harness'
        when 'model_call.answered' then 'model'
        when 'tool_call.settled' then 'tool'
        else 'summary'
    end                                        as author,
    trust,
    provenance,
    call_id,
    content_digest,
    content_size                               as size,
    case
        when not json_valid(text) then text
        when json_type(text) = 'VARCHAR' then json_extract_string(text, '$')
        when json_type(text, '$.content') = 'VARCHAR' then json_extract_string(text, '$.content')
        when json_type(text, '$.content') = 'ARRAY'
            then array_to_string(json_extract_string(text, '$.content[*].text'), chr(10))
        when json_type(text) = 'ARRAY' then array_to_string(json_extract_string(text, '$[*].text'), chr(10))
        else text
    end                                        as readable,
    text                                       as message
from events
where type in (
    'input.message_received', 'input.context_injected', 'model_call.answered', 'tool_call.settled',
    'compaction.done', 'compaction.pinned'
) and content_field is not null

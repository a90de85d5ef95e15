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
    message_text(text)                         as readable,
    text                                       as message
from events
where type in (
    'input.message_received', 'input.context_injected', 'model_call.answered', 'tool_call.settled',
    'compaction.done', 'compaction.pinned'
) and content_field is not null

-- One row for each change of what governs an agent: prompt, rule file, tool schema, policy, memory, hook or mode.
select
    session,
    seq,
    coalesce(occurred_at, recorded_at)         as happened_at,
    artifact,
    kind,
    cause                                      as changed_by,
    json_extract_string(payload, '$.old')      as old_digest,
    content_digest                             as new_digest,
    content_size                               as size,
    call_id,
    text                                       as content
from events
where type = 'governance.artifact_changed'

-- One row for each file that was imported into a session, with what its report counts.
select
    session,
    seq,
    recorded_at                                                     as happened_at,
    file,
    format,
    try_cast(json_extract(text, '$.lines') as bigint)               as lines,
    try_cast(json_extract(text, '$.records') as bigint)             as records,
    try_cast(json_extract(text, '$.model_calls') as bigint)         as model_calls,
    try_cast(json_extract(text, '$.tool_calls') as bigint)          as tool_calls,
    try_cast(json_extract(text, '$.unanswered_calls') as bigint)    as unanswered_calls,
    try_cast(json_extract(text, '$.orphan_results') as bigint)      as orphan_results,
    try_cast(json_extract(text, '$.compactions') as bigint)         as compactions,
    json_array_length(json_extract(text, '$.quarantined'))           as quarantined,
    try_cast(json_extract(text, '$.redacted') as bigint)            as redacted,
    text                                                            as report
from events
where type = 'ledger.imported'

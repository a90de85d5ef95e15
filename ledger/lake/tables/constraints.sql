-- One row for each constraint at each model call, as far as `loopledger decay` has looked: how it stood in the request.
select
    calls.session,
    seen.constraint_name,
    calls.seq                                          as call_seq,
    calls.call_id,
    coalesce(calls.occurred_at, calls.recorded_at)     as happened_at,
    seen.visibility,
    seen.visibility in ('verbatim', 'paraphrase')      as is_visible,
    seen.since_seq,
    seen.compaction_seq                                as lost_by_seq,
    seen.modality,
    seen.hardness,
    seen.origin,
    seen.is_declared,
    seen.constraint_text
from events as calls
inner join (
    select
        session,
        constraint_name,
        lane,
        at_seq                                         as since_seq,
        lead(at_seq) over (partition by session, constraint_name, lane order by at_seq, seq) as until_seq,
        json_extract_string(payload, '$.visibility')   as visibility,
        cast(json_extract_string(payload, '$.compaction_seq') as bigint) as compaction_seq,
        coalesce(json_extract_string(payload, '$.modality'), 'unknown') as modality,
        coalesce(json_extract_string(payload, '$.hardness'), 'unknown') as hardness,
        coalesce(origin, 'unknown')                    as origin,
        json_extract_string(payload, '$.declared') = 'true' as is_declared,
        text                                           as constraint_text
    from events
    where type = 'review.constraint_seen'
) as seen
    on seen.session = calls.session
    and coalesce(seen.lane, '') = coalesce(calls.lane, calls.agent, '')
    and calls.seq >= seen.since_seq
    and (seen.until_seq is null or calls.seq < seen.until_seq)
where calls.type = 'model_call.requested' and calls.purpose in ('main', 'sub-agent', 'unknown')

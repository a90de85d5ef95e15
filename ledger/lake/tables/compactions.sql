-- One row for each compaction of a context: what set it off, how much it took away, and what stands in its place.
select
    session,
    compaction_id,
    min(seq) filter (type = 'compaction.started') as started_seq,
    max(seq) filter (type = 'compaction.done')    as done_seq,
    min(coalesce(occurred_at, recorded_at))       as happened_at,
    min_by(trigger, seq)                          as trigger,
    min_by(evidence, seq)                         as evidence,
    max(tokens_before)                            as tokens_before,
    max(tokens_after)                             as tokens_after,
    max(messages_before)                          as messages_before,
    max(messages_after)                           as messages_after,
    max(duration_ms)                              as duration_ms,
    min_by(model, seq)                            as model,
    min_by(text, seq)                             as summary
from events
where type in ('compaction.started', 'compaction.done')
group by session, compaction_id

-- One row for each effect outside the loop: what was changed or reached, and what was done about it afterwards.
select
    session,
    effect_id,
    min(seq) filter (type = 'effect.done')             as seq,
    min(coalesce(occurred_at, recorded_at))            as happened_at,
    min_by(call_id, seq) filter (type = 'effect.done') as call_id,
    min_by(target, seq)                                as target,
    min_by(operation, seq)                             as operation,
    min_by(effect_class, seq)                          as effect_class,
    min_by(evidence, seq)                              as evidence,
    case
        when bool_or(type = 'effect.compensated') then 'compensated'
        when bool_or(type = 'effect.not_undone') then 'not_undone'
        else 'stands'
    end                                                as disposition
from events
where type in ('effect.done', 'effect.compensated', 'effect.not_undone')
group by session, effect_id

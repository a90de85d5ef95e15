-- One row for each effect outside the loop: what was changed or reached, and what was done about it afterwards.
select
    session,
    effect_id,
    min(seq) filter (type = 'effect.done')                     as seq,
    min(coalesce(occurred_at, recorded_at))                    as happened_at,
    any_value(call_id) filter (type = 'effect.done')           as call_id,
    any_value(target)                                          as target,
    any_value(operation)                                       as operation,
    any_value(effect_class)                                    as effect_class,
    any_value(evidence)                                        as evidence,
    case
        when bool_or(type = 'effect.compensated') then 'compensated'
        when bool_or(type = 'effect.not_undone') then 'not_undone'
        else 'stands'
    end                                                        as disposition
from events
where type in ('effect.done', 'effect.compensated', 'effect.not_undone')
group by session, effect_id

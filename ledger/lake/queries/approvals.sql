-- title: Approvals
-- doc:   Who decided what, how often, and how much of it was only inferred.
select
    coalesce(decided_by, 'nobody yet')             as decided_by,
    how,
    outcome,
    count(*)                                       as questions,
    count(distinct session)                        as sessions,
    count(*) filter (where evidence = 'inferred')  as inferred
from approvals
group by coalesce(decided_by, 'nobody yet'), how, outcome
order by questions desc, decided_by, how nulls last, outcome

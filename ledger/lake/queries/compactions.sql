-- title: Compactions
-- doc:   Each time a context was shortened, with what it lost.
select
    session,
    done_seq                        as seq,
    happened_at,
    trigger,
    evidence,
    messages_before,
    messages_after,
    tokens_before,
    tokens_after,
    length(summary)                 as summary_characters
from compactions
where done_seq is not null
order by happened_at desc nulls last, session, seq

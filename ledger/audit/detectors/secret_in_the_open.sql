-- title:    Secret that stood in the open for long
-- severity: low
-- why:      A secret that many records show was in the clear in the source all that time: it ought to be replaced, not only redacted here.
-- misses:   Where it stood before the record begins; who read it there; an import tells of the secrets of a batch at its end.
-- reads:    credential.secret_redacted, model_call.requested
-- source:   Our own; secrets are told apart by their keyed digests.
-- state:    experimental
with shown as (
    select
        session,
        secret_digest,
        min_by(kind, seq) as kind,
        min(seq)          as first_seq,
        max(seq)          as last_seq,
        count(*)          as places
    from events
    where type = 'credential.secret_redacted'
        and secret_digest is not null
    group by session, secret_digest
),
passed as (
    select
        shown.session,
        shown.secret_digest,
        count(*) as model_calls
    from shown
    inner join events as asked
        on  asked.session = shown.session
        and asked.type = 'model_call.requested'
        and asked.seq between shown.first_seq and shown.last_seq
    group by shown.session, shown.secret_digest
)
select
    shown.session,
    shown.first_seq                                                      as seq,
    format(
        'a secret ({}) stood in the open in {} places over {} model calls',
        replace(shown.kind, '_', ' '), shown.places, passed.model_calls
    )                                                                    as message,
    [shown.first_seq, shown.last_seq]                                    as witnesses,
    shown.first_seq::varchar                                             as key
from shown
inner join passed
    on  passed.session = shown.session
    and passed.secret_digest = shown.secret_digest
where passed.model_calls >= 3
order by shown.session, shown.first_seq

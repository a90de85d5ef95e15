-- title: Secrets that were removed
-- doc:   Kinds of secrets that stood in the content, and in how many sessions the same one did.
select
    kind,
    secret_digest,
    count(*)                as places,
    count(distinct session) as sessions,
    min(session)            as in_session
from events
where type = 'credential.secret_redacted'
group by kind, secret_digest
order by places desc, kind, secret_digest

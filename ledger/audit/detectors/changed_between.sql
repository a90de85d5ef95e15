-- title:    Rule file that is another than the session before had left
-- severity: low
-- why:      What governs an agent may change between two of its sessions as well, and then no session shows by whose hand.
-- misses:   Who it was: people edit their rule files too; sources that tell no content of rule files; sessions in other folders, or whose folder is not told; which way it goes.
-- reads:    artifacts, sessions, tool_calls, session.started
-- live:     no
-- source:   Misevolution (arXiv 2509.26354); OWASP Agentic ASI06.
with placed as (
    select
        session,
        cwd,
        harness,
        coalesce(started_at, recorded_from) as started_at
    from sessions
    where cwd is not null and parent is null
),
told as (
    select
        changed.session,
        changed.artifact,
        placed.cwd,
        placed.harness,
        placed.started_at,
        min(changed.seq)                             as first_seq,
        min_by(changed.new_digest, changed.seq)      as first_digest,
        min_by(changed.changed_by, changed.seq)      as first_by,
        max(changed.seq)                             as last_seq,
        max_by(changed.new_digest, changed.seq)      as last_digest
    from artifacts as changed
    inner join placed
        on placed.session = changed.session
    where changed.kind in ('rule_file', 'policy', 'hook', 'skill')
    group by changed.session, changed.artifact, placed.cwd, placed.harness, placed.started_at
),
followed as (
    select
        *,
        lag(session) over earlier     as before_session,
        lag(last_seq) over earlier    as before_seq,
        lag(last_digest) over earlier as before_digest
    from told
    window earlier as (partition by cwd, harness, artifact order by started_at, session)
)
select
    followed.session,
    followed.first_seq                                                               as seq,
    format(
        '{} is not as the session before had left it, and no record tells who changed it',
        followed.artifact
    )                                                                                as message,
    [followed.first_seq]                                                             as witnesses,
    [format('{}#{}', followed.before_session, followed.before_seq)]                  as elsewhere
from followed
where followed.before_digest <> followed.first_digest
    and followed.first_by not in ('human', 'agent')
    and not exists (
        select 1
        from tool_calls as called
        where called.session = followed.before_session
            and called.requested_seq > followed.before_seq
            and called.outcome <> 'denied'
            and contains(called.arguments, regexp_extract(followed.artifact, '[^/:]+$'))
    )
order by followed.session, followed.first_seq

-- title: Run that went another way than its peers
-- severity: low
-- why: Runs of the same agent that do the same work take much the same calls; one that does not has another task.
-- misses: Agents with fewer than five other runs of four calls and more; runs whose tasks differ anyway; what happens after the first hundred calls, or within a shell.
-- reads: tool_calls sessions
-- state: experimental
-- live: no
-- source: Path edit distance of the agent stability index (arXiv 2601.04170); Levenshtein over the names of tools.
with named as (
    select
        session,
        requested_seq as seq,
        substr('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789', cast(dense_rank() over (order by tool) % 62 + 1 as int), 1) as letter
    from tool_calls
    where requested_seq is not null
),
placed as (
    select session, seq, letter, row_number() over (partition by session order by seq) as place from named
),
paths as (
    select
        session, string_agg(letter, '' order by seq) as path, min(seq) as first_seq, count(*) as calls
    from placed
    where place <= 100
    group by session
),
firsts as (
    select session, list_sort(list(seq)) as seqs from placed where place <= 20 group by session
),
grouped as (
    select
        paths.session, path, first_seq, seqs, calls,
        coalesce(sessions.harness, '') || '/' || coalesce(sessions.agent, '') as peers,
        row_number() over (
            partition by coalesce(sessions.harness, '') || '/' || coalesce(sessions.agent, '') order by paths.session
        ) as number,
        count(*) over (partition by coalesce(sessions.harness, '') || '/' || coalesce(sessions.agent, '')) as many
    from paths
    join firsts on firsts.session = paths.session
    join sessions on sessions.session = paths.session
    where calls >= 4
),
-- each is compared with the twenty after it, round and round
pairs as (
    select
        one.session,
        levenshtein(one.path, two.path) / nullif(greatest(length(one.path), length(two.path)), 0) as apart
    from grouped as one
    join grouped as two
        on  two.peers = one.peers
        and two.session != one.session
        and (two.number - one.number + one.many) % nullif(one.many, 0) <= 20
),
distances as (
    select session, median(apart) as apart, count(*) as compared from pairs group by session
),
middle as (
    select grouped.peers, median(apart) as apart
    from distances
    join grouped on grouped.session = distances.session
    group by grouped.peers
),
usual as (
    select middle.peers, min(middle.apart) as apart, median(abs(distances.apart - middle.apart)) as spread
    from distances
    join grouped on grouped.session = distances.session
    join middle on middle.peers = grouped.peers
    group by middle.peers
)
select
    grouped.session,
    grouped.first_seq as seq,
    format('its calls are {} % apart from those of {} other runs; such runs are {} % apart', cast(round(100 * distances.apart) as bigint), distances.compared, cast(round(100 * usual.apart) as bigint)) as message,
    grouped.seqs as witnesses,
    'path' as key
from grouped
join distances on distances.session = grouped.session
join usual on usual.peers = grouped.peers
where
    distances.compared >= 5
    and usual.apart <= 0.5
    and distances.apart >= usual.apart + greatest(0.3, 4 * usual.spread)
order by grouped.session

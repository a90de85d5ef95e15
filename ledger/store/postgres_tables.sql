-- The store's tables on PostgreSQL: same names and meaning as in sqlite_tables.sql, so that one query reads both.
-- Records, blobs and nodes are never updated; records and nodes are never deleted, and nothing is truncated.
-- Runs once, in one transaction, under a lock that all starting processes take.

create table stored_events (
    nid                bigint primary key,        -- position in the ledger, without holes, given under a lock
    originator_id      text collate "C" not null, -- session; "C" sorts by bytes, as SQLite does
    originator_version bigint not null,           -- seq
    topic              text collate "C" not null, -- name of the event
    state              bytea not null,            -- canonical JSON of event, stamp and link
    hash               bytea not null             -- SHA-256 of session, seq, name and state
);

create unique index stored_events_by_session on stored_events (originator_id, originator_version);

create table blobs (
    digest   bytea primary key, -- keyed digest of the content
    size     bigint not null,   -- length of the content
    codec    bigint not null,   -- 0 as it is, 1 zstd
    body     bytea not null,    -- content, packed
    checksum bytea not null     -- of the columns before
);

-- Bodies are compressed already: PostgreSQL need not try again.
alter table blobs alter column body set storage external;

create table context_nodes (
    node    bytea primary key, -- keyed digest of parent, message and depth
    parent  bytea,             -- node of the message before; null for the first
    message bytea not null,    -- digest of the message's blob
    depth   bigint not null    -- messages up to here
);

create table source_keys (
    key         bytea primary key, -- digest of session and native identity of a source record
    line        bigint not null,   -- its line in the file
    seq         bigint not null,   -- first record made from it
    check_bytes bigint not null    -- 64-bit check of its bytes
);

create table ledger_meta (
    name  text primary key,
    value bytea not null
);

create function ledger_refuses() returns trigger language plpgsql as $$
begin
    raise exception '% of % refused: what is kept is never changed, append instead', tg_op, tg_table_name
        using errcode = 'restrict_violation';
end $$;

-- For each statement, not each row: a statement that would touch no row is refused as well.
create trigger records_are_not_changed before update or delete or truncate on stored_events
for each statement execute function ledger_refuses();

create trigger nodes_are_not_changed before update or delete or truncate on context_nodes
for each statement execute function ledger_refuses();

-- A blob can be deleted, by an erasure that is on record.
create trigger blobs_are_not_changed before update or truncate on blobs
for each statement execute function ledger_refuses();

-- One writer at a time, from the choice of positions to the end of the commit: so positions have no holes, and become
-- visible in their order. Includes the table's oid, so that ledgers in several schemas do not wait for each other.
create function ledger_lock() returns void language sql as $$
    select pg_advisory_xact_lock((x'6c656467'::bigint << 32) | 'stored_events'::regclass::oid::bigint)
$$;

create function ledger_keep_blobs(
    digests   bytea[],
    sizes     bigint[],
    codecs    bigint[],
    bodies    bytea[],
    checksums bytea[]
) returns void language sql as $$
    insert into blobs
    select * from unnest(digests, sizes, codecs, bodies, checksums)
    on conflict do nothing
$$;

-- Gives the position of the last record. plpgsql, because each statement in it sees what was committed before it: the
-- search for the last position comes after the lock.
create function ledger_append(
    durable       boolean,
    head_sessions text[],
    head_seqs     bigint[],
    head_hashes   bytea[],
    sessions      text[],
    seqs          bigint[],
    names         text[],
    states        bytea[],
    hashes        bytea[],
    digests       bytea[],
    sizes         bigint[],
    codecs        bigint[],
    bodies        bytea[],
    checksums     bytea[],
    nodes         bytea[],
    parents       bytea[],
    messages      bytea[],
    depths        bigint[],
    keys          bytea[],
    lines         bigint[],
    key_seqs      bigint[],
    checks        bigint[]
) returns bigint language plpgsql as $$
declare
    last_position bigint;
    inserted      bigint;
begin
    if not durable then
        -- For this transaction alone. The commit survives the death of the client; the death of the server or of the
        -- machine may undo the last moments. A later durable commit makes it durable too.
        perform set_config('synchronous_commit', 'off', true);
    elsif current_setting('synchronous_commit') = 'off' then
        perform set_config('synchronous_commit', 'on', true);
    end if;
    perform ledger_lock();
    -- A writer may remember records that a crash of the server took before they were durable: it must look again.
    if exists (
        select 1
        from unnest(head_sessions, head_seqs, head_hashes) as head (session, seq, hash)
        where not exists (
            select 1
            from stored_events as kept
            where kept.originator_id = head.session
                and kept.originator_version = head.seq
                and kept.hash = head.hash
        )
    ) then
        raise exception 'a session does not stand where its new records were linked' using errcode = 'unique_violation';
    end if;
    if digests is not null then
        perform ledger_keep_blobs(digests, sizes, codecs, bodies, checksums);
    end if;
    if nodes is not null then
        insert into context_nodes
        select * from unnest(nodes, parents, messages, depths)
        on conflict do nothing;
    end if;
    if keys is not null then
        insert into source_keys
        select * from unnest(keys, lines, key_seqs, checks)
        on conflict do nothing;
        get diagnostics inserted = row_count;
        if inserted <> cardinality(keys) then
            raise exception 'a source record was recorded before' using errcode = 'LK001';
        end if;
    end if;
    select coalesce(max(nid), 0) into last_position from stored_events;
    insert into stored_events
    select last_position + place, session, seq, name, state, hash
    from unnest(sessions, seqs, names, states, hashes) with ordinality
        as record (session, seq, name, state, hash, place);
    get diagnostics inserted = row_count;
    return last_position + inserted;
end $$;

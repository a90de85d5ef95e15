-- The store's tables on SQLite. Records, blobs and nodes are never updated; records and nodes are never deleted.
begin immediate;

create table if not exists stored_events (
    nid                integer primary key, -- position in the ledger; explicit, so that a dump and restore keeps it
    originator_id      text    not null,    -- session
    originator_version integer not null,    -- seq
    topic              text    not null,    -- name of the event
    state              blob    not null,    -- canonical JSON of event, stamp and link
    hash               blob    not null     -- SHA-256 of session, seq, name and state
);

create unique index if not exists stored_events_by_session on stored_events (originator_id, originator_version);

create table if not exists blobs (
    digest   blob primary key, -- keyed digest of the content
    size     integer not null, -- length of the content
    codec    integer not null, -- 0 as it is, 1 zstd
    body     blob    not null, -- content, packed
    checksum blob    not null  -- of the columns before
);

create table if not exists context_nodes (
    node    blob primary key, -- keyed digest of parent, message and depth
    parent  blob,             -- node of the message before; null for the first
    message blob    not null, -- digest of the message's blob
    depth   integer not null  -- messages up to here
) without rowid;

create table if not exists source_keys (
    key   blob primary key, -- digest of session and native identity of a source record
    line  integer not null, -- its line in the file
    seq   integer not null, -- first record made from it
    check_bytes integer not null -- 64-bit check of its bytes
) without rowid;

create table if not exists ledger_meta (
    name  text primary key,
    value blob not null
) without rowid;

create trigger if not exists records_are_not_updated before update on stored_events
begin select raise(abort, 'records are never updated: append a new one'); end;

create trigger if not exists records_are_not_deleted before delete on stored_events
begin select raise(abort, 'records are never deleted: append a new one'); end;

-- `insert or replace` deletes without asking the triggers above. Our own inserts give no nid: new.nid is -1 then.
create trigger if not exists records_are_not_replaced before insert on stored_events
when exists (
    select 1
    from stored_events
    where originator_id = new.originator_id and originator_version = new.originator_version
)
begin select raise(abort, 'records are never replaced: append a new one'); end;

create trigger if not exists positions_are_not_replaced before insert on stored_events
when new.nid > 0 and exists (select 1 from stored_events where nid = new.nid)
begin select raise(abort, 'records are never replaced: append a new one'); end;

create trigger if not exists blobs_are_not_replaced before insert on blobs
when exists (select 1 from blobs where digest = new.digest)
begin select raise(ignore); end;

create trigger if not exists nodes_are_not_replaced before insert on context_nodes
when exists (select 1 from context_nodes where node = new.node)
begin select raise(ignore); end;

create trigger if not exists blobs_are_not_updated before update on blobs
begin select raise(abort, 'blobs are never updated'); end;

create trigger if not exists nodes_are_not_updated before update on context_nodes
begin select raise(abort, 'context nodes are never updated'); end;

create trigger if not exists nodes_are_not_deleted before delete on context_nodes
begin select raise(abort, 'context nodes are never deleted'); end;

pragma user_version = 1;

commit;

"""Statements of the store on PostgreSQL. Parameters are sent in binary (`%b`)."""

EVENT_COLUMNS = "nid, originator_id, originator_version, topic, state"
LOCK = "select ledger_lock()"
KEEP_BLOBS = "select ledger_keep_blobs(%b, %b, %b, %b, %b)"
APPEND = f"select ledger_append(%b, {', '.join(['%b'] * 21)})"
SELECT_EVENTS = (
    f"select {EVENT_COLUMNS} from stored_events"  # noqa: S608
    " where originator_id = %b and originator_version > %b and originator_version <= %b"
)
FIND_SESSIONS = """
    with recursive found (id, number) as (
        (
            select originator_id, 1
            from stored_events
            where originator_id > '' and originator_id >= %(prefix)b
            order by originator_id
            limit 1
        )
        union all
        select
            (
                select originator_id
                from stored_events
                where originator_id > found.id
                order by originator_id
                limit 1
            ),
            number + 1
        from found
        where starts_with(found.id, %(prefix)b) and number < %(limit)b
    )
    select id
    from found
    where starts_with(id, %(prefix)b)
    order by number
"""

MISSING_GUARDS = """
    select guard
    from unnest(array[
        'records_are_not_changed', 'nodes_are_not_changed', 'blobs_are_not_changed'
    ]) as guards (guard)
    where not exists (
        select 1
        from pg_trigger
        where tgname = guard and tgenabled in ('O', 'A') and tgrelid = any(array[
            'stored_events', 'context_nodes', 'blobs'
        ]::regclass[])
    )
    order by guard
"""
INDEXES = """
    select indexrelid::regclass::text
    from pg_index
    where indrelid = any(array['stored_events', 'blobs', 'context_nodes', 'source_keys']::regclass[])
    order by 1
"""

STRANGE_KEYS = """
    select key, seq
    from source_keys
    where seq < 1 or seq > (select coalesce(max(originator_version), 0) from stored_events)
    order by key
    limit %b
"""

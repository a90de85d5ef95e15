"""The queries that the lake is measured by: in SQL over Parquet, in Polars, and over the tables of the SQLite store."""

from pathlib import Path
from typing import NamedTuple

import polars as pl

from tests.benchmarks.lake_data import MAIL, NEEDLE, REVIEW, SECRET


class Asked(NamedTuple):
    """One question."""

    name: str
    """What it asks."""

    sql: str
    """Over `EVENTS`, Parquet."""

    store: str
    """Over the raw store."""


def questions(session: str) -> list[Asked]:
    """All of them; the first for this session."""
    return [
        Asked(
            "session lookup",
            f"select seq, type, payload from EVENTS where session = '{session}' order by seq",
            "select originator_version, topic, state from stored_events"
            f" where originator_id = '{session}' order by originator_version",
        ),
        Asked(
            "counts by tool",
            "select tool, count(*) as calls from EVENTS where type = 'tool_call.requested'"
            " group by tool order by tool",
            "select json_extract(state, '$.data.tool') as tool, count(*) from stored_events"
            " where topic = 'tool_call.requested' group by 1 order by 1",
        ),
        Asked("forbidden sequence, filtered first", _sequence(_CALLS), _sequence(_RAW_CALLS)),
        Asked("survival curve", _survival(_STEPS), _survival(_RAW_STEPS)),
        Asked(
            "LIKE over all texts",
            f"select count(*) as n from EVENTS where text like '%{NEEDLE}%'",
            f"select count(*) from blobs where unpacked(digest, size, codec, body, checksum) like '%{NEEDLE}%'",
        ),
    ]


_NAMES = f"('{SECRET}', '{MAIL}', '{REVIEW}')"
_CALLS = f"select session, seq, tool from EVENTS where type = 'tool_call.requested' and tool in {_NAMES}"
_RAW_CALLS = (
    "select originator_id as session, originator_version as seq, json_extract(state, '$.data.tool') as tool"
    f" from stored_events where topic = 'tool_call.requested' and json_extract(state, '$.data.tool') in {_NAMES}"
)


def _sequence(calls: str) -> str:
    """A secret was read, and the next of the three calls mails: the rows that matter first, then the window."""
    return (
        f"with calls as ({calls}), pairs as (select session, seq, tool,"
        " lag(tool) over (partition by session order by seq) as before from calls)"
        f" select count(*) as pairs, count(distinct session) as sessions from pairs"
        f" where tool = '{MAIL}' and before = '{SECRET}'"
    )


_STEPS = (
    "select session, seq, type = 'compaction.done' as is_compaction from EVENTS"
    " where type = 'compaction.done' or (type = 'tool_call.settled' and outcome = 'failed')"
)
_RAW_STEPS = (
    "select originator_id as session, originator_version as seq, topic = 'compaction.done' as is_compaction"
    " from stored_events where topic = 'compaction.done'"
    " or (topic = 'tool_call.settled' and json_extract(state, '$.data.outcome') = 'failed')"
)


def _survival(steps: str) -> str:
    """Kaplan and Meier: the share of sessions without a failed call after so many compactions."""
    return (
        f"with steps as ({steps}),"
        " failed as (select session, min(seq) as seq from steps where not is_compaction group by session),"
        " lives as (select steps.session, count(*) filter (where is_compaction"
        " and (failed.seq is null or steps.seq < failed.seq)) as life, max(failed.seq is not null) as died"
        " from steps left join failed on failed.session = steps.session group by steps.session),"
        " ends as (select life, count(*) as gone, sum(cast(died as integer)) as deaths from lives group by life),"
        " risks as (select life, deaths, sum(gone) over (order by life desc) as at_risk from ends)"
        " select life, round(exp(sum(case when deaths < at_risk then ln(1 - 1.0 * deaths / at_risk) else -99 end)"
        " over (order by life)), 6) as survival from risks order by life"
    )


def in_polars(name: str, files: list[Path], session: str) -> pl.DataFrame | None:
    """The same question in Polars, lazily; None where its answer is not worked out there."""
    events = pl.scan_parquet(files, hive_partitioning=False)
    calls = events.filter(pl.col("type") == "tool_call.requested")
    match name:
        case "session lookup":
            found = events.filter(pl.col("session") == session).select("seq", "type", "payload").sort("seq")
        case "counts by tool":
            found = calls.group_by("tool").agg(pl.len().alias("calls")).sort("tool")
        case "forbidden sequence, filtered first":
            found = (
                calls.filter(pl.col("tool").is_in([SECRET, MAIL, REVIEW]))
                .select("session", "seq", "tool")
                .sort("session", "seq")
                .with_columns(pl.col("tool").shift(1).over("session").alias("before"))
                .filter((pl.col("tool") == MAIL) & (pl.col("before") == SECRET))
                .select(pl.len().alias("pairs"), pl.col("session").n_unique().alias("sessions"))
            )
        case "LIKE over all texts":
            found = events.filter(pl.col("text").str.contains(NEEDLE, literal=True)).select(
                pl.len().alias("n")
            )
        case _:
            return None
    return found.collect()

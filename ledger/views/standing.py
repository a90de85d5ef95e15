"""How the constraints of sessions stood, worked out once for each session and read in windows from then on.

To work it out, the whole session is read with its contents; what comes of it is kept in a file beside the store, which
is made again at will. The file holds the words of rules: when content is erased, all of it is forgotten.
"""

import json
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ledger.audit.decay import SessionDecay, decay_report
from ledger.audit.decay.registry import Rule
from ledger.constraints.finding import polarity_of
from ledger.events import Record
from ledger.events.keeping import Erased
from ledger.store import EventStore
from ledger.views.decay import decay_of
from ledger.views.standing_rows import Answer, BreachRow, CutRow, LaneRow, RuleRow, StandRow
from ledger.views.view_file import ViewFile, column

VERSION = 1
"""Number of what the rows mean: another number is another file."""

_LONGEST, _LONGEST_NAME = 4000, 400

_TABLES = """
pragma secure_delete = on;
create table if not exists answers (
    session text primary key,
    seq integer not null,
    rules integer not null,
    lost integer not null,
    cuts integer not null,
    broken integer not null,
    figures text not null
) without rowid;
create table if not exists rules (
    session text not null,
    number integer not null,
    name text not null,
    text text not null,
    modality text not null,
    polarity text not null,
    hardness text not null,
    scope text not null,
    origin text not null,
    seq integer not null,
    withdrawn integer,
    is_declared integer not null,
    is_lost integer not null,
    exposed integer not null,
    broken integer not null,
    calls_without integer not null,
    tokens integer not null,
    request_tokens integer not null,
    primary key (session, number)
) without rowid;
create table if not exists lanes (
    session text not null,
    number integer not null,
    name text not null,
    cuts integer not null,
    primary key (session, number)
) without rowid;
create table if not exists cuts (
    session text not null,
    lane integer not null,
    number integer not null,
    seq integer not null,
    request integer not null,
    is_logged integer not null,
    summary text,
    before integer not null,
    lost integer not null,
    shown integer not null,
    kept integer not null,
    primary key (session, lane, number)
) without rowid;
create index if not exists cuts_by_seq on cuts (session, seq);
create table if not exists stands (
    session text not null,
    lane integer not null,
    rule integer not null,
    is_cut integer not null,
    seq integer not null,
    how text not null,
    digest text,
    is_system integer not null,
    said text not null,
    lost_by integer,
    primary key (session, lane, rule, is_cut, seq)
) without rowid;
create table if not exists breaches (
    session text not null,
    number integer not null,
    rule integer not null,
    seq integer not null,
    tool text not null,
    how text not null,
    why text not null,
    lost_by integer,
    steps integer not null,
    primary key (session, number)
) without rowid;
create table if not exists unclean (only_one integer primary key check (only_one = 1));
"""

_KEPT = ("answers", "rules", "lanes", "cuts", "stands", "breaches")
_RULE = tuple(RuleRow.model_fields)
_STAND = "rule, seq, is_cut, how, digest, is_system, said, lost_by, lane"


class StandingView(ViewFile):
    """The file. Use as a context manager, or call `close()`; `catch_up()` before reading, for what was erased."""

    _names = (Erased.TYPE,)

    def __init__(self, home: Path, store: EventStore) -> None:
        super().__init__(home, store, name=f"standing-v{VERSION}", script=_TABLES, tables=_KEPT)

    # -- keeping ------------------------------------------------------------------------------------------------

    def catch_up(self, progress: Callable[[int], None] = lambda position: None) -> int:
        """Forget what was erased, also in the log of the file."""
        reached = super().catch_up(progress)
        if self._connection.execute("select 1 from unclean").fetchone() is not None:
            is_busy, *_ = self._connection.execute("pragma wal_checkpoint(truncate)").fetchone()
            if not is_busy:
                self._connection.execute("delete from unclean")
        return reached

    def _take(self, record: Record) -> None:
        """Something was erased: rules may have stood in it."""
        self._forget()
        self._connection.execute("insert or ignore into unclean values (1)")

    def work_out(self, session: str, tell: Callable[[int], None] = lambda seq: None) -> Answer:
        """Read a session and keep how its rules stood. What `tell` raises ends it, and nothing is kept."""
        seq = self._store.head(session).seq
        found = decay_of(self._store, session, upto=seq, tell=tell)
        name = column(session)
        with self._transaction():
            for table in _KEPT:
                self._connection.execute(f"delete from {table} where session = ?", (name,))  # noqa: S608
            self._keep(name, seq, found)
        answer = self.answer(session)
        assert answer is not None
        return answer

    def _keep(self, session: str, seq: int, found: SessionDecay) -> None:
        rules = {name: number for number, name in enumerate(found.rules, 1)}
        lost = {name for cut in found.cuts for name in cut.lost}
        lost |= {one.rule for one in found.sightings if one.lost_by is not None}
        broken = [use for use in found.uses if use.is_violation]
        lanes = _lanes(found)
        answer = (session, seq, len(rules), len(lost), len(found.cuts), len(broken), _figures(found))
        self._insert("answers", [answer])
        counts = dict.fromkeys(rules, 0)
        for use in broken:
            counts[use.rule] += 1
        self._insert(
            "rules",
            [
                (
                    session,
                    *_rule_row(rules[name], rule),
                    name in lost,
                    found.exposure.get(name, 0),
                    counts[name],
                    *found.advice.get(name, (0, 0, 0)),
                )
                for name, rule in found.rules.items()
            ],
        )
        cuts = dict.fromkeys(lanes, 0)
        for cut in found.cuts:
            cuts[cut.lane] += 1
        self._insert(
            "lanes",
            [(session, number, column(name[:_LONGEST_NAME]), cuts[name]) for name, number in lanes.items()],
        )
        self._insert(
            "cuts",
            [
                (
                    *(session, lanes[cut.lane], cut.number, cut.seq, cut.request, cut.is_logged, cut.summary),
                    *(len(cut.before), len(cut.lost), cut.all_shown, cut.all_kept),
                )
                for cut in found.cuts
            ],
        )
        seen = (
            (one.lane, one.rule, False, one.seq, one.how, one.where, one.lost_by) for one in found.sightings
        )
        left = (
            (cut.lane, name, True, cut.seq, stand.how, stand.where, None)
            for cut in found.cuts
            for name, stand in cut.stands.items()
        )
        for lane, rule, is_cut, at, how, where, lost_by in chain(seen, left):
            told = (
                (where.digest, where.is_system, column(where.said[:_LONGEST_NAME]))
                if where
                else (None, False, "")
            )
            row = (session, lanes[lane], rules[rule], is_cut, at, how, *told, lost_by)
            self._insert("stands", [row])
        self._insert(
            "breaches",
            [
                (
                    *(session, number, rules[use.rule], use.seq, column(use.tool[:_LONGEST_NAME])),
                    *(use.how, use.why, use.lost_by, use.steps),
                )
                for number, use in enumerate(broken)
            ],
        )

    def _insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"insert or replace into {table} values ({marks})", rows)  # noqa: S608

    # -- reading ------------------------------------------------------------------------------------------------

    def answer(self, session: str) -> Answer | None:
        """What was worked out of a session; None where nobody did."""
        found = self._connection.execute(
            "select seq, rules, lost, cuts, broken, figures from answers where session = ?",
            (column(session),),
        ).fetchone()
        return None if found is None else Answer._make(found)

    def rules(self, session: str, first: int, count: int, *, lost: bool = False) -> list[RuleRow]:
        """So many rules from a number on; `lost`: of those that could be seen and then no longer."""
        return self._rules(
            f"session = ? and number >= ?{' and is_lost' if lost else ''}", (session, first), count
        )

    def rules_before(self, session: str, first: int, count: int, *, lost: bool = False) -> int:
        """The number from which on so many rules come before a number; that number where there are none."""
        found = self._connection.execute(
            "select min(number) from (select number from rules where session = ? and number < ?"  # noqa: S608
            f"{' and is_lost' if lost else ''} order by number desc limit ?)",
            (column(session), first, count),
        ).fetchone()
        return first if found[0] is None else int(found[0])

    def exposed(self, session: str, count: int) -> list[RuleRow]:
        """Rules that were lost while the loop went on, those with most calls first."""
        return self._rules(
            "session = ? and (exposed or calls_without)",
            (session,),
            count,
            "exposed desc, calls_without desc, number",
        )

    def named(self, session: str, numbers: Sequence[int]) -> dict[int, RuleRow]:
        """Rules by their numbers."""
        marks = ", ".join("?" * len(numbers))
        found = self._rules(f"session = ? and number in ({marks})", (session, *numbers), len(numbers))
        return {row.number: row for row in found}

    def _rules(
        self, condition: str, values: tuple[Any, ...], count: int, order: str = "number"
    ) -> list[RuleRow]:
        session, *others = values
        found = self._connection.execute(
            f"select {', '.join(_RULE)} from rules where {condition} order by {order} limit ?",  # noqa: S608
            (column(session), *others, count),
        )
        return [RuleRow(**dict(zip(_RULE, row, strict=True))) for row in found]

    def lanes(self, session: str, count: int) -> list[LaneRow]:
        """The conversations of a session."""
        found = self._connection.execute(
            "select number, name, cuts from lanes where session = ? order by number limit ?",
            (column(session), count),
        )
        return list(map(LaneRow._make, found))

    def cuts(self, session: str, lane: int, first: int, count: int) -> list[CutRow]:
        """So many cuts of a conversation, from a number on."""
        found = self._connection.execute(
            "select number, seq, request, is_logged, summary, before, lost, shown, kept from cuts"
            " where session = ? and lane = ? and number >= ? order by number limit ?",
            (column(session), lane, first, count),
        )
        return list(map(CutRow._make, found))

    def cut_at(self, session: str, seq: int, lane: int | None = None) -> tuple[int, int] | None:
        """Conversation and number of the cut at a record, else of the next one; None where there is none."""
        in_lane, values = ("", []) if lane is None else (" and lane = ?", [lane])
        found = self._connection.execute(
            f"select lane, number from cuts where session = ? and seq >= ?{in_lane} order by seq limit 1",  # noqa: S608
            (column(session), seq, *values),
        ).fetchone()
        return None if found is None else (int(found[0]), int(found[1]))

    def left(self, session: str, lane: int, rules: Sequence[int], first: int, last: int) -> list[StandRow]:
        """How some rules stood in what the cuts of a conversation left, from one seq to another."""
        marks = ", ".join("?" * len(rules))
        return self._stands(
            f"session = ? and lane = ? and rule in ({marks}) and is_cut and seq between ? and ?",
            (column(session), lane, *rules, first, last),
        )

    def ends(self, session: str, lane: int, rules: Sequence[int]) -> dict[int, tuple[StandRow, StandRow]]:
        """How some rules stood in the requests of a conversation, at first and now."""
        found: dict[int, tuple[StandRow, StandRow]] = {}
        for rule in rules:
            one, values = (
                "session = ? and lane = ? and rule = ? and not is_cut",
                (column(session), lane, rule),
            )
            first = self._stands(one, values, "seq limit 1")
            if first:
                found[rule] = first[0], self._stands(one, values, "seq desc limit 1")[0]
        return found

    def history(self, session: str, rule: int, count: int) -> list[StandRow]:
        """How a rule stood, whenever that changed, and in what cuts left; the first of it."""
        return self._stands(
            "session = ? and rule = ?", (column(session), rule), f"seq, is_cut desc, lane limit {count:d}"
        )

    def at(self, session: str, rule: int, seq: int, *, is_cut: bool) -> StandRow | None:
        """How a rule stood at one place."""
        found = self._stands(
            "session = ? and rule = ? and is_cut = ? and seq = ?",
            (column(session), rule, is_cut, seq),
            "lane limit 1",
        )
        return found[0] if found else None

    def _stands(self, condition: str, values: Sequence[Any], order: str = "seq, rule") -> list[StandRow]:
        found = self._connection.execute(
            f"select {_STAND} from stands where {condition} order by {order}",  # noqa: S608 - our own conditions
            values,
        )
        return list(map(StandRow._make, found))

    def breaches(self, session: str, first: int, count: int, *, rule: int | None = None) -> list[BreachRow]:
        """So many calls that broke a rule, or any rule, after the first ones."""
        of_rule, values = ("", []) if rule is None else (" and rule = ?", [rule])
        found = self._connection.execute(
            "select rule, seq, tool, how, why, lost_by, steps from breaches"  # noqa: S608
            f" where session = ?{of_rule} order by number limit ? offset ?",
            (column(session), *values, count, first),
        )
        return list(map(BreachRow._make, found))


def _lanes(found: SessionDecay) -> dict[str, int]:
    """A number for each conversation: those that were shortened most often come first, then as they came."""
    cuts: dict[str, int] = {}
    for one in found.sightings:
        cuts.setdefault(one.lane, 0)
    for cut in found.cuts:
        cuts[cut.lane] = cuts.get(cut.lane, 0) + 1
    return {name: number for number, name in enumerate(sorted(cuts, key=lambda name: -cuts[name]))}


def _rule_row(number: int, rule: Rule) -> tuple[Any, ...]:
    return (
        *(number, column(rule.name[:_LONGEST_NAME]), column(rule.text[:_LONGEST])),
        *(
            rule.modality,
            polarity_of(rule.text[:_LONGEST]),
            rule.hardness,
            column((rule.scope or "")[:_LONGEST_NAME]),
        ),
        *(rule.origin, rule.seq, rule.withdrawn, rule.is_declared),
    )


def _figures(found: SessionDecay) -> str:
    told = decay_report([found]).as_json()
    pinning = {name: value for name, value in told["pinning"].items() if name != "advice"}
    return json.dumps(
        {
            "violations": told["violations"],
            "half_life": told["half_life"],
            "exposure": told["exposure"],
            "pinning": pinning,
        }
    )

"""The list of findings beside the store: kept up, remade, the same as what reading all events gives."""

from pathlib import Path

from ledger.audit import SEVERITIES
from ledger.events import Actor, Draft
from ledger.events.review import FindingRaised, NoteWritten, VerdictGiven
from ledger.home import Ledger, open_ledger
from ledger.views.finding_rows import FindingRow, Sought
from ledger.views.findings import Verdict, kept, measured
from ledger.views.findings_list import FindingsView

VERDICTS: tuple[Verdict, ...] = ("confirmed", "dismissed", "accepted_risk", "duplicate")


def fill(ledger: Ledger, count: int, start: int = 0) -> None:
    """Findings of three detectors in seven sessions, some of them judged, some twice, some raised again."""
    keeper = ledger.recorder.keeper()
    text = keeper.text("look")
    for number in range(start, start + count):
        session = f"s{number % 7}"
        raised = FindingRaised(
            finding_id=f"f{number - number % 10 if number % 10 == 9 else number}",
            detector=("one", "two.part", "three")[number % 3],
            severity=SEVERITIES[number % len(SEVERITIES)],
            witnesses=(f"{session}#1",),
            message=text,
        )
        drafts = [Draft(raised, actor=Actor("system", "audit"))]
        for turn in range(number % 3):
            verdict = VERDICTS[(number + turn) % len(VERDICTS)]
            drafts.append(
                Draft(VerdictGiven(finding_id=f"f{number}", verdict=verdict), actor=Actor("human", "bo"))
            )
        drafts.append(Draft(NoteWritten(about=f"{session}#1", text=text), actor=Actor("human", "ana")))
        ledger.recorder.append(session, drafts, keeper)


def told(view: FindingsView) -> list[object]:
    """All that a view tells."""
    rows = view.rows(Sought(), 1000)
    return [
        rows,
        view.groups(Sought()),
        view.riskiest(20),
        view.measured(),
        [view.verdicts(row.id, 9) for row in rows],
    ]


def test_it_tells_what_reading_all_events_gives(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger, FindingsView(ledger.home, ledger.store) as view:
        fill(ledger, 80)
        view.catch_up()
        found = kept(ledger.store)
        rows = sorted(view.rows(Sought(), 1000), key=lambda row: row.number)
        assert [(row.id, row.session, row.detector, row.verdict or None) for row in rows] == [
            (one.id, one.session, one.detector, one.verdict) for one in found
        ]
        assert {
            name: (one.runs, one.findings, one.precision.hits, one.precision.of)
            for name, one in measured(found).items()
        } == view.measured()
        assert view.count(Sought()) == sum(group.total for group in view.groups(Sought())) == len(found)


def test_kept_up_piece_by_piece_it_is_the_same_as_made_at_once(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger, FindingsView(ledger.home, ledger.store) as view:
        for start in range(0, 60, 20):
            fill(ledger, 20, start)
            view.catch_up()
        before = told(view)
        view.rebuild()
        assert told(view) == before


def test_pages_of_the_list_follow_each_other_without_loss(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger, FindingsView(ledger.home, ledger.store) as view:
        fill(ledger, 60)
        view.catch_up()
        whole, pages = view.rows(Sought(), 1000), list[FindingRow]()
        after: tuple[int, ...] = ()
        while page := view.rows(Sought(), 7, after):
            pages += page
            after = (SEVERITIES.index(page[-1].severity), page[-1].number)
        assert pages == whole


def test_filters_leave_out_what_they_say(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger, FindingsView(ledger.home, ledger.store) as view:
        fill(ledger, 60)
        view.catch_up()
        rows = view.rows(Sought(), 1000)
        for sought, fits in (
            (Sought(detector="two"), lambda row: row.detector == "two.part"),
            (Sought(severity="high"), lambda row: row.severity == "high"),
            (Sought(session="s3"), lambda row: row.session == "s3"),
            (Sought(state="open"), lambda row: not row.verdict),
            (Sought(state="judged"), lambda row: row.verdict),
            (Sought(state="dismissed"), lambda row: row.verdict == "dismissed"),
        ):
            assert view.rows(sought, 1000) == [row for row in rows if fits(row)]
            assert view.count(sought) == len([row for row in rows if fits(row)])

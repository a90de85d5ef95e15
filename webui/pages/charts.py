"""/sessions/S/charts: how a session went along its records, drawn from the lists without loading a content."""

from webui.charting import Chart, Marks, burn, drift, risk
from webui.dependencies import LedgerDep, ListsDep, SessionDep
from webui.page import Context, Page
from webui.rule_chart import rule_chart

page = Page("Charts", link="/sessions/{session}/charts", order=75)


class ChartsContext(Context):
    """What charts.html may use."""

    session: str
    """Its id."""
    charts: list[Chart]
    """The charts: tools, budget, risk, rules."""
    total: int
    """Records of the session."""
    behind: int
    """Records that the lists do not show yet."""


@page.view("/sessions/{session}/charts", template="charts.html")
def charts(ledger: LedgerDep, lists: ListsDep, session: SessionDep) -> ChartsContext:
    """Which tools were used, what was spent, where risk lay, which rules were in force."""
    with lists.events() as view:
        marks = Marks.of(view, session)
        drawn = [
            risk(view, session, marks),
            *burn(ledger.store, view, session, marks),
            *drift(view, session, marks),
            rule_chart(ledger.store, session, marks),
        ]
        total = view.head(session)
    return ChartsContext(
        session=session,
        charts=[chart for chart in drawn if chart is not None],
        total=total,
        behind=lists.behind(),
    )

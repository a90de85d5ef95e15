"""A timeline of 100,000 events in a real Chromium: CPU of its main thread, size of the page, stretches without rows."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from playwright.sync_api import CDPSession, Page, sync_playwright

from tests.benchmarks.measure import Result
from tests.browser.chromium import chromium
from tests.browser.conftest import open_tab
from tests.webui.long_session import LONG, fill_long
from tests.webui.site import served_site, site

_EVENTS = 100_000
_JUMPS = 9
_MOST_CPU_MS, _MOST_NODES = 150, 4_000
_SCROLL = """
() => new Promise((done) => {
  const box = document.querySelector("#timeline"), start = performance.now(), from = box.scrollTop;
  let samples = 0, blank = 0;
  const step = (now) => {
    const past = now - start;
    box.scrollTop = from + past * 1.5;
    const frame = box.getBoundingClientRect();
    for (const part of [0.1, 0.5, 0.9]) {
      samples++;
      const at = document.elementFromPoint(frame.left + 60, frame.top + frame.height * part);
      if (!at?.closest("li")) blank++;
    }
    if (past < 5000) requestAnimationFrame(step); else done({ samples, blank });
  };
  requestAnimationFrame(step);
})
"""


def run() -> Iterator[Result]:
    """The lines of this part."""
    with (
        tempfile.TemporaryDirectory() as folder,
        site(Path(folder), fill=partial(fill_long, events=_EVENTS), lake=False) as shop,
        served_site(shop) as address,
        sync_playwright() as playwright,
    ):
        shop.client().get(f"/sessions/{LONG}/events")
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        _, tab = open_tab(browser, shop, address)
        page = tab.page
        yield from _loaded(page, f"{address}/sessions/{LONG}/events")
        browser.close()


def _loaded(page: Page, address: str) -> Iterator[Result]:
    page.goto(address)  # the first time a browser also reads styles and scripts
    loads, jumps, nodes = [], [], 0
    for place in range(3):
        fresh = page.context.new_page()
        session = _measured(fresh)
        fresh.goto(f"{address}?at={place * _EVENTS // 4 + 1}")
        fresh.locator(".placed").wait_for()
        fresh.wait_for_load_state("networkidle")
        loads.append(_cpu_ms(session))
        fresh.close()
    session = _measured(page)
    for place in range(1, _JUMPS + 1):
        started = _cpu_ms(session)
        seq = place * _EVENTS // (_JUMPS + 1)
        page.evaluate(
            "part => { const box = document.querySelector('#timeline'); box.scrollTop = part * box.scrollHeight }",
            (seq - 1) / _EVENTS,
        )
        page.locator(f'.ev[href="/sessions/{LONG}/events/{seq}"]').wait_for(state="attached")
        page.wait_for_load_state("networkidle")
        jumps.append(_cpu_ms(session) - started)
        nodes = max(nodes, int(page.evaluate("() => document.querySelectorAll('*').length")))
    load, jump = sorted(loads)[1], sorted(jumps)[_JUMPS // 2]
    aim = f"<= {_MOST_CPU_MS} ms"
    yield Result(
        "100,000 events: a page loaded, main thread", f"{load:.0f} ms CPU", aim, load <= _MOST_CPU_MS
    )
    yield Result("100,000 events: a jump, main thread", f"{jump:.0f} ms CPU", aim, jump <= _MOST_CPU_MS)
    yield Result("100,000 events: nodes of the page", str(nodes), f"<= {_MOST_NODES}", nodes <= _MOST_NODES)
    seen = page.evaluate(_SCROLL)
    share = 100 * seen["blank"] / seen["samples"]
    yield Result(
        "100,000 events: places without a row, scrolled at 1,500 px/s", f"{share:.1f} %", "0 %", share == 0
    )


def _measured(page: Page) -> CDPSession:
    """A tab whose main thread is measured from now on."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


def _cpu_ms(session: CDPSession) -> float:
    """What the main thread of the tab has used."""
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"]) * 1000

// Shortens the way of links and forms. Pages work without it.
(() => {
  "use strict";
  const one = (what, where = document) => where.querySelector(what);
  const on = (what, name, act) => what.addEventListener(name, act);
  const root = document.documentElement, box = one("#timeline"), detail = one("#detail");
  const canvas = box && one(".canvas", box), told = box ? box.dataset : {};
  const wins = new Map();
  let size, rows, high, bounds, timer, lastTop = 0, lastTime = 0;

  // One stop of the tab key: the open row.
  const mark = () => {
    for (const row of box.querySelectorAll(".ev")) {
      const here = row.pathname === location.pathname;
      row.ariaCurrent = here ? "true" : null;
      row.tabIndex = here ? 0 : -1;
    }
    const first = one(".ev", box);
    if (first && !one(".ev[tabindex='0']", box)) first.tabIndex = 0;
  };
  const get = (url, target, push) => htmx.ajax("GET", url, { source: target, target, swap: "innerHTML", push });
  const open = async (link, focus) => {
    await get(link, detail, link);
    detail.scrollTop = 0;
    one("h2", detail)?.scrollIntoView({ block: "nearest" });
    mark();
    if (focus) one("h2", detail)?.focus();
  };

  // Windows of fifty rows, at most eight.
  const put = (list, number) => {
    list.style.transform = `translateY(${number * size * high}px)`;
    wins.set(number, list);
  };
  const load = (number) => {
    const known = wins.get(number);
    if (known) return known.ready;
    const list = document.createElement("ol");
    list.className = "win";
    list.dataset.window = number;
    list.start = number * size + 1;
    put(list, number);
    canvas.append(list);
    list.ready = get(`${told.rows}&from=${bounds ? bounds[number] : list.start}`, list).then(mark);
    return list.ready;
  };
  const fill = () => {
    const at = Math.floor(box.scrollTop / high / size);
    const end = Math.min(Math.ceil(rows / size) - 1, Math.floor((box.scrollTop + box.clientHeight) / high / size) + 1);
    for (let number = Math.max(0, at - 1); number <= end; number++) load(number);
    for (const number of [...wins.keys()].sort((a, b) => Math.abs(b - at) - Math.abs(a - at))) {
      const list = wins.get(number);
      if (wins.size > 8 && !list.contains(document.activeElement)) { list.remove(); wins.delete(number); }
    }
  };
  const scrolled = () => {
    const now = performance.now(), top = box.scrollTop;
    const isFast = Math.abs(top - lastTop) / (now - lastTime + 1) > size * high / 50;
    lastTop = top; lastTime = now;
    if (timer && !isFast) return;
    clearTimeout(timer);
    timer = setTimeout(() => { timer = 0; fill(); }, isFast ? 80 : 30);
  };
  const start = async () => {
    size = +told.size; rows = +told.shown;
    if (told.bounds) {
      const found = await (await fetch(told.bounds)).json();
      if (found.is_cut) return;
      bounds = found.bounds;
    }
    const first = one(".win", canvas), number = +first.dataset.window, here = one("[aria-current]", first);
    high = one("li", first).offsetHeight;
    canvas.classList.add("placed");
    canvas.style.height = `${rows * high}px`;
    put(first, number);
    box.scrollTop = number * size * high + (here ? here.parentNode.offsetTop - box.clientHeight / 2 : 0);
    on(box, "scroll", scrolled);
    fill();
  };
  const go = async (place) => {
    place = Math.max(0, Math.min(rows - 1, place));
    const number = Math.floor(place / size);
    await load(number);
    const row = wins.get(number)?.children[place % size];
    row?.firstChild.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  };
  const step = (by) => {
    const row = (document.activeElement.closest(".ev") || one(".ev[aria-current]", box))?.parentNode;
    const list = row?.closest(".canvas ol");
    go(list ? list.dataset.window * size + [...list.children].indexOf(row) + by : Math.floor(box.scrollTop / high));
  };

  // The live tail.
  const follow = () => {
    const live = one("#live");
    let count = 0;
    box.scrollTop = box.scrollHeight;
    new MutationObserver((changes) => {
      const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 400;
      for (const change of changes) count += [...change.addedNodes].filter((node) => node.nodeName === "LI").length;
      while (live.children.length > 500) live.firstElementChild.remove();
      one("#news").textContent = `${count} new events`;
      if (isAtEnd) box.scrollTop = box.scrollHeight;
    }).observe(live, { childList: true });
  };

  // Keys: a step, or the element with this data-key.
  const moves = { j: () => step(1), k: () => step(-1), J: () => step(10), K: () => step(-10), g: () => go(0), G: () => go(rows - 1) };
  on(document, "keydown", (event) => {
    const { key, target } = event, isTyping = target.closest("input, select, textarea");
    if (isTyping && key === "Escape") target.blur();
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || root.dataset.keys === "off") return;
    const there = one(`[data-key="${CSS.escape(key)}"]`);
    if (high && moves[key]) moves[key]();
    else if (there) there.select ? there.select() : there.click();
    else return;
    event.preventDefault();
  });

  // A folder on the field for files: the browser cannot send it, and would show an error page of its own.
  on(document, "change", async ({ target }) => {
    if (target.type !== "file") return;
    const read = await Promise.allSettled([...target.files].map((file) => file.slice(0, 1).arrayBuffer()));
    const isBad = read.some((one) => one.status === "rejected");
    target.setCustomValidity(isBad ? "This is a folder, or a file that cannot be read: folders go into the other field." : "");
    if (isBad) target.reportValidity();
  });

  if (!window.htmx) return;
  for (const name of ["htmx:error", "htmx:response:error"]) {
    on(document, name, () => { one("#toast").textContent = "The server did not give this. Load the page again."; });
  }
  if (!box) return;
  on(box, "click", (event) => {
    const row = event.target.closest(".ev");
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(row.getAttribute("href"), !event.detail);
  });
  on(window, "popstate", () => setTimeout(mark, 300));
  on(document, "htmx:after:swap", () => mark());
  const map = one("[data-map]");
  on(map, "click", (event) => {
    if (high && !bounds) box.scrollTop = (event.clientX - map.getBoundingClientRect().left) / map.clientWidth * rows * high;
  });
  if ("follow" in told) follow(); else if (canvas) start();
  mark();
})();

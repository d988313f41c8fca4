"use strict";
/* The timeline of a run: lanes of events and sensors over one time axis. Each zoom asks the API for the part in view. */
(() => {
  const box = document.getElementById("timeline"), state = document.getElementById("timeline-state");
  if (!box) return;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const LANE = 24, HEAD = 18, SENSOR = 70, AXIS = 26, WAIT = 60, MIN_SPAN = 20;
  const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const time = (ns) => { const [size, unit] = UNITS.find(([least]) => Math.abs(ns) >= least) ?? UNITS[3]; return `${+(ns / size).toPrecision(6)} ${unit}`; };
  const count = (n) => n.toLocaleString("en").replaceAll(",", "\u202f");
  const counted = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
  const fail = (error) => { state.textContent = error.message; };
  const cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

  let view = null, from = 0, to = 1, rows = [], chosen = null, waiting = 0, asked = 0, last = null, isFramed = false;
  let sought = null, wanted = null, searched = 0;
  const canvas = document.createElement("canvas"), tip = document.createElement("div"), said = document.createElement("p");
  tip.className = "chart-tip";
  tip.hidden = true;
  said.className = "visually-hidden";
  said.setAttribute("aria-live", "polite");
  /* In a narrow window, and where groups have the names of files, a group has a line of its own above its lanes. */
  const isNarrow = () => box.clientWidth < 600, hasHeads = () => isNarrow() || view.lanes.some((one) => one.group.length > 16);
  const labels = () => (isNarrow() ? Math.min(132, box.clientWidth * .36) : Math.min(230, box.clientWidth * .3)), width = () => box.clientWidth - labels();
  const toX = (ns) => labels() + (ns - from) / (to - from) * width(), toNs = (x) => from + (x - labels()) / width() * (to - from);

  const ask = async (address) => {
    const answer = await fetch(address, { headers: { accept: "application/json" } }), body = await answer.json();
    if (!answer.ok) throw new Error(body.error.message);
    return body;
  };
  const read = async () => {
    const number = ++asked, address = new URL(box.dataset.source, location.href);
    if (view) { address.searchParams.set("from", Math.floor(from)); address.searchParams.set("to", Math.ceil(to)); }
    address.searchParams.set("columns", Math.max(50, Math.min(1200, Math.round(width()))));
    const body = await ask(address);
    if (number !== asked) return;
    const isFirst = !view;
    view = body;
    if (isFirst) { [from, to] = [view.from_ns, view.to_ns]; begin(); }
    lay();
    paint();
    list();
    listNames();
    if (wanted) reveal();
    box.dataset.shown = `${Math.round(from)}-${Math.round(to)}`;
  };
  const lay = () => {
    let top = AXIS, group = "";
    rows = view.lanes.map((lane) => {
      const head = lane.group === group ? "" : lane.group;
      if (head && hasHeads()) top += HEAD;
      const row = { lane, top, height: LANE, head };
      group = lane.group;
      top += LANE;
      return row;
    });
    rows.push(...view.sensors.map((sensor) => { const row = { sensor, top: top + 6, height: SENSOR - 6 }; top += SENSOR; return row; }));
    canvas.style.height = `${top + 4}px`;
  };
  const paint = () => {
    if (isFramed) return;
    isFramed = true;
    requestAnimationFrame(() => { isFramed = false; draw(); });
  };
  const draw = () => {
    const ratio = devicePixelRatio, wide = box.clientWidth, high = parseFloat(canvas.style.height);
    if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) [canvas.width, canvas.height] = [wide * ratio, high * ratio].map(Math.round);
    const g = canvas.getContext("2d"), colours = [0, 1, 2, 3, 4].map((n) => css(`lines-${n}`)), [ink, muted, line, back] = ["ink", "muted", "line", "back"].map(css);
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, wide, high);
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    const lit = view.names.map((name) => !sought || name.toLowerCase().includes(sought.text.toLowerCase()));
    const left = labels(), step = [1, 2, 5].flatMap((k) => [...Array(19).keys()].map((n) => k * 10 ** n)).sort((a, b) => a - b).find((s) => s / (to - from) * width() > 110) ?? to - from;
    g.textAlign = "center";
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = toX(at);
      g.fillStyle = line;
      g.fillRect(x, AXIS - 6, 1, high);
      g.fillStyle = muted;
      if (x > left + 20 && x < wide - 30) g.fillText(time(at), x, 9);
    }
    for (const row of rows) {
      if (row.head && hasHeads()) {
        g.fillStyle = muted;
        g.textAlign = "left";
        g.fillText(row.head, 2, row.top - HEAD / 2);
      }
      g.fillStyle = line;
      g.fillRect(0, row.top + row.height - 1, wide, 1);
      g.save();
      g.beginPath();
      g.rect(0, row.top, left - 6, row.height);
      g.clip();
      g.textAlign = "left";
      g.fillStyle = row.lane ? ink : muted;
      const head = hasHeads() ? "" : row.head ? `${row.head} · ` : "    ";
      g.fillText(row.lane ? `${head}${row.lane.title}` : `${row.sensor.name} (${row.sensor.unit})`, 2, row.top + row.height / 2);
      g.restore();
      g.save();
      g.beginPath();
      g.rect(left, row.top, width(), row.height);
      g.clip();
      if (row.lane) events(g, row, colours, back, lit); else sensor(g, row, colours, muted);
      g.restore();
    }
    if (chosen && chosen.row.lane) {
      const { row, at } = chosen, x = toX(row.lane.start_ns[at]);
      g.strokeStyle = ink;
      g.lineWidth = 2;
      g.strokeRect(Math.max(left, x), row.top + 2, Math.max(3, Math.min(wide, toX(row.lane.end_ns[at])) - Math.max(left, x)), LANE - 5);
    }
  };
  const hue = (name) => { let n = 0; for (const c of name) n = (n * 31 + c.charCodeAt(0)) % 9973; return n % 5; };
  const events = (g, { lane, top }, colours, back, lit) => {
    for (let i = 0; i < lane.start_ns.length; i += 1) {
      const x = toX(lane.start_ns[i]), w = Math.max(1, toX(lane.end_ns[i]) - x), one = lane.events[i] === 1;
      const share = one ? 1 : Math.max(.1, Math.min(1, lane.busy_ns[i] / (lane.end_ns[i] - lane.start_ns[i])));
      g.fillStyle = colours[hue(view.names[lane.name[i]])];
      g.globalAlpha = lit[lane.name[i]] ? one ? .85 : .6 : .15;
      g.fillRect(x, top + 3 + (1 - share) * (LANE - 7), one && w > 3 ? w - 1 : w, share * (LANE - 7));
      g.globalAlpha = 1;
      if (one && w > 40) {
        g.fillStyle = back;
        g.textAlign = "left";
        g.fillText(cut(view.names[lane.name[i]], Math.floor((w - 8) / 7)), Math.max(x, labels()) + 4, top + LANE / 2);
      }
    }
  };
  const sensor = (g, row, colours, muted) => {
    const { time_ns: at, value, quantity } = row.sensor;
    if (!at.length) return;
    const low = Math.min(...value), high = Math.max(...value), y = (v) => row.top + 6 + (1 - (high > low ? (v - low) / (high - low) : .5)) * (row.height - 14);
    g.strokeStyle = quantity === "temperature" ? css("hot-0") : colours[0];
    g.lineWidth = 1.4;
    g.beginPath();
    at.forEach((ns, i) => (i ? g.lineTo(toX(ns), y(value[i])) : g.moveTo(toX(ns), y(value[i]))));
    g.stroke();
    g.fillStyle = muted;
    g.textAlign = "right";
    g.fillText(`${+high.toPrecision(4)}`, box.clientWidth - 4, row.top + 9);
    g.fillText(`${+low.toPrecision(4)}`, box.clientWidth - 4, row.top + row.height - 9);
  };

  /* What is said of an item, and where it leads. */
  const lines = ({ row, at }) => {
    if (row.sensor) return [`${row.sensor.name}: ${+row.sensor.value[at].toPrecision(5)} ${row.sensor.unit}`, `at ${time(row.sensor.time_ns[at])}`];
    const { lane } = row, name = cut(view.names[lane.name[at]], 90), length = lane.end_ns[at] - lane.start_ns[at];
    if (lane.events[at] === 1) return [name, `${time(lane.busy_ns[at])}, at ${time(lane.start_ns[at])}`, `${lane.group} ${lane.title}`];
    return [`${counted(lane.events[at], "event")}, busy ${+(100 * lane.busy_ns[at] / length).toPrecision(3)} % of ${time(length)}`, `longest: ${name}`, `${lane.group} ${lane.title}`];
  };
  const choose = (next, aloud) => {
    chosen = next;
    tip.hidden = !next;
    if (next) {
      const text = lines(next), start = next.row.lane ? next.row.lane.start_ns[next.at] : next.row.sensor.time_ns[next.at];
      tip.replaceChildren(...text.map((line) => Object.assign(document.createElement("div"), { textContent: line })));
      const x = Math.max(labels(), Math.min(box.clientWidth, next.x ?? toX(start)));
      tip.style.left = `${Math.max(0, Math.min(x + 10, box.clientWidth - tip.offsetWidth - 4))}px`;
      tip.style.top = `${next.row.top + next.row.height + 4}px`;
      if (aloud) said.textContent = text.join(", ");
    }
    canvas.style.cursor = next?.row.lane?.number[next.at] ? "pointer" : "crosshair";
    paint();
  };
  const follow = () => { const number = chosen?.row.lane?.number[chosen.at]; if (number) location.href = `${box.dataset.run}/launches/${number}`; };
  const nearest = (values, ns) => { let low = 0, high = values.length; while (low < high) { const middle = (low + high) >> 1; if (values[middle] <= ns) low = middle + 1; else high = middle; } return low - 1; };
  const itemAt = (x, y) => {
    const row = rows.find((one) => y >= one.top && y < one.top + one.height);
    if (!row || x < labels()) return null;
    const ns = toNs(x), slack = 3 / width() * (to - from);
    if (row.sensor) { const at = Math.max(0, nearest(row.sensor.time_ns, ns)); return row.sensor.time_ns.length ? { row, at, x } : null; }
    const at = nearest(row.lane.start_ns, ns + slack);
    return at >= 0 && row.lane.end_ns[at] >= ns - slack ? { row, at, x } : null;
  };

  const go = (a, b) => {
    const span = Math.max(MIN_SPAN, b - a), whole = view.length_ns;
    [from, to] = span >= whole ? [0, whole] : [Math.max(0, Math.min(a, whole - span)), 0];
    if (!to) to = from + span;
    choose(null);
    paint();
    list();
    clearTimeout(waiting);
    waiting = setTimeout(() => read().catch(fail), WAIT);
  };
  const zoomBy = (factor, at = (from + to) / 2) => go(at - (at - from) / factor, at + (to - at) / factor);
  const moveBy = (share) => go(from + share * (to - from), to + share * (to - from));
  const step = (by) => {
    const row = chosen?.row ?? rows[0], n = (row.lane?.start_ns ?? row.sensor.time_ns).length;
    if (n) choose({ row, at: chosen ? Math.max(0, Math.min(n - 1, chosen.at + by)) : by > 0 ? 0 : n - 1 }, true);
  };
  const lane = (by) => {
    const filled = rows.filter((row) => (row.lane?.start_ns ?? row.sensor.time_ns).length);
    const row = filled[Math.max(0, Math.min(filled.length - 1, (chosen ? filled.indexOf(chosen.row) : -1) + by))];
    if (!row) return;
    const old = chosen ? (chosen.row.lane?.start_ns ?? chosen.row.sensor.time_ns)[chosen.at] : from;
    choose({ row, at: Math.max(0, nearest(row.lane?.start_ns ?? row.sensor.time_ns, old)) }, true);
  };
  const KEYS = {
    ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowDown: () => lane(1), ArrowUp: () => lane(-1), Enter: follow,
    "+": () => zoomBy(2, middle()), "=": () => zoomBy(2, middle()), w: () => zoomBy(2, middle()), "-": () => zoomBy(.5), s: () => zoomBy(.5),
    a: () => moveBy(-.25), d: () => moveBy(.25), 0: () => go(0, view.length_ns), Escape: () => go(0, view.length_ns),
  };
  const middle = () => chosen?.row.lane ? (chosen.row.lane.start_ns[chosen.at] + chosen.row.lane.end_ns[chosen.at]) / 2 : undefined;

  /* The tables beside the drawing: what ran in view by name, and each lane with its sums in view. */
  const fill = (id, label, caption, head, lines) => {
    const table = document.createElement("table"), wide = document.createElement("div");
    table.createCaption().textContent = caption;
    const cells = (row, texts, kind) => texts.forEach((text, n) => row.append(Object.assign(document.createElement(kind), { textContent: text, className: n ? "n" : "", ...(kind === "th" ? { scope: "col" } : {}) })));
    cells(table.createTHead().insertRow(), head, "th");
    const body = table.createTBody();
    lines.forEach((texts) => cells(body.insertRow(), texts, "td"));
    wide.className = "wide";
    wide.tabIndex = 0;
    wide.setAttribute("role", "region");
    wide.setAttribute("aria-label", label);
    wide.append(table);
    document.getElementById(id).replaceChildren(wide);
    table.dispatchEvent(new Event("tableadded", { bubbles: true }));
  };
  const listNames = () => {
    const span = `from ${time(view.from_ns)} to ${time(view.to_ns)}`, more = view.names_in_span - view.by_name.length;
    fill("timeline-names", "What ran in view, by name", `What ran ${span}, by name${more > 0 ? `; ${counted(more, "more name")} took less` : ""}`,
      ["Name", "What", "Events", "Time in view", "Share of the view", "Mean in view"],
      view.by_name.map((one) => [one.name, one.kind, count(one.events), time(one.time_ns),
        `${+(100 * one.time_ns / (view.to_ns - view.from_ns)).toPrecision(3)} %`, time(one.time_ns / one.events)]));
  };
  const list = () => {
    const lines = view.lanes.map((one) => {
      let events = 0, busy = 0;
      one.events.forEach((n, i) => { events += n; busy += n === 1 ? Math.max(0, Math.min(to, one.end_ns[i]) - Math.max(from, one.start_ns[i])) : one.busy_ns[i]; });
      return [`${one.group} ${one.title}`, count(one.of), count(events), time(busy), `${+(100 * busy / (to - from)).toPrecision(3)} %`];
    });
    fill("timeline-table", "Lanes of the timeline", `Lanes from ${time(from)} to ${time(to)}`, ["Lane", "Events in all", "Events in view", "Busy in view", "Share of the view"], lines);
    const missing = [view.sessions > 1 && `${count(view.sessions)} recordings began at different times; ${view.aligned ? "each is drawn where it began, by the clock of its host" : "each is drawn from its own begin"}`, view.untimed && `not shown: ${counted(view.untimed, "event")} without a start time`, view.left_out && `not shown: ${counted(view.left_out, "event")} of further lanes`].filter(Boolean);
    state.textContent = [`${counted(view.events, "event")} in ${time(view.length_ns)}; in view: ${time(from)} to ${time(to)}`, ...missing].join(". ");
  };

  /* Events by a part of their name: how many, and from one to the next. */
  const form = document.getElementById("timeline-search"), input = form.elements.text, output = form.querySelector("output");
  const seek = async (by) => {
    const text = input.value.trim(), address = new URL(`${box.dataset.source}/search`, location.href), number = ++searched;
    if (!text) { sought = wanted = null; output.textContent = ""; paint(); return; }
    address.searchParams.set("text", text);
    if (sought?.text === text && sought.match) address.searchParams.set("match", (sought.match.ordinal + by + sought.events) % sought.events);
    else address.searchParams.set("from", Math.floor(from));
    const found = await ask(address);
    if (number !== searched) return;
    sought = found;
    const one = sought.match;
    output.textContent = one ? `${count(one.ordinal + 1)} of ${count(sought.events)}, ${time(sought.time_ns)} in all` : "No event has this in its name.";
    if (!one) { paint(); return; }
    wanted = one;
    /* The zoom stays unless the event would be too short to be seen, or too long to fit. */
    const length = Math.max(1, one.end_ns - one.start_ns), span = to - from, middle = (one.start_ns + one.end_ns) / 2;
    const wide = length > span / 2 || length / span * width() < 4 ? 20 * length : span;
    go(middle - wide / 2, middle + wide / 2);
  };
  const reveal = () => {
    const row = rows.find((one) => one.lane === view.lanes[wanted.lane]), at = row.lane.start_ns.indexOf(wanted.start_ns);
    if (at >= 0 && row.lane.events[at] === 1) choose({ row, at }, true);
    wanted = null;
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => { event.preventDefault(); seek(event.submitter?.value === "previous" ? -1 : 1).catch(fail); });
  input.addEventListener("input", () => { if (!input.value) seek(1); });

  const begin = () => {
    box.replaceChildren(canvas, tip, said);
    box.tabIndex = 0;
    box.setAttribute("role", "application");
    box.setAttribute("aria-roledescription", "timeline");
    box.setAttribute("aria-label", "Timeline. Arrow keys: next event and lane. Enter: open the launch. Plus and minus: zoom. A and D: move. Escape: whole run.");
    box.addEventListener("keydown", (event) => {
      if (event.target !== box || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
      event.preventDefault();
      event.stopPropagation();
      KEYS[event.key]();
    });
    canvas.addEventListener("mousemove", (event) => { if (!last) choose(itemAt(event.offsetX, event.offsetY)); });
    canvas.addEventListener("mouseleave", () => { if (!last) choose(null); });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoomBy(event.deltaY < 0 ? 1.5 : 1 / 1.5, toNs(event.offsetX));
    }, { passive: false });
    canvas.addEventListener("dblclick", () => go(0, view.length_ns));
    canvas.addEventListener("mousedown", (event) => {
      last = { x: event.offsetX, at: event.clientX, isPan: event.shiftKey, far: 0 };
      choose(itemAt(event.offsetX, event.offsetY));
      event.preventDefault();
      box.focus({ preventScroll: true });
    });
    document.addEventListener("mousemove", (event) => {
      if (!last) return;
      last.far = Math.max(last.far, Math.abs(event.clientX - last.at));
      if (last.isPan) { moveBy((last.at - event.clientX) / width()); last.at = event.clientX; }
    });
    document.addEventListener("mouseup", (event) => {
      if (!last) return;
      const { x, at, isPan, far } = last, end = x + event.clientX - at;
      last = null;
      if (isPan) return;
      if (far > 5) go(toNs(Math.max(labels(), Math.min(x, end))), toNs(Math.max(x, end))); else follow();
    });
    new ResizeObserver(() => { lay(); paint(); }).observe(box);
    new MutationObserver(paint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  };
  state.textContent = "Reading the events…";
  read().catch(fail);
})();

"use strict";
/* Live charts. Each replaces a static figure and shows the data that the API gives at data-source.

   A chart has panels with a common x axis; a panel has series of points (x, y). What a point says and where it leads is
   in `say` and `path` of its series. `quiet` series, such as limits, have no points to go to. */
(() => {
  const root = document.querySelector(".brand").href.replace(/\/$/, "");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const FONT = "12px system-ui, sans-serif";
  const HELP = "Arrow keys: next point. Enter: open it. Plus and minus: zoom. Shift and arrow keys: move. Escape: whole chart.";
  const NEAR = 40; // pixels

  /* Numbers and texts. */
  const PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
  const plain = (v) => v == null || !isFinite(v) ? "–" : String(+v.toPrecision(4));
  const si = (v, unit) => {
    if (v == null || !isFinite(v)) return "–";
    const [size, prefix] = v === 0 ? [1, ""] : PREFIXES.find(([least]) => Math.abs(v) >= least * 0.9999) ?? PREFIXES.at(-1);
    return `${+(v / size).toPrecision(4)} ${prefix}${unit}`.trim();
  };
  const SCALES = {
    ns: [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]], Hz: [["GHz", 1e9], ["MHz", 1e6], ["Hz", 1]],
    J: [["kJ", 1e3], ["J", 1], ["mJ", 1e-3]], degC: [["°C", 1]], 1: [["", 1]],
  };
  const scaleOf = (unit, values) => {
    const known = values.filter(Boolean).map(Math.abs).sort((a, b) => a - b);
    const usual = known[known.length >> 1] ?? 0, steps = SCALES[unit] ?? [[unit, 1]];
    return steps.find(([, size]) => usual >= size) ?? steps.at(-1);
  };
  const cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;
  const us = (v) => v == null ? "–" : si(v / 1e6, "s");
  const launchPath = (view, row) => `/runs/${view.run.run_id}/launches/${row.launch_id}`;
  const launchSays = (row) => [`#${row.launch} ${cut(row.kernel, 60)}`, `duration ${us(row.duration_us)}`];
  const column = (rows, name) => rows.map((row) => row[name]);

  /* One function per kind: the answer of the API -> a chart. */
  const KINDS = {
    history(view) {
      const place = new Map([...new Set(column(view.points, "run_id"))].map((id, n) => [id, n]));
      const names = new Map(view.points.map((p) => [place.get(p.run_id), p.commit_id?.slice(0, 12) ?? cut(p.run, 12)]));
      const [unit, size] = scaleOf(view.quantity.unit, column(view.points, "value"));
      const scaled = (v) => v == null ? null : v / size;
      const series = view.series.flatMap((one, n) => {
        const own = view.points.filter((p) => p.series === n), x = own.map((p) => place.get(p.run_id)), colour = `lines-${n % 6}`;
        const says = (p, value, what) => [cut(p.run, 60), p.commit_id && `commit ${p.commit_id.slice(0, 12)}`, p.at?.slice(0, 19).replace("T", " "),
          `${plain(scaled(value))} ${unit}${what}`, p.low != null && `${plain(scaled(p.low))} to ${plain(scaled(p.high))} ${unit}`,
          p.launches != null && `${p.launches} launches`, p.reason];
        const made = { name: [one.project ?? "no project", one.device ?? "unknown device", one.window, one.sensor].filter(Boolean).join(", "), colour, x,
          y: own.map((p) => scaled(p.value)), low: own.map((p) => scaled(p.low)), high: own.map((p) => scaled(p.high)), line: true, dots: true,
          say: (i) => says(own[i], own[i].value, ""), path: (i) => `/runs/${own[i].run_id}` };
        const raw = { name: "uncorrected", colour: "muted", dash: [2, 3], x, y: own.map((p) => scaled(p.raw)), line: true,
          say: (i) => says(own[i], own[i].raw, " uncorrected"), path: made.path };
        const steps = view.steps.filter((s) => s.series === n), ends = [x[0], ...steps.map((s) => place.get(s.run_id)), x.at(-1) + 1];
        const levels = steps.map((s, k) => ({ quiet: true, colour: "ink", line: true, x: [ends[k], ends[k + 1], ends[k + 1], ends[k + 1], ends[k + 2]].map((v) => v - .5),
          y: [s.before, s.before, null, s.after, s.after].map(scaled) }));
        return [made, ...(raw.y.some((v) => v != null) ? [raw] : []), ...levels];
      });
      const marks = view.steps.map((s) => ({ x: place.get(s.run_id) - .5, colour: { worse: "hot-0", better: "lines-2" }[s.direction] ?? "lines-5",
        name: { worse: "regression", better: "improvement" }[s.direction] ?? "change" }));
      for (const one of view.findings ?? []) if (place.has(one.run_id)) marks.push({ x: place.get(one.run_id), colour: "ink", name: "nightly finding", short: true });
      return { x: { label: "runs by start time", names, from: -.6, to: place.size - .4 }, panels: [{ label: view.quantity.title + (unit && ` (${unit})`), series, marks }] };
    },
    roofline(view) {
      const rows = view.rows.filter((row) => row.intensity_dram);
      const bands = view.lines.filter((l) => l.type === "memory"), peaks = view.lines.filter((l) => l.type === "compute");
      const top = Math.max(...column(peaks, "value")), slow = Math.min(...column(bands, "value")), fast = Math.max(...column(bands, "value"));
      const levels = ["dram", "l2", "l1"], x = rows.flatMap((row) => levels.map((l) => row[`intensity_${l}`]).filter(Boolean)), y = column(rows, "flop_per_s");
      const left = Math.min(...x, top / slow / 30) / 2, right = Math.max(...x, 20 * top / slow) * 6;
      const says = (row, level) => [...launchSays(row), si(row.flop_per_s, "flop/s"), `${plain(row[`intensity_${level}`])} flop/byte of ${level.toUpperCase()}`,
        `${plain(100 * row.reached)} % of its limit, ${row.ceiling ?? row.bound ?? ""}`];
      const group = (name, kind, colour) => {
        const own = rows.filter((row) => (row.bound === "compute") === (kind === "compute"));
        return { name, colour, dots: true, x: column(own, "intensity_dram"), y: column(own, "flop_per_s"), say: (i) => says(own[i], "dram"), path: (i) => launchPath(view, own[i]) };
      };
      const other = rows.length > 1 ? [] : levels.slice(1).filter((l) => rows[0]?.[`intensity_${l}`]).map((l, n) => ({ name: `by ${l.toUpperCase()} traffic`, colour: `lines-${3 + n}`, hollow: true, dots: true,
        x: [rows[0][`intensity_${l}`]], y: [rows[0].flop_per_s], say: () => says(rows[0], l), path: () => launchPath(view, rows[0]) }));
      const limits = [...bands.map((l) => ({ tag: `${l.label}: ${si(l.value, "B/s")}`, x: [left, top / l.value], y: [left * l.value, top], at: "start" })),
        ...peaks.map((l) => ({ tag: `${l.label}: ${si(l.value, "flop/s")}`, x: [Math.max(left, l.value / fast), right], y: [l.value, l.value], at: "end" }))]
        .map((l) => ({ quiet: true, line: true, colour: "muted", ...l }));
      return { x: { label: "arithmetic intensity (flop/byte of DRAM)", log: true, from: left, to: right }, isFree: true, panels: [{ label: "flop/s", log: true, height: 420,
        from: Math.min(...y, top / 300) / 2, to: Math.max(...y, top) * 3, series: [...limits, ...other, group("memory-bound", "memory", "lines-0"), group("compute-bound", "compute", "lines-1")] }] };
    },
    benefit(view) {
      const says = (row) => [...launchSays(row), `memory ${plain(100 * row.memory)} %, after overlap ${plain(100 * row.memory_after_overlap)} %`,
        `computation ${plain(100 * row.computation)} %`, row.best && `most to gain: ${row.best}`];
      const group = (name, zone, colour) => {
        const own = view.rows.filter((row) => row.zone === zone);
        return { name, colour, dots: true, x: column(own, "memory_after_overlap"), y: column(own, "computation"), say: (i) => says(own[i]), path: (i) => launchPath(view, own[i]) };
      };
      const before = view.rows.map((row) => ({ quiet: true, line: true, colour: "muted", dash: [2, 3], x: [row.memory_after_overlap, row.memory], y: [row.computation, row.computation] }));
      const rings = { name: "before overlap", colour: "muted", hollow: true, dots: true, x: column(view.rows, "memory"), y: column(view.rows, "computation"), say: (i) => says(view.rows[i]), path: (i) => launchPath(view, view.rows[i]) };
      return { x: { label: "memory cost (share of predicted time)", from: 0, to: 1.06 }, isFree: true, panels: [{ label: "computation cost (share)", from: 0, to: 1.06, height: 380,
        series: [group("memory dominates", "memory", "lines-0"), group("computation dominates", "compute", "lines-1"), rings, { quiet: true, line: true, colour: "muted", x: [0, 1.06], y: [0, 1.06] }, ...before] }] };
    },
    warps(view) {
      const n = column(view.rows, "warps"), last = n.at(-1), fits = view.fits != null && view.fits < last ? [{ from: view.fits, to: last, colour: "line", name: "exceeds the occupancy limit" }] : [];
      const marks = [{ x: view.now, colour: "ink", name: "now" }];
      const line = (name, key, colour, dash) => ({ name, colour, dash, line: true, x: n, y: column(view.rows, key), say: (i) => [`${n[i]} warps per SM`, `${name}: ${plain(view.rows[i][key])}`] });
      return { x: { label: "resident warps per SM", from: 0, to: last * 1.03 }, panels: [
        { label: "warps", fromZero: true, height: 200, marks, spans: fits, series: [{ quiet: true, line: true, colour: "line", x: [0, last], y: [0, last] },
          line("MWP: requests in parallel", "MWP", "lines-0"), line("CWP: warps that compute meanwhile", "CWP", "lines-1", [6, 3])] },
        { label: "relative speed", fromZero: true, height: 200, marks, spans: fits, series: [line("MWP-CWP model", "mwp_cwp_speedup", "lines-0"), line("throughput model", "throughput_speedup", "lines-1", [6, 3])] }] };
    },
    sms(view) {
      const n = column(view.rows, "sms"), isKnown = view.rows[0].power_w != null;
      const line = (name, key, colour, dash) => ({ name, colour, dash, line: true, x: n, y: column(view.rows, key),
        say: (i) => [`${n[i]} SMs`, `${name}: ${plain(view.rows[i][key])}`, isKnown && `${plain(view.rows[i].power_w)} W`] });
      const panel = (label, prefix) => ({ label, fromZero: true, height: isKnown ? 200 : 320, marks: [{ x: view.now, colour: "ink", name: "now" }],
        series: [line("MWP-CWP model", `${prefix}mwp_cwp`, "lines-0"), line("throughput model", `${prefix}throughput`, "lines-1", [6, 3])] });
      return { x: { label: "active SMs", from: 0, to: n.at(-1) * 1.03 }, panels: [panel("relative speed", ""), ...(isKnown ? [panel("speed per watt", "per_watt_")] : [])] };
    },
    "power-time"(view) {
      const line = (track, colour, unit) => ({ name: track.label, colour, line: true, x: track.time_s, y: track.value,
        say: (i) => [`${plain(track.value[i])} ${unit}`, cut(track.label, 60), `${plain(track.time_s[i])} s`] });
      const spans = view.windows.map((w) => ({ from: w.begin_s, to: w.end_s, name: w.label, colour: w.idle ? "idle" : "busy" }));
      const panels = [{ label: "power (W)", height: 300, spans, series: view.power.map((t, n) => line(t, `lines-${n % 6}`, "W")) }];
      if (view.temperature.length) panels.push({ label: "temperature (°C)", height: 170, spans, series: view.temperature.map((t, n) => line(t, `hot-${n % 3}`, "°C")) });
      return { x: { label: `time since ${view.since} (s)`, from: view.begin_s, to: view.end_s }, panels, isRead: true };
    },
    thermal(view) {
      const { time_s: x, power_w, temperature_c, low_c, high_c } = view.curve, limit = view.plan.limit_c;
      const say = (i) => [`${plain(x[i])} s`, `${plain(temperature_c[i])} °C`, low_c[i] != null && `${plain(low_c[i])} to ${plain(high_c[i])} °C`, `load ${plain(power_w[i])} W`];
      const series = [{ name: "predicted, with its 95 % interval", colour: "hot-0", line: true, x, y: temperature_c, low: low_c, high: high_c, say }];
      if (limit != null) series.push({ name: `limit ${plain(limit)} °C`, quiet: true, colour: "hot-1", dash: [6, 4], line: true, x: [x[0], x.at(-1)], y: [limit, limit] });
      return { x: { label: "time since the first load began (s)", from: x[0], to: x.at(-1) }, panels: [{ label: "temperature (°C)", height: 280, series },
        { label: "load (W)", height: 130, fromZero: true, series: [{ name: "load", colour: "lines-0", line: true, x, y: power_w, say }] }] };
    },
    "power-sms"(view) {
      const series = view.sweeps.flatMap((s, n) => [
        { name: `${s.label}: ${s.law} law`, colour: `lines-${n % 6}`, dots: true, x: s.sms, y: s.power_w, say: (i) => [cut(s.label, 60), `${plain(s.sms[i])} SMs`, `${plain(s.power_w[i])} W`] },
        { quiet: true, colour: `lines-${n % 6}`, line: true, x: s.curve_sms, y: s.curve_w, low: s.low_w, high: s.high_w }]);
      return { x: { label: "active SMs" }, panels: [{ label: "power (W)", height: 340, series }] };
    },
    "power-per-watt"(view) {
      const series = view.efficiencies.map((e, n) => ({ name: e.label, colour: `lines-${n % 6}`, dots: true, line: true, x: e.sms, y: e.per_joule,
        say: (i) => [cut(e.label, 60), `${plain(e.sms[i])} SMs`, `${plain(e.per_joule[i])} of the best`] }));
      return { x: { label: "active SMs" }, panels: [{ label: "work per joule (best = 1)", height: 340, series }] };
    },
  };

  /* The rows of a query: numbers and times as they are, anything else in the order in which it comes. */
  const MAX_SERIES = 24;
  const isTime = (v) => typeof v === "string" && /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d|$)/.test(v);
  KINDS.query = (view, { kind, x, y, by }) => {
    const rows = view.rows.filter((row) => row[x] != null && row[y] != null), all = column(rows, x);
    const isNumber = all.every((v) => typeof v === "number"), time = !isNumber && all.every(isTime);
    const place = new Map([...new Set(all)].map((v, n) => [v, n])), names = isNumber || time ? null : new Map([...place].map(([v, n]) => [n, cut(String(v), 18)]));
    const twice = kind === "bars" && names && !by && place.size < rows.length; // a bar for each row, also of one name
    if (twice) rows.forEach((row, n) => names.set(n, cut(String(row[x]), 18)));
    const at = (v) => isNumber ? v : time ? Date.parse(/[Z+]/.test(v.slice(10)) || v.length === 10 ? v : `${v}Z`) / 1000 : place.get(v);
    const groups = new Map();
    for (const row of rows) {
      const name = by ? String(row[by] ?? "–") : y;
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(row);
    }
    const shown = [...groups].slice(0, MAX_SERIES), wide = kind === "bars" && names ? .8 / shown.length : 0;
    const series = shown.map(([name, own], n) => {
      if (!names) own.sort((a, b) => at(a[x]) - at(b[x]));
      const shift = wide * (n - (shown.length - 1) / 2);
      return { name, colour: `lines-${n % 6}`, x: own.map((row, i) => twice ? i : at(row[x]) + shift), y: column(own, y), line: kind === "line", bars: kind === "bars", dots: kind === "points" || (kind === "line" && own.length < 100),
        say: (i) => [by && `${by}: ${cut(name, 60)}`, `${x}: ${cut(String(own[i][x]), 60)}`, `${y}: ${plain(own[i][y])}`],
        path: rows[0].run_id == null ? undefined : (i) => own[i].launch_id ? `/runs/${own[i].run_id}/launches/${own[i].launch_id}` : `/runs/${own[i].run_id}` };
    });
    const more = groups.size > MAX_SERIES ? `; the first ${MAX_SERIES} of ${groups.size} series` : "", range = names ? { from: -.6, to: (twice ? rows.length : place.size) - .4 } : {};
    return { x: { label: x + (time ? " (UTC)" : "") + (view.truncated ? `; the first ${view.rows.length} rows` : "") + more, names, time, ...range },
      isFree: kind === "points", panels: [{ label: y, height: 360, fromZero: kind === "bars", series }] };
  };

  /* uPlot wants a common x: one place per x, undefined where a series has no point there. */
  const aligned = (series) => {
    const all = series.flatMap((one, s) => one.x.map((x, i) => [x, s, i])).filter(([x]) => x != null && isFinite(x)).sort((a, b) => a[0] - b[0]);
    const xs = [], columns = series.map(() => ({ y: [], low: [], high: [] }));
    let begin = 0;
    for (const [x, s, i] of all) {
      if (!xs.length || xs.at(-1) !== x) begin = xs.length;
      let at = begin;
      while (at < xs.length && columns[s].y[at] !== undefined) at += 1;
      if (at === xs.length) xs.push(x);
      columns[s].y[at] = series[s].y[i] ?? null;
      columns[s].low[at] = series[s].low?.[i];
      columns[s].high[at] = series[s].high?.[i];
    }
    const data = [xs];
    columns.forEach((c, s) => {
      for (const part of [c.y, ...(hasBand(series[s]) ? [c.high, c.low] : [])]) { part.length = xs.length; data.push(part); }
    });
    return data;
  };
  /* Powers of ten; of less than two decades also their double and fivefold. */
  const decades = (u, _, least, most) => {
    const from = Math.floor(Math.log10(least)), to = Math.ceil(Math.log10(most)), found = [], step = Math.max(1, Math.ceil((to - from) / 9));
    for (let n = from; n <= to; n += step) for (const k of most / least < 100 ? [1, 2, 5] : [1]) if (k * 10 ** n >= least && k * 10 ** n <= most) found.push(+(k * 10 ** n).toPrecision(3));
    return found;
  };
  /* Times of an axis, as short as its span allows. */
  const times = (splits, { min, max }) => splits.map((v) => {
    const text = new Date(v * 1000).toISOString();
    return max - min < 120 ? text.slice(11, 19) : max - min < 86400 ? text.slice(11, 16) : max - min < 5 * 86400 ? text.slice(5, 16).replace("T", " ") : text.slice(0, 10);
  });
  /* uPlot would extend the range of a logarithmic axis to whole decades. */
  const exactly = (_, least, most) => [least, most];
  const hasBand = (one) => one.low?.some((v) => v != null);
  const faded = (colour, share) => `${colour}${Math.round(share * 255).toString(16).padStart(2, "0")}`;

  class Chart {
    constructor(box, chart) {
      this.box = box;
      this.whole = chart;
      this.show(chart);
      this.range = null;
      this.fit = new ResizeObserver(() => this.plots.forEach((u, n) => u.setSize({ width: box.clientWidth, height: this.chart.panels[n].height ?? 300 })));
      this.fit.observe(box);
      box.addEventListener("keydown", (event) => this.key(event));
      box.addEventListener("blur", () => this.point(null));
    }

    /* Draw a chart anew: with other data, or in other colours. */
    show(chart) {
      this.plots?.forEach((u) => u.destroy());
      this.chart = chart;
      this.current = null;
      this.tip = document.createElement("div");
      this.tip.className = "chart-tip";
      this.tip.hidden = true;
      this.said = document.createElement("p");
      this.said.className = "visually-hidden";
      this.said.setAttribute("aria-live", "polite");
      this.reset = document.createElement("button");
      this.reset.type = "button";
      this.reset.className = "quiet chart-reset";
      this.reset.textContent = "Whole chart";
      this.reset.hidden = !this.range;
      this.reset.addEventListener("click", () => { this.zoom(null); this.box.focus(); });
      this.box.replaceChildren(this.reset);
      this.points = chart.panels.flatMap((panel, p) => panel.series.flatMap((one, s) => one.quiet ? [] : one.x.map((x, i) => ({ p, one, i, x, y: one.y[i] })).filter((q) => q.y != null && q.x != null)))
        .sort((a, b) => a.x - b.x || a.p - b.p);
      this.plots = chart.panels.map((panel, p) => this.panel(panel, p));
      this.box.append(this.tip, this.said);
      this.scale();
    }

    panel(panel, p) {
      const { x } = this.chart, colours = panel.series.map((one) => css(one.colour));
      const series = [{}], bands = [];
      panel.series.forEach((one, s) => {
        const width = one.quiet ? 1.2 : 1.6;
        series.push({ stroke: colours[s], width, dash: one.dash, paths: one.bars ? uPlot.paths.bars({ size: [.8, 90, 4] }) : one.line ? undefined : () => null, fill: one.bars ? faded(colours[s], .55) : undefined,
          points: { show: Boolean(one.dots), size: one.quiet ? 4 : 7, stroke: colours[s], fill: one.hollow ? css("back") : colours[s], width: 1.5 } });
        if (!hasBand(one)) return;
        bands.push({ series: [series.length, series.length + 1], fill: faded(colours[s], .16) });
        const unseen = { stroke: "transparent", width: 0, points: { show: false } };
        series.push({ ...unseen }, { ...unseen });
      });
      const axis = (label, isLog, extra) => ({ label, labelFont: FONT, font: FONT, labelSize: 20, stroke: css("muted"), grid: { stroke: css("line"), width: .5 }, ticks: { stroke: css("line"), width: .5 },
        values: (_, splits) => splits.map((v) => v == null ? "" : Math.abs(v) >= 1e5 ? si(v, "") : String(+v.toPrecision(6))), ...(isLog ? { splits: decades, filter: null } : {}), ...extra });
      const named = x.names && { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], values: (_, splits) => splits.map((v) => x.names.get(v) ?? ""), space: 90 };
      const clock = x.time && { values: (u, splits) => times(splits, u.scales.x), space: 80 };
      const isLast = p === this.chart.panels.length - 1;
      const own = { width: this.box.clientWidth, height: panel.height ?? 300, legend: { show: false }, series, bands, pxAlign: false,
        scales: { x: { time: Boolean(x.time), auto: false, distr: x.log ? 3 : 1, range: exactly }, y: { auto: false, distr: panel.log ? 3 : 1, range: exactly } },
        axes: [axis(isLast ? cut(x.label, Math.floor(this.box.clientWidth / 7)) : "", x.log, { ...named, ...clock, ...(isLast ? {} : { labelSize: 0 }) }), axis(panel.label, panel.log, { size: 62 })],
        tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), "UTC"), cursor: { drag: { x: true, y: Boolean(this.chart.isFree), setScale: false }, points: { show: false }, y: Boolean(this.chart.isFree),
          bind: { mousedown: (u, _, handler) => (event) => event.shiftKey ? this.pan(u, event) : handler(event), dblclick: () => () => this.zoom(null) } },
        hooks: { drawClear: [(u) => this.spans(u, panel)], draw: [(u) => this.marks(u, panel, colours)], setSelect: [(u) => this.selected(u)], setCursor: [(u) => this.hover(u, p)] } };
      const legend = document.createElement("ul");
      legend.className = "legend";
      const seen = new Set();
      for (const one of [...panel.series.filter((one) => one.name), ...(panel.marks ?? []).map((m) => ({ ...m, line: true }))]) {
        if (seen.has(one.name)) continue;
        seen.add(one.name);
        const item = document.createElement("li");
        item.innerHTML = `<svg viewBox="0 0 20 10" aria-hidden="true">${one.line ? `<path d="M0 5H20" class="s-${one.colour}" stroke-width="2"/>` : ""}${one.line && !one.dots ? "" : `<circle cx="10" cy="5" r="3.5" stroke-width="1.5" class="s-${one.colour} f-${one.hollow ? "back" : one.colour}"/>`}</svg>`;
        item.append(cut(one.name, 48));
        legend.append(item);
      }
      const held = document.createElement("div");
      held.className = "chart-panel";
      this.box.append(legend, held);
      const u = new uPlot(own, aligned(panel.series), held);
      u.over.addEventListener("click", (event) => this.click(event));
      u.over.addEventListener("mouseleave", () => { if (document.activeElement !== this.box) this.point(null); });
      u.over.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoomBy(event.deltaY < 0 ? 1.4 : 1 / 1.4, u.posToVal(event.offsetX, "x"));
      }, { passive: false });
      return u;
    }

    /* The extent of what is shown: that of the zoom, else of all; y follows the points in view. */
    scale() {
      const { x, panels } = this.chart, [least, most] = extent(panels.flatMap((panel) => panel.series.flatMap((one) => one.x)));
      const room = (most - least) * .03 || 1;
      const [from, to] = this.range?.x ?? [x.from ?? least - room, x.to ?? most + room];
      this.shown = [from, to];
      this.plots.forEach((u, n) => {
        const panel = panels[n];
        const [low, high] = extent(panel.series.flatMap((one) => one.x.flatMap((at, i) => at < from || at > to ? [] : [one.y[i], one.low?.[i], one.high?.[i]])));
        const pad = (high - low) * .08 || Math.abs(high) * .05 || 1;
        const own = this.range?.y ?? (panel.from != null ? [panel.from, panel.to] : [panel.fromZero ? 0 : low - pad, high + pad]);
        u.batch(() => { u.setScale("x", { min: from, max: to }); u.setScale("y", { min: own[0], max: own[1] }); });
      });
      this.reset.hidden = !this.range;
    }

    zoom(range) {
      this.range = range;
      this.point(null);
      this.scale();
      if (this.chart.isRead) {
        clearTimeout(this.waiting);
        this.waiting = setTimeout(() => this.read(), 120);
      }
    }

    /* Read the part in view again, since only minima and maxima of intervals were sent. */
    async read() {
      const address = new URL(this.box.dataset.source, location.href), asked = this.range;
      if (asked) { address.searchParams.set("from", asked.x[0]); address.searchParams.set("to", asked.x[1]); }
      const chart = asked ? KINDS[this.box.dataset.chart](await answer(address.href), this.box.dataset) : this.whole;
      if (asked !== this.range) return;
      this.chart = chart;
      const hadFocus = document.activeElement === this.box;
      this.show(chart);
      if (hadFocus) this.box.focus();
    }

    zoomBy(factor, at) {
      const log = this.chart.x.log, [from, to] = this.shown.map((v) => log ? Math.log(v) : v), middle = at == null ? (from + to) / 2 : log ? Math.log(at) : at;
      const next = [middle - (middle - from) / factor, middle + (to - middle) / factor];
      this.zoom({ ...this.range, x: next.map((v) => log ? Math.exp(v) : v) });
    }

    moveBy(share) {
      const log = this.chart.x.log, [from, to] = this.shown.map((v) => log ? Math.log(v) : v), by = share * (to - from);
      this.zoom({ ...this.range, x: [from + by, to + by].map((v) => log ? Math.exp(v) : v) });
    }

    pan(u, event) {
      let last = event.clientX;
      const move = (next) => { this.moveBy((last - next.clientX) / u.over.clientWidth); last = next.clientX; };
      document.addEventListener("mousemove", move);
      document.addEventListener("mouseup", () => document.removeEventListener("mousemove", move), { once: true });
      event.preventDefault();
    }

    selected(u) {
      const { left, top, width, height } = u.select;
      if (width > 4) {
        const y = this.chart.isFree && height > 4 ? [u.posToVal(top + height, "y"), u.posToVal(top, "y")] : undefined;
        const x = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
        this.wasDragged = true;
        setTimeout(() => { this.wasDragged = false; this.zoom({ x, y }); });
      }
      u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    }

    hover(u, p) {
      const { left, top } = u.cursor;
      if (left == null || left < 0) return;
      let best = null, least = NEAR;
      for (const q of this.points) {
        if (q.p !== p || q.x < this.shown[0] || q.x > this.shown[1]) continue;
        const far = Math.hypot(u.valToPos(q.x, "x") - left, (u.valToPos(q.y, "y") - top) * (this.chart.isFree || q.one.dots ? 1 : .3));
        if (far < least) [best, least] = [q, far];
      }
      this.point(best);
    }

    /* Show what a point says. */
    point(q, aloud) {
      this.current = q;
      this.tip.hidden = !q;
      this.plots.forEach((u) => { u.over.style.cursor = q?.one.path ? "pointer" : "crosshair"; });
      if (!q) return;
      const lines = q.one.say(q.i).filter(Boolean), u = this.plots[q.p], span = this.chart.panels[q.p].spans?.find((s) => s.from <= q.x && q.x <= s.to);
      if (span) lines.push(cut(span.name, 60));
      this.tip.replaceChildren(...lines.map((line) => Object.assign(document.createElement("div"), { textContent: line })));
      if (aloud) this.said.textContent = lines.join(", ");
      const over = u.over.getBoundingClientRect(), box = this.box.getBoundingClientRect();
      const left = over.left - box.left + u.valToPos(q.x, "x"), top = over.top - box.top + u.valToPos(q.y, "y");
      const isRight = left + this.tip.offsetWidth + 16 > this.box.clientWidth;
      this.tip.style.left = `${Math.max(0, isRight ? left - this.tip.offsetWidth - 12 : left + 12)}px`;
      this.tip.style.top = `${top + 12}px`;
    }

    click(event) {
      if (this.wasDragged || event.shiftKey || !this.current?.one.path) return;
      const address = root + this.current.one.path(this.current.i);
      if (event.ctrlKey || event.metaKey) window.open(address); else location.href = address;
    }

    key(event) {
      if (event.target !== this.box || event.ctrlKey || event.metaKey || event.altKey) return;
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key], visible = () => this.points.filter((q) => q.x >= this.shown[0] && q.x <= this.shown[1]);
      if (by && event.shiftKey) this.moveBy(.2 * by);
      else if (by) {
        const all = visible(), at = all.indexOf(this.current);
        if (all.length) this.point(all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + by))], true);
      } else if (event.key === "Home" || event.key === "End") this.point(visible().at(event.key === "Home" ? 0 : -1) ?? null, true);
      else if (event.key === "+" || event.key === "=") this.zoomBy(1.6, this.current?.x);
      else if (event.key === "-") this.zoomBy(1 / 1.6, this.current?.x);
      else if (event.key === "Escape" || event.key === "0") { if (!this.range && !this.current) return; this.zoom(null); }
      else if (event.key === "Enter" && this.current?.one.path) location.href = root + this.current.one.path(this.current.i);
      else return;
      event.preventDefault();
      event.stopPropagation();
    }

    spans(u, panel) {
      const { ctx, bbox } = u;
      ctx.save();
      for (const one of panel.spans ?? []) {
        const [left, right] = [one.from, one.to].map((v) => Math.max(bbox.left, Math.min(bbox.left + bbox.width, u.valToPos(v, "x", true))));
        ctx.fillStyle = faded(css(one.colour), .45);
        if (right > left) ctx.fillRect(left, bbox.top, Math.max(1, right - left - 1), bbox.height);
      }
      ctx.restore();
    }

    marks(u, panel, colours) {
      const { ctx, bbox } = u, ratio = devicePixelRatio;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      for (const one of panel.marks ?? []) {
        const x = u.valToPos(one.x, "x", true);
        ctx.strokeStyle = css(one.colour);
        ctx.lineWidth = (one.short ? 3 : 1.3) * ratio;
        ctx.setLineDash(one.short ? [] : [5 * ratio, 4 * ratio]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top + (one.short ? .95 : 0) * bbox.height);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.font = `${12 * ratio}px system-ui, sans-serif`;
      ctx.textBaseline = "alphabetic";
      panel.series.forEach((one, s) => {
        if (!one.tag) return;
        ctx.fillStyle = colours[s];
        const isEnd = one.at === "end";
        if (isEnd) {
          ctx.textAlign = "right";
          ctx.fillText(one.tag, bbox.left + bbox.width - 6 * ratio, u.valToPos(one.y[1], "y", true) - 4 * ratio);
          return;
        }
        const [x0, x1] = one.x.map((v) => u.valToPos(v, "x", true)), [y0, y1] = one.y.map((v) => u.valToPos(v, "y", true)), slope = (y1 - y0) / (x1 - x0);
        const x = Math.max(bbox.left + 8 * ratio, x0 + (bbox.top + bbox.height - 14 * ratio - y0) / slope);
        ctx.save();
        ctx.textAlign = "left";
        ctx.translate(x, y0 + slope * (x - x0));
        ctx.rotate(Math.atan(slope));
        ctx.fillText(one.tag, 10 * ratio, -4 * ratio);
        ctx.restore();
      });
      ctx.restore();
    }
  }
  const extent = (values) => {
    let least = Infinity, most = -Infinity;
    for (const v of values) if (v != null && isFinite(v)) { least = Math.min(least, v); most = Math.max(most, v); }
    return least > most ? [0, 1] : [least, most];
  };

  const answers = new Map();
  const answer = async (address) => {
    const said = await fetch(address, { headers: { accept: "application/json" } });
    const body = await said.json();
    if (!said.ok) throw new Error(body.error?.message ?? said.statusText);
    return body;
  };
  const once = (address) => {
    if (!answers.has(address)) answers.set(address, answer(address));
    return answers.get(address);
  };

  const charts = [];
  const start = async (box) => {
    let chart;
    try {
      chart = KINDS[box.dataset.chart](await once(box.dataset.source), box.dataset);
    } catch (error) {
      box.querySelector(".chart-wait")?.replaceChildren(error.message);
      return; // the static figure stays
    }
    box.classList.add("live");
    box.setAttribute("role", "application");
    box.setAttribute("aria-roledescription", "chart");
    box.setAttribute("aria-label", `${box.dataset.title}. ${HELP}`);
    box.tabIndex = 0;
    box.title = "";
    charts.push(new Chart(box, chart));
  };
  const near = new IntersectionObserver((entries) => {
    for (const one of entries) if (one.isIntersecting) { near.unobserve(one.target); start(one.target); }
  }, { rootMargin: "400px" });
  document.querySelectorAll("[data-chart]").forEach((box) => near.observe(box));

  const repaint = () => charts.forEach((one) => one.show(one.chart));
  new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
})();

"use strict";
/* Charts: uPlot draws, this file adds the page's colours, a cursor that reads the numbers, tables, CSV and a large view.

A chart is an object as report/charts.py writes it: labels, x, series, bands, verticals, unit, divisor. */
const charts = (() => {
  const tip = document.getElementById("tip");
  const drawn = new Set();

  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  /* Numbers, in the form of cobre/text.py. */
  const digits = (value, significant = 4) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    const places = Math.max(0, significant - 1 - Math.floor(Math.log10(Math.abs(value))));
    return value.toLocaleString("en-US", { minimumFractionDigits: Math.min(places, 20), maximumFractionDigits: Math.min(places, 20) });
  };
  const written = (chart, value, significant) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    return `${digits(value / chart.divisor, significant)} ${chart.scaled_unit}`.trim();
  };

  const STEPS = [[1e9, "billion"], [1e6, "million"], [1e3, "thousand"]];
  const scaleFor = (largest, unit) => {
    if (unit === "MW" && largest >= 1e4) return [1e3, "GW"];
    const step = STEPS.find(([divisor]) => largest >= divisor * (divisor > 1e3 ? 1 : 10));
    return step ? [step[0], `${step[1]} ${unit}`] : [1, unit];
  };

  /* Colours are variables of the style sheet: light, dark and paper are one drawing. */
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name || "--muted").trim();
  const faint = (name, strength) =>
    colour(name) + Math.round(255 * strength).toString(16).padStart(2, "0");
  const font = () => `${innerWidth < 520 ? 11 : 12}px ${colour("--font")}`;

  const DASHES = { dash: [6, 4], dots: [2, 3] };
  const WIDTHS = { line: 2, thin: 1, dash: 1.5, dots: 1.5, none: 0, bar: 0 };

  /* Bars on top of each other: each is drawn from 0 to the sum so far, the highest first. */
  const stacked = (chart) => {
    const sums = chart.labels.map(() => 0);
    return chart.series.map(({ drawing, values }) =>
      drawing === "bar" ? values.map((value, place) => (sums[place] += value ?? 0)) : values);
  };
  const order = (chart) => {
    const places = chart.series.map((_, place) => place);
    const bars = places.filter((place) => chart.series[place].drawing === "bar");
    return [...bars.reverse(), ...places.filter((place) => chart.series[place].drawing !== "bar")];
  };

  const seriesOptions = (chart, place) => {
    const series = chart.series[place];
    const isBar = series.drawing === "bar";
    const isEdge = (chart.bands || []).some(({ upper, lower }) => upper === place || lower === place);
    const options = {
      auto: isEdge || series.drawing !== "none", // what is not drawn takes no room
      stroke: () => (WIDTHS[series.drawing] ? colour(series.colour) : "transparent"),
      width: WIDTHS[series.drawing],
      dash: DASHES[series.drawing],
      points: { show: chart.labels.length === 1 && ["line", "thin"].includes(series.drawing), size: 7, fill: () => colour(series.colour) },
    };
    if (isBar) {
      options.fill = () => colour(series.colour);
      options.paths = uPlot.paths.bars({ size: [chart.labels.length > 60 ? 1 : 0.85, 120] });
    }
    return options;
  };

  /* Some of the stages, as many labels as there is room for. */
  const stageSplits = (chart) => (u) => {
    const width = Math.max(...chart.labels.map((label) => label.length)) * 7 + 16;
    const { min, max } = u.scales.x;
    const first = Math.max(0, Math.ceil(min)), last = Math.min(chart.labels.length - 1, Math.floor(max));
    const step = Math.max(1, Math.ceil(((last - first + 1) * width) / Math.max(1, u.width - 80)));
    const places = [];
    for (let place = first; place <= last; place += step) places.push(place);
    return places;
  };
  const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6];
  const axisNumber = (value, step) => {
    const places = Math.max(0, Math.min(8, -Math.floor(Math.log10(step || 1) + 1e-9)));
    return value.toLocaleString("en-US", { maximumFractionDigits: places });
  };
  const axisNumbers = (divisor) => (u, splits) => {
    const step = splits.length > 1 ? Math.abs(splits[1] - splits[0]) / divisor : 1;
    return splits.map((value) => axisNumber(value / divisor, step));
  };

  const xAxis = (chart) => {
    const axis = { stroke: () => colour("--muted"), font: font(), grid: { show: false }, gap: 4, size: 32,
      ticks: { stroke: () => colour("--grid"), size: 4, width: 1 } };
    if (chart.axis === "stages") {
      axis.splits = stageSplits(chart);
      axis.values = (u, splits) => splits.map((place) => chart.labels[place] ?? "");
    } else if (chart.axis === "numbers") {
      axis.incrs = WHOLE;
      axis.values = (u, splits) => splits.map((value) => (Number.isInteger(value) ? axisNumber(value, 1) : ""));
    } else axis.values = axisNumbers(chart.x_divisor || 1);
    return axis;
  };
  const yAxis = (chart) => ({
    stroke: () => colour("--muted"), font: font(), gap: 4,
    grid: { stroke: () => colour("--grid"), width: 1 }, ticks: { show: false },
    splits: (u, axis, min, max, increment) => {
      const found = [];
      for (let k = Math.ceil(min / increment - 1e-9); k * increment <= max + 1e-9 * increment; k++) found.push(k * increment || 0);
      return found;
    },
    incrs: niceSteps(chart.divisor),
    values: axisNumbers(chart.divisor),
    size: (u, values) => Math.max(30, ...(values || []).map((text) => text.length * 7 + 12)),
  });
  const niceSteps = (divisor) => {
    const found = [];
    for (let power = -9; power < 13; power++) for (const step of [1, 2, 5]) found.push(step * 10 ** power * divisor);
    return found;
  };

  const xRange = (chart) => (u, min, max) => {
    const x = chart.x, half = x.length > 1 ? (x[1] - x[0]) / 2 : 0.5;
    if (x.length === 1) min = max = x[0]; // uPlot widens one number to a range, 0 to 100
    if (min !== x[0] || max !== x[x.length - 1]) return [min, max];
    const across = chart.verticals?.map(({ at }) => at) ?? [];
    const pad = chart.series.some(({ drawing }) => drawing === "bar") || x.length === 1 ? half : half / 4;
    return [Math.min(min - pad, ...across), Math.max(max + pad, ...across)];
  };
  /* What is never negative begins at 0, but for bounds, whose difference is what matters. */
  const yRange = (chart) => (u, low, high) => {
    if (low === null || high === null || low === undefined) return [0, 1];
    const isFromZero = low >= 0 && chart.axis !== "numbers" || chart.is_stacked;
    const span = high - (isFromZero ? 0 : low) || Math.abs(high) || 1;
    return [isFromZero ? 0 : low - 0.05 * span, high + 0.06 * span];
  };

  const drawVerticals = (chart) => (u) => {
    for (const { at, drawing } of chart.verticals || []) {
      const x = u.valToPos(at, "x", true), { top, height } = u.bbox;
      for (const [stroke, width, dash] of [[colour("--card"), 4, []], [colour("--ink"), 1.8, DASHES[drawing] || []]]) {
        u.ctx.save();
        u.ctx.beginPath();
        u.ctx.strokeStyle = stroke;
        u.ctx.lineWidth = width * devicePixelRatio;
        u.ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
        u.ctx.moveTo(x, top);
        u.ctx.lineTo(x, top + height);
        u.ctx.stroke();
        u.ctx.restore();
      }
    }
  };

  const heightFor = (width) => Math.round(Math.max(190, Math.min(width * 0.52, innerHeight * 0.75)));

  /* The cursor: its numbers in a box beside it, for the pointer and for the keys. */
  const fillTip = (chart, place) => {
    const lines = chart.series.filter((series) => !series.hidden).map((series) => {
      const line = element("span");
      const value = series.values[place];
      const text = chart.unit === "scenarios" && series.drawing === "none" ? digits(value) : written(chart, value);
      line.append(element("i", series.name), element("em", text));
      return line;
    });
    tip.replaceChildren(element("b", chart.labels[place]), ...lines);
  };
  const placeTip = (x, y) => {
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = x + 16 + width > innerWidth ? x - 16 - width : x + 16;
    tip.style.left = `${Math.max(4, Math.min(left, innerWidth - width - 4))}px`;
    tip.style.top = `${Math.max(4, Math.min(y - height / 2, innerHeight - height - 4))}px`;
  };

  const draw = (holder, chart, width = holder.clientWidth) => {
    const places = order(chart);
    const shown = chart.is_stacked ? stacked(chart) : chart.series.map(({ values }) => values);
    const seriesNumber = (place) => 1 + places.indexOf(place);
    const options = {
      width, height: holder.dataset.height ? Number(holder.dataset.height) : heightFor(width),
      padding: [10, 26, 0, 0],
      legend: { show: false },
      scales: { x: { time: false, range: xRange(chart) }, y: { range: yRange(chart) } },
      axes: [xAxis(chart), yAxis(chart)],
      series: [{}, ...places.map((place) => seriesOptions(chart, place))],
      bands: (chart.bands || []).map(({ upper, lower, colour: name, strength }) => ({
        series: [seriesNumber(upper), seriesNumber(lower)], fill: () => faint(name, strength) })),
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: true } },
      hooks: { draw: [drawVerticals(chart)], setCursor: [(u) => u.tell?.()] },
    };
    const u = new uPlot(options, [chart.x, ...places.map((place) => shown[place])], holder);
    u.chart = chart;
    u.holder = holder;
    drawn.add(u);
    withCursor(u);
    return u;
  };

  const withCursor = (u) => {
    const { chart, holder } = u;
    let clientY = null;
    const hide = () => { tip.hidden = true; };
    u.tell = () => {
      const place = u.cursor.idx;
      if (u.cursor.left < 0 || place === null || place === undefined) return hide();
      fillTip(chart, place);
      const frame = u.over.getBoundingClientRect();
      placeTip(frame.left + u.valToPos(chart.x[place], "x"), clientY ?? frame.top + frame.height / 2);
    };
    u.over.addEventListener("pointermove", (event) => { clientY = event.clientY; });
    u.over.addEventListener("pointerleave", () => { clientY = null; hide(); });
    const goTo = (place) => u.setCursor({ left: u.valToPos(chart.x[place], "x"), top: u.over.clientHeight / 2 });
    const zoom = (factor) => {
      const { min, max } = u.scales.x, middle = chart.x[u.cursor.idx] ?? (min + max) / 2, half = ((max - min) / 2) * factor;
      if (half * 2 >= chart.x[chart.x.length - 1] - chart.x[0]) return u.setScale("x", { min: chart.x[0], max: chart.x[chart.x.length - 1] });
      u.setScale("x", { min: middle - half, max: middle + half });
    };
    holder.onkeydown = (event) => {
      if (event.target !== holder) return;
      const last = chart.x.length - 1, now = u.cursor.left < 0 ? null : u.cursor.idx;
      const steps = { ArrowLeft: (now ?? 1) - 1, ArrowRight: (now ?? -1) + 1, Home: 0, End: last };
      if (event.key === "Escape") { u.setCursor({ left: -10, top: -10 }); return hide(); }
      if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 0.5 : 2);
      else if (event.key in steps) goTo(Math.max(0, Math.min(last, steps[event.key])));
      else return;
      event.preventDefault();
    };
    holder.onblur = () => { u.setCursor({ left: -10, top: -10 }); hide(); };
  };

  const remove = (u) => { drawn.delete(u); u.destroy(); tip.hidden = true; };

  /* The same numbers as a table and as a file. */
  const tableOf = (chart) => {
    const table = element("table");
    const head = element("tr");
    head.append(element("th", chart.scaled_unit || "", { scope: "col" }));
    for (const series of chart.series) head.append(element("th", series.name, { scope: "col", class: "num" }));
    const body = chart.labels.map((label, place) => {
      const row = element("tr");
      row.append(element("th", label, { scope: "row" }));
      for (const series of chart.series)
        row.append(element("td", digits(series.values[place] === null ? NaN : series.values[place] / chart.divisor, 6), { class: "num" }));
      return row;
    });
    table.createTHead().append(head);
    table.createTBody().append(...body);
    return table;
  };

  /* A name is never taken for a formula by a spreadsheet, nor for a command by a terminal; a number stays one. */
  const cell = (value) => {
    if (typeof value === "number") return String(value);
    const plain = String(value ?? "").replace(/[\u0000-\u001f\u007f-\u009f]/g, (sign) => `\\x${sign.charCodeAt(0).toString(16).padStart(2, "0")}`);
    const text = /^\s*[=+\-@]/.test(plain) ? `'${plain}` : plain;
    return /[",;']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csvOf = (chart) => {
    const unit = chart.unit ? ` (${chart.unit})` : "";
    const head = [chart.axis === "stages" ? "stage" : "", ...chart.series.map(({ name }) => name + unit)];
    const rows = chart.labels.map((label, place) =>
      [label, ...chart.series.map(({ values }) => (Number.isFinite(values[place] ?? NaN) ? values[place] : ""))]);
    return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
  };
  const download = (name, text) => {
    const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    const link = element("a", undefined, { href: address, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };
  const fileName = (words) => `${words.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "")}.csv`;

  /* A figure in all of the window. */
  const enlarge = (chart, legend) => {
    const dialog = document.getElementById("large");
    const holder = element("div", undefined, { class: "plot", tabindex: "0", role: "img", "aria-label": chart.title });
    const close = element("button", "Close", { type: "button", class: "quiet" });
    close.onclick = () => dialog.close();
    const csv = element("button", "CSV", { type: "button", class: "quiet", title: "Download the numbers" });
    csv.onclick = () => download(fileName(chart.title), csvOf(chart));
    const head = element("div", undefined, { class: "bar" });
    head.append(element("h3", chart.title), csv, close);
    const parts = [head, element("p", chart.caption, { class: "caption" })];
    if (legend) parts.push(legend.cloneNode(true));
    const hint = "Drag across the chart to zoom in, double-click to reset; with the keyboard: arrow keys, + and −.";
    dialog.replaceChildren(...parts, holder, element("p", hint, { class: "note" }));
    dialog.showModal();
    holder.dataset.height = Math.max(200, Math.min(innerHeight * 0.62, 620));
    dialog.append(tip); // what is not inside an open dialog lies behind it
    const u = draw(holder, chart);
    holder.focus();
    dialog.onclose = () => { document.body.append(tip); remove(u); dialog.replaceChildren(); };
    return u;
  };

  /* "Enlarge" alone says little to somebody who hears one button after the other: the chart's title follows. */
  let named = 0;
  const nameAfterTitle = (figure, ...controls) => {
    const title = figure.querySelector("h3, h4");
    if (!title) return;
    title.id = title.id || `chart-title-${++named}`;
    controls.forEach((control, place) => {
      control.id = `${title.id}-${place}`;
      control.setAttribute("aria-labelledby", `${control.id} ${title.id}`);
    });
  };

  /* Tools and the table below a plot; the table is made when it is opened. */
  const withTools = (figure, current, legend) => {
    const tools = element("div", undefined, { class: "tools" });
    const large = element("button", "Enlarge", { type: "button", class: "link" });
    large.onclick = () => enlarge(current(), legend());
    const csv = element("button", "CSV", { type: "button", class: "link", title: "Download the numbers" });
    csv.onclick = () => download(fileName(current().title), csvOf(current()));
    const details = element("details", undefined, { class: "numbers" });
    const scroll = element("div", undefined, { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers" });
    const fill = () => details.open && scroll.replaceChildren(tableOf(current()));
    details.addEventListener("toggle", fill);
    const summary = element("summary", "Numbers");
    details.append(summary, scroll);
    tools.append(large, csv);
    figure.append(tools, details);
    nameAfterTitle(figure, large, csv, summary);
    return fill;
  };

  const redraw = () => drawn.forEach((u) => u.redraw(false, true));

  /* Widths follow the page; paper has its own. */
  let isPaper = false;
  const fit = (u) => {
    const width = isPaper ? 324 : u.holder.clientWidth;
    if (width < 40 || (!isPaper && width === u.width)) return;
    const height = u.holder.dataset.height ? Number(u.holder.dataset.height) : isPaper ? 180 : heightFor(width);
    u.setSize({ width, height });
  };
  const onPaper = (isOn) => {
    isPaper = isOn;
    drawn.forEach((u) => { fit(u); u.redraw(false, true); });
  };
  addEventListener("resize", () => requestAnimationFrame(() => drawn.forEach(fit)));
  matchMedia("print").addEventListener("change", (event) => onPaper(event.matches));
  addEventListener("beforeprint", () => onPaper(true));
  addEventListener("afterprint", () => onPaper(false));

  return { draw, remove, redraw, withTools, element, digits, written, scaleFor, download, csvOf, fileName, cell, colour, drawn };
})();

"use strict";
/* Find a plant, bus or line by its name and draw what happens to it.

The numbers of a quantity are unpacked when they are first drawn: see report/explorer_data.py. */
(() => {
  const frame = document.getElementById("explorer");
  if (!frame) return;
  const data = JSON.parse(document.getElementById("report-data").textContent).explorer;
  const { element } = charts;
  const find = document.getElementById("find");
  const found = document.getElementById("found");
  const count = document.getElementById("found-count");
  const scenario = document.getElementById("scenario");
  const blocks = document.getElementById("blocks");
  const grid = document.getElementById("entity-charts");
  const width = data.statistics.length + data.scenarios.length;
  const HUES = ["--orange", "--vermillion", "--purple", "--green", "--grey", "--sky", "--blue", "--ink"];

  /* base64, deflate, then three bytes of each float32, byte by byte. */
  const unpacked = new Map();
  const unpack = async (text) => {
    if (unpacked.has(text)) return unpacked.get(text);
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const planes = new Uint8Array(await new Response(stream).arrayBuffer());
    const size = planes.length / 3;
    const bits = new Uint32Array(size);
    for (let at = 0; at < size; at++)
      bits[at] = ((planes[at] << 24) | (planes[at + size] << 16) | (planes[at + 2 * size] << 8)) >>> 0;
    const values = new Float32Array(bits.buffer);
    unpacked.set(text, values);
    return values;
  };
  const row = (values, start, length) =>
    Array.from(values.subarray(start, start + length), (value) => (Number.isFinite(value) ? Number(value.toPrecision(5)) : null));

  /* Names without accents and case, so that "itaipu" finds ITAIPÚ. */
  const plain = (words) => words.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  const all = data.kinds.flatMap((kind) =>
    kind.names.map((name, place) => ({ kind, place, name, key: `${kind.key}-${kind.ids[place]}`, plain: plain(name) })));

  const list = () => {
    const wanted = plain(find.value.trim()).split(/\s+/);
    const matching = all.filter((one) => wanted.every((word) => one.plain.includes(word) || plain(one.kind.title).includes(word)));
    const groups = data.kinds.map((kind) => {
      const group = element("optgroup", undefined, { label: kind.title });
      for (const one of matching) if (one.kind === kind) group.append(element("option", one.name, { value: one.key }));
      return group;
    });
    found.replaceChildren(...groups.filter((group) => group.children.length));
    count.textContent = find.value.trim() ? `${matching.length} of ${all.length} found` : `${all.length} to choose from`;
    const current = matching.find((one) => one.key === chosen?.key);
    found.selectedIndex = -1;
    if (current) found.value = current.key;
    return matching;
  };

  /* From an entity and a quantity to a chart as charts.js draws it. */
  const chartOf = async (kind, quantity, place) => {
    const at = quantity.entities === null ? place : quantity.entities.indexOf(place);
    if (at < 0) return null;
    const stages = kind.labels.length;
    const values = await unpack(quantity.packed);
    const chart = { title: `${quantity.title}, ${kind.names[place]}`, heading: quantity.title, unit: quantity.unit,
      labels: kind.labels, x: kind.labels.map((_, stage) => stage), axis: "stages", series: [], bands: [], legend: [] };
    if (quantity.lines) addLines(chart, quantity, values, at, stages);
    else if (blocks.value && quantity.packed_blocks) await addBlocks(chart, kind, quantity, at, stages);
    else addFan(chart, quantity, values, at, stages);
    if (quantity.packed_references) addReferences(chart, quantity, await unpack(quantity.packed_references), at, stages);
    const drawnValues = chart.series.filter(({ drawing }) => drawing !== "none").flatMap((series) => series.values);
    const largest = drawnValues.reduce((most, value) => Math.max(most, Math.abs(value ?? 0)), 0);
    [chart.divisor, chart.scaled_unit] = charts.scaleFor(largest, quantity.unit);
    chart.caption = chart.scaled_unit;
    return chart;
  };

  const addFan = (chart, quantity, values, at, stages) => {
    const drawings = ["thin", "none", "line", "none", "thin", "dash"]; // what happens in few scenarios shows in the mean alone
    data.statistics.forEach((name, place) => chart.series.push({ name, drawing: drawings[place], colour: quantity.colour,
      values: row(values, (at * width + place) * stages, stages) }));
    chart.bands = [{ upper: 4, lower: 0, colour: quantity.colour, strength: 0.18 }, { upper: 3, lower: 1, colour: quantity.colour, strength: 0.32 }];
    chart.legend = [["median", "line", quantity.colour], ["mean", "dash", quantity.colour], ["25 to 75 %", "band", quantity.colour, 0.5], ["5 to 95 %", "band", quantity.colour, 0.18]];
    const wanted = scenario.value === "all" ? data.scenarios.map((_, place) => place) : scenario.value === "" ? [] : [Number(scenario.value)];
    wanted.forEach((place, turn) => {
      const hue = wanted.length > HUES.length ? "--muted" : HUES.filter((name) => name !== quantity.colour)[turn % (HUES.length - 1)];
      chart.series.push({ name: data.scenarios[place], drawing: wanted.length > 1 ? "thin" : "dash", colour: hue,
        values: row(values, (at * width + data.statistics.length + place) * stages, stages) });
      if (wanted.length <= HUES.length) chart.legend.push([data.scenarios[place], wanted.length > 1 ? "line" : "dash", hue]);
    });
  };
  const addBlocks = async (chart, kind, quantity, at, stages) => {
    const values = await unpack(quantity.packed_blocks);
    const names = quantity.block_statistics;
    kind.blocks.forEach((name, block) => {
      const hue = ["--blue", "--orange", "--green", "--vermillion", "--purple", "--sky", "--grey", "--ink"][block % 8];
      names.forEach((statistic, turn) => chart.series.push({
        name: turn ? `${name}, ${statistic}` : name, drawing: turn ? "none" : "line", colour: hue,
        values: row(values, ((at * kind.blocks.length + block) * names.length + turn) * stages, stages) }));
      chart.legend.push([`${name} (${charts.digits(kind.block_hours[block], 3)} h)`, "line", hue]);
    });
    chart.title = chart.title.replace(",", ", mean by block,");
    chart.heading += ", mean by block";
  };
  const addLines = (chart, quantity, values, at, stages) =>
    quantity.lines.forEach(({ name, colour }, place) => {
      chart.series.push({ name, drawing: "line", colour, values: row(values, (at * quantity.lines.length + place) * stages, stages) });
      chart.legend.push([name, "line", colour]);
    });
  const addReferences = (chart, quantity, values, at, stages) =>
    quantity.references.forEach((name, place) => {
      const numbers = row(values, (at * quantity.references.length + place) * stages, stages);
      if (numbers.every((value) => value === null)) return;
      chart.series.push({ name, drawing: place ? "dots" : "dash", colour: "--ink", values: numbers });
      chart.legend.push([name, place ? "dots" : "dash", "--ink"]);
    });

  const legendOf = (chart) => {
    const legend = element("ul", undefined, { class: "legend" });
    for (const [name, kind, colour, strength = 1] of chart.legend) {
      const entry = element("li");
      const mark = element("span", undefined, { class: `mark ${kind}`, "aria-hidden": "true" });
      mark.style.setProperty("--mark", `var(${colour})`);
      mark.style.setProperty("--strength", strength);
      entry.append(mark, name);
      legend.append(entry);
    }
    return legend;
  };
  const said = (chart) => {
    const middle = chart.series.find(({ name }) => name === "median") ?? chart.series[0];
    const [first, last] = [middle.values[0], middle.values[middle.values.length - 1]].map((value) => charts.written(chart, value));
    return `${chart.title}: ${middle.name} from ${first} in ${chart.labels[0]} to ${last} in ${chart.labels[chart.labels.length - 1]}.`;
  };

  const happens = (chart) => chart.series.some(({ values, colour }) => colour !== "--ink" && values.some((value) => value));

  let chosen = null;
  let shown = [];
  let turn = 0;
  const show = async (one) => {
    chosen = one;
    const mine = ++turn;
    const candidates = (await Promise.all(one.kind.quantities.map((quantity) => chartOf(one.kind, quantity, one.place)))).filter(Boolean);
    const made = candidates.filter(happens);
    const never = candidates.filter((chart) => !happens(chart)).map(({ heading }) => heading.toLowerCase());
    if (mine !== turn) return; // another one was chosen meanwhile
    shown.forEach(({ plot }) => charts.remove(plot));
    document.getElementById("entity-name").textContent = one.name;
    document.getElementById("entity-facts").textContent = one.kind.facts[one.place];
    grid.replaceChildren();
    document.getElementById("entity-zeros").textContent = never.length ? `0 in all stages and scenarios: ${never.join(", ")}.` : "";
    shown = made.map((chart) => {
      const figure = element("figure", undefined, { class: "card" });
      const caption = element("figcaption");
      const holder = element("div", undefined, { class: "plot", role: "img", tabindex: "0", "aria-label": said(chart) });
      caption.append(element("h4", chart.heading), legendOf(chart));
      figure.append(caption, element("p", chart.caption, { class: "caption" }), holder);
      grid.append(figure);
      const plot = charts.draw(holder, chart);
      charts.withTools(figure, () => chart, () => figure.querySelector(".legend"));
      return { chart, plot };
    });
    frame.dataset.shown = one.key;
  };

  const choose = (key, isToBeSeen = false) => {
    const one = all.find((entry) => entry.key === key);
    if (!one) return;
    if (![...found.options].some(({ value }) => value === key)) find.value = "";
    chosen = one;
    list();
    show(one);
    if (isToBeSeen) {
      history.replaceState(null, "", `#${key}`);
      frame.scrollIntoView({ block: "start" });
      document.getElementById("entity-name").focus({ preventScroll: true });
    }
  };

  /* Everything about the chosen one in one file: a row for each quantity and stage. */
  document.getElementById("entity-csv").onclick = () => {
    const names = [...new Set(shown.flatMap(({ chart }) => chart.series.map(({ name }) => name)))];
    const rows = shown.flatMap(({ chart }) => chart.labels.map((label, place) =>
      [chart.heading, chart.unit, label, ...names.map((name) => chart.series.find((series) => series.name === name)?.values[place] ?? "")]));
    const text = [["quantity", "unit", "stage", ...names], ...rows].map((entry) => entry.map(charts.cell).join(",")).join("\r\n");
    charts.download(charts.fileName(`${chosen.kind.key} ${chosen.name}`), `${text}\r\n`);
  };

  find.addEventListener("input", () => {
    const matching = list();
    if (matching.length === 1) choose(matching[0].key);
  });
  find.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && found.options.length) {
      event.preventDefault();
      found.focus();
      if (found.selectedIndex < 0) { found.selectedIndex = 0; choose(found.value); }
    }
    if (event.key === "Enter" && found.options.length) choose(found.selectedIndex < 0 ? found.options[0].value : found.value);
  });
  found.addEventListener("change", () => choose(found.value));
  for (const control of [scenario, blocks]) control.addEventListener("change", () => show(chosen));

  scenario.append(element("option", "none", { value: "" }), ...data.scenarios.map((name, place) => element("option", name, { value: place })));
  if (data.scenarios.length > 1) scenario.append(element("option", "all of these", { value: "all" }));
  if (!data.kinds.some((kind) => kind.blocks.length)) for (const part of [blocks, blocks.previousElementSibling]) part.hidden = true;

  /* Names in tables lead here. */
  for (const table of document.querySelectorAll("[data-kind]"))
    for (const cell of table.querySelectorAll("tbody tr > :first-child")) {
      const one = all.find(({ kind, name }) => kind.key === table.dataset.kind && name === cell.textContent);
      if (one) cell.replaceChildren(element("a", one.name, { href: `#${one.key}` }));
    }
  const follow = () => {
    const key = decodeURIComponent(location.hash.slice(1));
    if (all.some((one) => one.key === key)) { choose(key, true); return true; }
    return false;
  };
  addEventListener("hashchange", follow);
  list();
  if (!follow()) choose(all[0].key);
})();

"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const tip = document.getElementById("tip");
  const SVG = "http://www.w3.org/2000/svg";

  const written = (value) =>
    value === null ? "–" : value.toLocaleString("en-US", { maximumSignificantDigits: 6 });

  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  /* The cursor: a line at the nearest position of the plot below the pointer, and its numbers beside it. */
  const nearest = (positions, x) =>
    positions.reduce((best, at, place) => (Math.abs(at - x) < Math.abs(positions[best] - x) ? place : best), 0);

  const panelAt = (panels, x, y) =>
    panels.findIndex(({ box }) => x >= box[0] - 6 && x <= box[2] + 6 && y >= box[1] - 18 && y <= box[3] + 10);

  const fillTip = (panel, place) => {
    const unit = panel.unit ? ` ${panel.unit}` : "";
    const lines = panel.series.map((series) => {
      const line = element("span");
      line.append(element("i", series.name), element("em", written(series.values[place]) + unit));
      return line;
    });
    const head = panel.title ? `${panel.title}, ${panel.labels[place]}` : panel.labels[place];
    tip.replaceChildren(element("b", head), ...lines);
  };

  const placeTip = (x, y) => {
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = x + 16 + width > innerWidth ? x - 16 - width : x + 16;
    tip.style.left = `${Math.max(4, Math.min(left, innerWidth - width - 4))}px`;
    tip.style.top = `${Math.max(4, Math.min(y - height / 2, innerHeight - height - 4))}px`;
  };

  const withCursor = (svg, panels) => {
    const line = document.createElementNS(SVG, "line");
    line.setAttribute("class", "cursor");
    line.style.display = "none";
    svg.append(line);
    let which = 0;
    let place = -1;

    const hide = () => {
      line.style.display = "none";
      tip.hidden = true;
    };
    const show = (clientY) => {
      const panel = panels[which];
      const x = panel.positions[place];
      for (const [key, value] of Object.entries({ x1: x, x2: x, y1: panel.box[1], y2: panel.box[3] }))
        line.setAttribute(key, value);
      line.style.display = "";
      fillTip(panel, place);
      const matrix = svg.getScreenCTM();
      const at = new DOMPoint(x, (panel.box[1] + panel.box[3]) / 2).matrixTransform(matrix);
      placeTip(at.x, clientY ?? at.y);
    };
    const follow = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const found = panelAt(panels, at.x, at.y);
      if (found < 0 || !panels[found].positions.length) return hide();
      which = found;
      place = nearest(panels[which].positions, at.x);
      show(event.clientY);
    };
    const step = (event) => {
      const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: 0, ArrowDown: 0 };
      if (event.key === "Escape") return hide();
      if (!(event.key in moves)) return;
      event.preventDefault();
      if (event.key === "ArrowUp") which = Math.max(0, which - 1);
      if (event.key === "ArrowDown") which = Math.min(panels.length - 1, which + 1);
      place = Math.max(0, Math.min(panels[which].positions.length - 1, place + moves[event.key]));
      show();
    };
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("keydown", step);
    svg.addEventListener("blur", hide);
  };

  /* The same numbers as a table, made when it is opened. */
  const tableOf = (panel) => {
    const table = element("table");
    const head = element("tr");
    head.append(element("th", panel.unit || "", { scope: "col" }));
    for (const series of panel.series) head.append(element("th", series.name, { scope: "col", class: "num" }));
    const body = panel.labels.map((label, place) => {
      const row = element("tr");
      row.append(element("td", label));
      for (const series of panel.series) row.append(element("td", written(series.values[place]), { class: "num" }));
      return row;
    });
    table.createTHead().append(head);
    table.createTBody().append(...body);
    return table;
  };

  const withNumbers = (figure, panels) => {
    const details = element("details", undefined, { class: "numbers" });
    const scroll = element("div", undefined, { class: "scroll", tabindex: "0" });
    const choice = element("select", undefined, { "aria-label": "Which plot" });
    panels.forEach((panel, place) => choice.append(element("option", panel.title, { value: place })));
    const fill = () => scroll.replaceChildren(tableOf(panels[choice.value || 0]));
    choice.addEventListener("change", fill);
    details.addEventListener("toggle", () => details.open && fill());
    details.append(element("summary", "Numbers"), ...(panels.length > 1 ? [choice] : []), scroll);
    figure.append(details);
  };

  for (const figure of document.querySelectorAll("[data-chart]")) {
    const { panels } = data.charts[figure.dataset.chart];
    withCursor(figure.querySelector("svg.chart"), panels);
    withNumbers(figure, panels);
  }

  /* Light or dark: as the system says, until the button says otherwise. */
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const label = () => (button.textContent = isDark() ? "Light" : "Dark");
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  prefersDark.addEventListener("change", label);
  button.hidden = false;
  label();

  /* On paper nothing can be opened. */
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details:not(.numbers)")) details.open = true;
  });
})();

"use strict";
/* The charts that the page was written with, light and dark, and what paper needs. */
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  for (const figure of document.querySelectorAll("[data-chart]")) {
    const chart = data.charts[figure.dataset.chart];
    charts.draw(figure.querySelector(".plot"), chart);
    charts.withTools(figure, () => chart, () => figure.querySelector(".legend"));
  }

  /* Light or dark: as the system says, until the button says otherwise. */
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const change = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    charts.redraw();
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    change();
  });
  prefersDark.addEventListener("change", change);
  button.hidden = false;
  change();

  /* On paper nothing can be opened. */
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details:not(.numbers)")) details.open = true;
  });
})();

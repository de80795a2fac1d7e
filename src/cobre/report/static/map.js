"use strict";
/* The map is moved by scrolling, and made larger and smaller by buttons and keys. */
(() => {
  const figure = document.getElementById("system-map");
  if (!figure) return;
  const frame = figure.querySelector(".map-frame");
  const map = frame.querySelector("svg");
  const natural = map.viewBox.baseVal.width;
  const zoom = (factor) => {
    const before = map.getBoundingClientRect().width;
    const wanted = factor ? before * factor : frame.clientWidth;
    const width = Math.max(Math.min(frame.clientWidth, natural), Math.min(4 * natural, wanted));
    const share = (frame.scrollLeft + frame.clientWidth / 2) / before, down = (frame.scrollTop + frame.clientHeight / 2) / before;
    frame.classList.toggle("zoomed", width > frame.clientWidth + 1);
    map.style.width = `${width}px`;
    map.style.height = "auto";
    frame.scrollTo(share * width - frame.clientWidth / 2, down * width - frame.clientHeight / 2);
  };
  for (const button of figure.querySelectorAll("[data-zoom]")) button.onclick = () => zoom(Number(button.dataset.zoom));
  frame.onkeydown = ({ key }) => {
    if (key === "+") zoom(1.4);
    else if (key === "-") zoom(1 / 1.4);
    else if (key === "0") zoom(0);
  };
})();

"""The map of the system: links, zoom, and legible text."""

import json


def test_click_on_plant_shows_its_results(tab):
    name = tab.value("""(() => { const link = document.querySelector("#system-map a[href='#hydros-2']");
      link.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
      return link.querySelector("title").textContent.split(",")[0]; })()""")
    tab.until(f'document.getElementById("entity-name").textContent === {json.dumps(name)}')


def test_map_zooms_in_and_out(tab):
    width = 'document.querySelector("svg.map").getBoundingClientRect().width'
    before = tab.value(width)
    tab.value('document.querySelector(".map-frame").focus()')
    tab.press("+")
    assert tab.value(width) > 1.3 * before
    tab.value("document.querySelector(\"#system-map [data-zoom='0']\").click()")
    assert tab.value(width) <= before + 1


def test_map_scrolls_inside_its_frame_on_narrow_screen(tab):
    tab.resize(400, 800)
    tab.until("[...charts.drawn].every((u) => u.width === u.holder.clientWidth)")
    assert tab.value("document.scrollingElement.scrollWidth") <= 400
    assert tab.value('document.querySelector("svg.map").getBoundingClientRect().width') > 1000
    assert tab.value('document.querySelector(".map-frame").clientWidth') < 400


def test_labels_do_not_overlap(tab):
    over = tab.value(
        """(() => { const found = [...document.querySelectorAll("svg.map text")];
        const texts = found.map((text) => [text.textContent, text.getBBox()]);
        return texts.flatMap(([words, a], place) => texts.slice(place + 1).filter(([, b]) =>
          Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x) > 3
            && Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y) > 4
        ).map(([others]) => words + " / " + others)); })()"""
    )
    assert over == []

"""The report as a reader has it: pointer, keys, light and dark, a narrow screen, paper."""

import base64
import re

import pytest

# Where a panel's position is on the screen, and what the page says about it.
POINT = """(() => {
  const chart = JSON.parse(document.getElementById("report-data").textContent).charts["%(chart)s"];
  const panel = chart.panels[%(panel)d];
  const svg = document.querySelector("#%(chart)s svg");
  svg.scrollIntoView({block: "center", behavior: "instant"});
  const y = (panel.box[1] + panel.box[3]) / 2;
  const at = new DOMPoint(panel.positions[%(place)d], y).matrixTransform(svg.getScreenCTM());
  const numbers = panel.series.map((series) => series.values[%(place)d]);
  return {x: at.x, y: at.y, label: panel.labels[%(place)d], numbers, title: panel.title};
})()"""
TIP = 'document.getElementById("tip").hidden ? null : document.getElementById("tip").innerText'
LUMINANCE = """
const light = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [high, low] = [light(a), light(b)].sort((p, q) => q - p);
  return (high + 0.05) / (low + 0.05);
};
"""


def emulate(tab, scheme, media=""):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    tab.call("Emulation.setEmulatedMedia", media=media, features=features)


def shown_numbers(tip):
    return [float(found.replace(",", "")) for found in re.findall(r"-?\d[\d,]*\.?\d*(?=(?: [$\w/³]+)?(?:\n|$))", tip)]


def test_it_opens_without_errors_and_without_a_network(tab, report):
    errors = [e for e in tab.events if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
    assert errors == []
    asked = {e["params"]["request"]["url"] for e in tab.events if e["method"] == "Network.requestWillBeSent"}
    assert {url for url in asked if not url.startswith("data:")} == {report.resolve().as_uri()}
    assert tab.value('document.querySelectorAll("figure details.numbers").length') == tab.value(
        'document.querySelectorAll("svg.chart").length'
    )


@pytest.mark.parametrize(("chart", "panel"), [("bounds", 0), ("storage-plants", 3), ("mix", 0), ("cost-histogram", 0)])
def test_the_pointer_shows_numbers(tab, chart, panel):
    point = tab.value(POINT % {"chart": chart, "panel": panel, "place": 4})
    tab.move_mouse(point["x"], point["y"])
    tip = tab.value(TIP)
    assert point["label"] in tip
    assert point["title"] in tip
    numbers = shown_numbers(tip.split("\n", 1)[1])
    assert numbers == pytest.approx(point["numbers"], rel=1e-5)
    tab.move_mouse(1, 1)
    assert tab.value(TIP) is None


def test_keys_move_the_cursor(tab):
    tab.value('document.querySelector("#storage svg").focus()')
    tab.press("ArrowRight")
    tab.press("ArrowRight")
    assert "2030-02" in tab.value(TIP)
    tab.press("ArrowLeft")
    assert "2030-01" in tab.value(TIP)
    tab.press("Escape")
    assert tab.value(TIP) is None


def test_numbers_can_be_opened_as_a_table(tab):
    tab.value('document.querySelector("#water-values details.numbers").open = true')
    tab.value("new Promise((done) => setTimeout(done))")
    rows = tab.value('[...document.querySelectorAll("#water-values .numbers tr")].map((row) => row.innerText)')
    assert len(rows) == 25
    assert rows[1].startswith("2030-01")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(tab, scheme):
    emulate(tab, scheme)
    found = tab.value(
        f"""(() => {{ {LUMINANCE}
        const style = (query) => getComputedStyle(document.querySelector(query));
        const card = style(".card").backgroundColor, page = style("body").backgroundColor;
        return {{
          page, ink: contrast(style("h3").color, card), muted: contrast(style(".note").color, card),
          intro: contrast(style(".intro").color, page), tick: contrast(style("#storage svg text").fill, card),
          line: contrast(style("#storage svg [id*=line2d_] path[style*='--blue']").stroke, card),
        }}; }})()"""
    )
    light, dark = "rgb(244, 246, 248)", "rgb(16, 22, 29)"
    assert found.pop("page") == (dark if scheme == "dark" else light)
    assert found.pop("line") > 3
    assert min(found.values()) > 4.5, found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_and_bars_stand_out(tab, scheme):
    emulate(tab, scheme)
    weak = tab.value(
        f"""(() => {{ {LUMINANCE}
        const card = getComputedStyle(document.querySelector(".card")).backgroundColor;
        return [...document.querySelectorAll(".mark.line, .mark.bar, .mark.dash, .mark.dots")].filter((mark) => {{
          const style = getComputedStyle(mark);
          const colour = mark.classList.contains("bar") ? style.backgroundColor : style.borderTopColor;
          return contrast(colour, card) < 3;
        }}).map((mark) => mark.closest("figure").id + ": " + mark.parentElement.textContent); }})()"""
    )
    assert weak == []


def test_the_button_changes_the_colours(tab):
    before = tab.value("getComputedStyle(document.body).backgroundColor")
    assert tab.value('document.getElementById("theme").innerText') == "Dark"
    tab.value('document.getElementById("theme").click()')
    assert tab.value("getComputedStyle(document.body).backgroundColor") != before
    assert tab.value('document.getElementById("theme").innerText') == "Light"


@pytest.mark.parametrize("width", [360, 400, 768, 1600])
def test_nothing_sticks_out(tab, width):
    tab.resize(width, 900)
    assert tab.value("document.scrollingElement.scrollWidth") <= width
    outside = tab.value(
        """[...document.querySelectorAll("svg.chart")].flatMap((svg) => {
          const frame = svg.getBoundingClientRect();
          return [...svg.querySelectorAll("text")].filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 2 || box.right > frame.right + 2
              || box.top < frame.top - 2 || box.bottom > frame.bottom + 2;
          }).map((text) => svg.closest("figure").id + ": " + text.textContent);
        })"""
    )
    assert outside == []


OVERLAPS = """[...document.querySelectorAll("svg.chart")].flatMap((svg) => {
  const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
  return texts.flatMap(([words, a], place) => texts.slice(place + 1).filter(([, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4
  ).map(([others]) => svg.closest("figure").id + ": " + words + " / " + others));
})"""


@pytest.mark.parametrize("width", [360, 400, 768, 1200])
def test_no_words_lie_over_others(tab, width):
    tab.resize(width, 900)
    assert tab.value(OVERLAPS) == []


def test_letters_stay_large_enough_on_a_narrow_screen(tab):
    tab.resize(400, 900)
    smallest = tab.value(
        """Math.min(...[...document.querySelectorAll("svg.chart")].flatMap((svg) =>
          [...svg.querySelectorAll("text")].map((text) =>
            parseFloat(getComputedStyle(text).fontSize) * svg.getScreenCTM().a)))"""
    )
    assert smallest >= 9


def test_tables_fit_on_paper(tab):
    emulate(tab, "light", "print")
    tab.resize(703, 900)  # A4 without margins, in pixels
    wide = tab.value(
        """[...document.querySelectorAll(".card.table")].filter((card) =>
          card.querySelector("table").scrollWidth > card.clientWidth).map((card) => card.id)"""
    )
    assert wide == []


def test_paper_is_white_and_has_everything(tab):
    emulate(tab, "dark", "print")
    assert tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.value('getComputedStyle(document.querySelector("nav")).display') == "none"
    emulate(tab, "dark")
    pdf = base64.b64decode(tab.call("Page.printToPDF", printBackground=True)["data"])
    assert pdf.startswith(b"%PDF")
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 14
    assert tab.value('document.querySelector("#config").closest("details").open')


def test_names_of_elements_are_used_once(tab):
    assert (
        tab.value(
            '(() => { const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);'
            " return ids.length - new Set(ids).size; })()"
        )
        == 0
    )

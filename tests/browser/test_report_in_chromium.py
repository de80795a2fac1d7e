"""The report as a reader sees it: pointer, keyboard, light and dark, a narrow screen, paper."""

import base64
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cobre.report.document import write_report

TWO_RESERVOIRS = Path(__file__).parents[2] / "examples" / "two_reservoirs"
# Screen position of a chart point, and the text shown for it.
POINT = """(() => {
  const plot = [...charts.drawn].find((u) => u.holder.closest("figure").id === "%(chart)s");
  plot.holder.scrollIntoView({block: "center", behavior: "instant"});
  const frame = plot.over.getBoundingClientRect();
  const chart = plot.chart;
  return {x: frame.left + plot.valToPos(chart.x[%(place)d], "x"), y: frame.top + frame.height / 2,
    label: chart.labels[%(place)d], divisor: chart.divisor, numbers: chart.series.map(({values}) => values[%(place)d])};
})()"""
TIP = 'document.getElementById("tip").hidden ? null : document.getElementById("tip").innerText'
LUMINANCE = """
const light = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const darkest = (query, card) => {
  const canvas = document.querySelector(query), context = canvas.getContext("2d");
  const {data} = context.getImageData(0, 0, canvas.width, canvas.height);
  let most = 1;
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] === 255) most = Math.max(most, contrast(`rgb(${data.slice(at, at + 3).join(", ")})`, card));
  return most;
};
const contrast = (a, b) => {
  const [high, low] = [light(a), light(b)].sort((p, q) => q - p);
  return (high + 0.05) / (low + 0.05);
};
"""


def emulate(tab, scheme, media=""):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    tab.call("Emulation.setEmulatedMedia", media=media, features=features)


def shown_numbers(tab):
    """Return the numbers in the box at the cursor."""
    texts = tab.value('[...document.querySelectorAll("#tip em")].map((line) => line.textContent)')
    return [float(text.split(" ")[0].replace(",", "")) for text in texts]


def errors_of(tab):
    return [event for event in tab.events if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]


def test_page_opens_without_errors_and_network(tab, report):
    tab.until('document.querySelectorAll("#entity-charts canvas").length > 3')
    assert errors_of(tab) == []
    asked = {e["params"]["request"]["url"] for e in tab.events if e["method"] == "Network.requestWillBeSent"}
    outside = {url for url in asked if not url.startswith(("data:", "blob:"))}
    assert outside == {report.resolve().as_uri()}
    assert tab.value('document.querySelectorAll("figure details.numbers").length') == tab.value(
        'document.querySelectorAll("figure canvas").length'
    )


@pytest.mark.parametrize("chart", ["bounds", "storage", "mix"])
def test_pointer_shows_numbers(tab, chart):
    point = tab.value(POINT % {"chart": chart, "place": 4})
    tab.move_mouse(point["x"], point["y"])
    tab.until('!document.getElementById("tip").hidden')
    assert point["label"] in tab.value(TIP)
    assert shown_numbers(tab) == pytest.approx([number / point["divisor"] for number in point["numbers"]], rel=1e-3)
    tab.move_mouse(1, 1)
    tab.until('document.getElementById("tip").hidden')


def test_keys_move_the_cursor(tab):
    tab.value('document.querySelector("#storage .plot").focus()')
    tab.press("ArrowRight")
    tab.press("ArrowRight")
    assert "2030-02" in tab.value(TIP)
    tab.press("ArrowLeft")
    assert "2030-01" in tab.value(TIP)
    tab.press("End")
    assert "2031-12" in tab.value(TIP)
    tab.press("Escape")
    assert tab.value(TIP) is None


def test_numbers_can_be_opened_as_a_table(tab):
    tab.value('document.querySelector("#storage details.numbers").open = true')
    tab.until('document.querySelectorAll("#storage .numbers tr").length')
    rows = tab.value('[...document.querySelectorAll("#storage .numbers tr")].map((row) => row.innerText)')
    assert len(rows) == 25
    assert rows[1].startswith("2030-01")


def test_chart_is_enlarged_and_closed_by_the_keyboard(tab):
    tab.value('document.querySelector("#storage .tools button").focus()')
    tab.press("Enter")
    tab.until('document.getElementById("large").open')
    large = tab.value('document.querySelector("#large canvas").getBoundingClientRect().width')
    assert large > 1.5 * tab.value('document.querySelector("#storage canvas").getBoundingClientRect().width')
    tab.press("ArrowRight")
    assert "2030-01" in tab.value(TIP)
    tab.value("""(() => { const plot = [...charts.drawn].find((u) => u.holder.closest("dialog"));
      plot.holder.dispatchEvent(new KeyboardEvent("keydown", {key: "+"})); })()""")
    shown = """(() => { const {min, max} = [...charts.drawn].find((u) => u.holder.closest("dialog")).scales.x;
      return max - min; })()"""
    tab.until(f"{shown} < 14")
    tab.press("Escape")
    tab.press("Escape")
    tab.until('!document.getElementById("large").open')
    assert tab.value('document.activeElement.closest("figure").id') == "storage"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(tab, scheme):
    emulate(tab, scheme)
    found = tab.value(
        f"""(() => {{ {LUMINANCE}
        const style = (query) => getComputedStyle(document.querySelector(query));
        const card = style(".card").backgroundColor, page = style("body").backgroundColor;
        return {{
          page, ink: contrast(style("h3").color, card), muted: contrast(style(".note").color, card),
          intro: contrast(style(".intro").color, page), caption: contrast(style(".caption").color, card),
          field: contrast(style("#find").color, style("#find").backgroundColor), line: darkest("#storage canvas", card),
        }}; }})()"""
    )
    light, dark = "rgb(244, 246, 248)", "rgb(16, 22, 29)"
    assert found.pop("page") == (dark if scheme == "dark" else light)
    assert found.pop("line") > 3
    assert min(found.values()) > 4.5, found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_and_bars_contrast_with_page(tab, scheme):
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


def test_button_switches_colour_scheme(tab):
    before = tab.value("getComputedStyle(document.body).backgroundColor")
    assert tab.value('document.getElementById("theme").innerText') == "Dark"
    tab.value('document.getElementById("theme").click()')
    assert tab.value("getComputedStyle(document.body).backgroundColor") != before
    assert tab.value('document.getElementById("theme").innerText') == "Light"


@pytest.mark.parametrize("width", [360, 400, 768, 1600])
def test_nothing_overflows_the_page(tab, width):
    tab.until('document.querySelectorAll("#entity-charts canvas").length > 3')
    tab.resize(width, 900)
    tab.until(f"[...charts.drawn].every((u) => u.width === u.holder.clientWidth && u.width < {width})")
    assert tab.value("document.scrollingElement.scrollWidth") <= width
    outside = tab.value(
        """[...document.querySelectorAll(".uplot")].filter((plot) => {
          const card = plot.closest(".card").getBoundingClientRect(), box = plot.getBoundingClientRect();
          return box.left < card.left - 1 || box.right > card.right + 1;
        }).map((plot) => plot.closest("figure").id)"""
    )
    assert outside == []


def test_stage_labels_do_not_overlap(tab):
    tab.resize(400, 900)
    tab.until("[...charts.drawn].every((u) => u.width === u.holder.clientWidth)")
    gaps = tab.value(
        """[...charts.drawn].filter((u) => u.chart.axis === "stages").map((u) => {
          const places = u.axes[0]._splits, step = u.valToPos(places[1], "x") - u.valToPos(places[0], "x");
          return step - Math.max(...u.chart.labels.map((label) => label.length)) * 6.5;
        })"""
    )
    assert min(gaps) > 0


def test_tables_fit_on_paper(tab):
    emulate(tab, "light", "print")
    tab.resize(703, 900)  # A4 without margins, in pixels
    wide = tab.value(
        """[...document.querySelectorAll(".card.table")].filter((card) =>
          card.querySelector("table").scrollWidth > card.clientWidth).map((card) => card.id)"""
    )
    assert wide == []


def test_print_is_white_and_complete(tab):
    emulate(tab, "dark", "print")
    assert tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.value('getComputedStyle(document.querySelector("nav")).display') == "none"
    emulate(tab, "dark")
    pdf = base64.b64decode(tab.call("Page.printToPDF", printBackground=True)["data"])
    assert pdf.startswith(b"%PDF")
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 16
    assert tab.value('document.querySelector("#config").closest("details").open')


def test_element_ids_are_unique(tab):
    assert (
        tab.value(
            '(() => { const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);'
            " return ids.length - new Set(ids).size; })()"
        )
        == 0
    )


def test_axes_of_single_rank_and_iteration_have_labels(browser, tmp_path):
    command = [sys.executable, "-m", "cobre.cli", "run", TWO_RESERVOIRS, "--iterations", "1"]
    command += ["--workers", "1", "--no-simulation", "--output", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    browser.open(write_report(tmp_path))
    for chart, middle in (("ranks", 0.0), ("bounds", 1.0)):
        find = f'[...charts.drawn].find((u) => u.holder.closest("figure").id === "{chart}")'
        browser.value(f'document.getElementById("{chart}").scrollIntoView({{behavior: "instant"}})')
        browser.until(find)
        assert browser.value(f"(({{min, max}}) => [min, max])({find}.scales.x)") == [middle - 0.5, middle + 0.5]

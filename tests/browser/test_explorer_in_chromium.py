"""The explorer: search, charts and download of a plant, by pointer and by keyboard."""

import csv
import json
import time

import pytest
from pyarrow import parquet
from test_report_in_chromium import errors_of

NAME = 'document.getElementById("entity-name").textContent'


def is_shown(tab, name):
    tab.until(f"{NAME} === {json.dumps(name)}")
    key = tab.value('document.getElementById("found").value')
    tab.until(f'document.getElementById("explorer").dataset.shown === {json.dumps(key)}')


def type_text(tab, text):
    tab.value('document.getElementById("find").focus()')
    tab.call("Input.insertText", text=text)


def headings(tab):
    return tab.value('[...document.querySelectorAll("#entity-charts h4")].map((title) => title.textContent)')


@pytest.fixture
def study(report):
    return json.loads((report.parent / "study.json").read_text())


@pytest.fixture
def downloads(tab, tmp_path):
    tab.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    yield tmp_path
    tab.call("Browser.setDownloadBehavior", behavior="default")


def downloaded_file(folder, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (found := list(folder.glob("*.csv"))) and found[0].stat().st_size:
            return found[0]
        time.sleep(0.02)
    raise AssertionError(f"no file came: {list(folder.iterdir())}")


def test_every_entity_is_offered(tab, study):
    offered = tab.value('[...document.getElementById("found").options].map((option) => option.textContent)')
    known = [entity["name"] for found in study["entities"].values() for entity in found]
    assert sorted(offered) == sorted(known)


def test_search_finds_plant_by_part_of_name(tab, study):
    name = study["entities"]["hydros"][5]["name"]
    type_text(tab, name.lower()[1:])
    tab.press("Enter")
    is_shown(tab, name)
    assert {"Stored water", "Hydro generation", "Turbined flow", "Natural inflow"} <= set(headings(tab))
    assert errors_of(tab) == []


def test_plant_is_reachable_by_keyboard(tab):
    type_text(tab, "hydro")
    tab.press("ArrowDown")
    first = tab.value('document.getElementById("found").selectedOptions[0].textContent')
    is_shown(tab, first)
    assert tab.value("document.activeElement.id") == "found"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("thermals", ["Thermal generation"]),
        ("buses", ["Spot price", "Load"]),
        ("lines", ["Flow", "Congestion: share of hours and scenarios at the limit"]),
    ],
)
def test_explorer_shows_buses_and_lines(tab, study, kind, expected):
    entity = study["entities"][kind][0]
    tab.value(f'location.hash = "{kind}-{entity["id"]}"')
    is_shown(tab, entity["name"])
    assert set(expected) <= set(headings(tab))


def test_chart_has_the_numbers_of_the_tables(tab, report, study):
    hydro = study["entities"]["hydros"][2]
    tab.value(f'location.hash = "hydros-{hydro["id"]}"')
    is_shown(tab, hydro["name"])
    drawn = tab.value(
        """(() => { const {chart} = [...charts.drawn].find((u) => u.chart.heading === "Stored water");
        return Object.fromEntries(chart.series.map(({name, values}) => [name, values])); })()"""
    )
    rows = parquet.read_table(report.parent / "simulation" / "hydros.parquet").to_pylist()
    last = max(row["block_id"] for row in rows)
    stages = {}
    for row in rows:
        if row["hydro_id"] == hydro["id"] and row["block_id"] == last:
            stages.setdefault(row["stage_id"], []).append(row["storage_final_hm3"])
    expected = [sum(values) / len(values) for values in stages.values()]
    assert drawn["mean"] == pytest.approx(expected, rel=1e-4)


def test_choosing_scenario_and_blocks_updates_charts(tab):
    tab.until('document.getElementById("explorer").dataset.shown')
    choose = """(() => { const list = document.getElementById("%s"); list.value = "%s";
      list.dispatchEvent(new Event("change")); })()"""
    tab.value(choose % ("scenario", "all"))
    drawn = '[...charts.drawn].find((u) => u.chart.heading === "Stored water").chart.series.map(({name}) => name)'
    tab.until(f'{drawn}.some((name) => name.startsWith("most expensive (scenario "))')
    tab.value(choose % ("blocks", "each"))
    tab.until('[...charts.drawn].some((u) => u.chart.heading === "Turbined flow, mean by block")')
    names = tab.value(
        """[...charts.drawn].find((u) => u.chart.heading === "Turbined flow, mean by block")
        .chart.series.map(({name}) => name)"""
    )
    assert names[:2] == ["block 0", "block 1"]


def test_displayed_data_can_be_downloaded(tab, downloads, study):
    hydro = study["entities"]["hydros"][1]
    tab.value(f'location.hash = "hydros-{hydro["id"]}"')
    is_shown(tab, hydro["name"])
    tab.value('document.getElementById("entity-csv").click()')
    rows = list(csv.DictReader(downloaded_file(downloads).read_text(encoding="utf-8").splitlines()))
    assert {row["quantity"] for row in rows} == set(headings(tab))
    stored = [row for row in rows if row["quantity"] == "Stored water"]
    assert [row["stage"] for row in stored][:2] == ["2030-01", "2030-02"]
    assert float(stored[0]["5 %"]) <= float(stored[0]["median"]) <= float(stored[0]["95 %"])


def test_one_chart_can_be_downloaded(tab, downloads):
    tab.value('[...document.querySelectorAll("#bounds .tools button")].find((b) => b.textContent === "CSV").click()')
    rows = list(csv.DictReader(downloaded_file(downloads).read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 10
    assert float(rows[-1]["lower bound ($)"]) >= float(rows[0]["lower bound ($)"])


def test_names_in_tables_link_to_plant(tab, study):
    name = study["entities"]["hydros"][3]["name"]
    tab.value(
        f"""[...document.querySelectorAll("#hydros td a")].find((a) => a.textContent === {json.dumps(name)}).click()"""
    )
    is_shown(tab, name)


def test_fields_have_labels(tab):
    bare = tab.value(
        """[...document.querySelectorAll("input, select, button, [tabindex='0']")].filter((part) =>
          !part.textContent.trim() && !part.getAttribute("aria-label") && !(part.labels && part.labels.length)
        ).map((part) => part.outerHTML.slice(0, 80))"""
    )
    assert bare == []


def test_tools_of_a_chart_are_named_after_it(tab):
    names = tab.value(
        """(() => { const words = (id) => document.getElementById(id).textContent;
          return [...document.querySelectorAll("#bounds .tools button, #bounds summary")].map((part) =>
            part.getAttribute("aria-labelledby").split(" ").map(words).join(" ")); })()"""
    )
    assert names == ["Enlarge Bounds by iteration", "CSV Bounds by iteration", "Numbers Bounds by iteration"]

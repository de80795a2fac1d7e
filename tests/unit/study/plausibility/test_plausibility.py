"""Valid cases that look like a mistake: a warning with the numbers."""

import json
import shutil

import pyarrow as pa
import pytest
from published_data import PUBLISHED_CASES, ROOT
from pyarrow import compute, parquet
from small_cases import SmallCase, hydro

import cobre

EXAMPLES = ROOT / "examples"
LOADS, INFLOWS = "scenarios/load_seasonal_stats.parquet", "scenarios/inflow_seasonal_stats.parquet"


def scaled(file, column, change):
    """Spoil a column of a table."""

    def corrupt(folder):
        table = parquet.read_table(folder / file)
        values = change(table[column])
        position = table.column_names.index(column)
        parquet.write_table(table.set_column(position, column, values), folder / file)

    return corrupt


def times_1000(values):
    return compute.multiply(values, 1000.0)


def edited(file, change):
    """Spoil a JSON file."""

    def corrupt(folder):
        content = json.loads((folder / file).read_text())
        change(content)
        (folder / file).write_text(json.dumps(content))

    return corrupt


def cheap_deficit(content):
    content["buses"][0]["deficit_segments"] = [{"depth_mw": None, "cost": 0.004}]


def expensive_outflow(content):
    content["hydro"]["outflow_violation_below_cost"] = 1e9


def same_name(content):
    content["thermals"][1]["name"] = content["thermals"][0]["name"].upper()


def forced_plant(content):
    content["thermals"][0]["generation"] = {"min_mw": 5000.0, "max_mw": 6000.0}


def idle_plant(content):
    content["thermals"][2]["generation"] = {"min_mw": 0.0, "max_mw": 0.0}


def huge_plants(file, group, *path):
    """Multiply a capacity of the first plant by 1,000, like a value in kW or in dam3."""

    def change(content):
        place = content[group][0]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] *= 1000.0

    return edited(file, change)


def large_outflow(content):
    content["hydros"][0]["outflow"]["min_outflow_m3s"] = 50_000.0


IMPLAUSIBLE = {
    "load": (scaled(LOADS, "mean_mw", times_1000), ["the load is 651,000 MW in stage 0", "978 MW", "12 of 12 stages"]),
    "inflow": (
        scaled(INFLOWS, "mean_m3s", times_1000),
        ["the mean inflow over the study is", "times what it can turbine"],
    ),
    "outflow": (
        edited("system/hydros.json", large_outflow),
        ["hydro 0 (Upper), outflow.min_outflow_m3s: is 50,000 m3/s on average", "the minimum cannot be met"],
    ),
    "minimum": (
        edited("system/thermals.json", forced_plant),
        ["is 5,000 MW in stage", "the largest minimum is 5,000 MW, of thermal 0 (Combined cycle)"],
    ),
    "hydro capacity": (
        huge_plants("system/hydros.json", "hydros", "generation", "max_generation_mw"),
        ["generation.max_generation_mw: is 272,000 MW, 418 times the load of the whole system (651 MW)"],
    ),
    "thermal capacity": (
        huge_plants("system/thermals.json", "thermals", "generation", "max_mw"),
        ["generation.max_mw: is 210,000 MW, 323 times the load of the whole system (651 MW)"],
    ),
    "storage": (
        huge_plants("system/hydros.json", "hydros", "reservoir", "max_storage_hm3"),
        ["is 1.6e+06 hm3, which its mean inflow (156.495 m3/s including all plants upstream) takes 324 years to fill"],
    ),
    "negative": (
        scaled(INFLOWS, "mean_m3s", lambda values: pa.array([-500.0] * len(values))),
        ["hydro 0 (Upper)", "is -503.037 m3/s", "-1,004.27 m3/s including all plants upstream"],
    ),
    "deficit": (
        edited("system/buses.json", cheap_deficit),
        ["the cheapest deficit costs 0.004 $/MWh", "3 of 3 thermal plants", "thermal 2 (Gas turbine), 240.000 $/MWh"],
    ),
    "names": (edited("system/thermals.json", same_name), ["is used by 2 entities: ids 0, 1"]),
    "idle": (edited("system/thermals.json", idle_plant), ["thermal 2 (Gas turbine): cannot run in any stage"]),
    "range": (
        edited("penalties.json", expensive_outflow),
        [
            "costs in the objective range from",
            "(turbined_cost of hydro",
            "(outflow_violation_below_cost of hydro",
            "50,000,000,000",
        ],
    ),
}


@pytest.mark.parametrize("name", IMPLAUSIBLE)
def test_implausible_cases_are_warned_about(name, tmp_path):
    corrupt, words = IMPLAUSIBLE[name]
    case = shutil.copytree(EXAMPLES / "two_reservoirs", tmp_path / "case")
    corrupt(case)
    report = cobre.validate(case)
    assert report, "a warning keeps nothing from running"
    assert {problem.layer.value for problem in report.warnings} == {"plausibility"}
    missing = [word for word in words if word not in str(report)]
    assert not missing, str(report)


@pytest.mark.parametrize("name", ["two_reservoirs", "four_regions"])
def test_examples_are_plausible(name):
    assert cobre.validate(EXAMPLES / name).warnings == ()


@pytest.mark.skipif(not PUBLISHED_CASES.is_dir(), reason="the published cases are not next to the repository")
@pytest.mark.parametrize(
    "name", ["1dtoy", "4ree", "d02-single-hydro", "d03-two-hydro-cascade", "d06-fpha-variable-head"]
)
def test_published_cases_are_plausible(name):
    assert cobre.validate(PUBLISHED_CASES / name).warnings == ()


@pytest.mark.skipif(not PUBLISHED_CASES.is_dir(), reason="the published cases are not next to the repository")
def test_load_above_supply_gives_warning():
    (warning,) = cobre.validate(PUBLISHED_CASES / "d04-transmission").warnings
    assert "the load is 40 MW in stage 0, but its plants have only 20 MW and lines bring at most 15 MW" in str(warning)


def huge_findings(folder, stages=2, load=40.0, **limits):
    """Return the comparisons of implausible sizes that a small case gives."""
    case = SmallCase(
        hydros=[hydro(0, **limits)], stages=stages, load={0: load}, inflow={0: 10.0}, storage={0: 50.0}
    ).write(folder)
    findings = cobre.validate(case)
    assert findings, str(findings)
    return [str(found) for found in findings.warnings if found.code.name.startswith("implausible-")]


def test_size_of_plant_without_load_is_compared_with_largest_plant(tmp_path):
    assert huge_findings(tmp_path / "large", load=0.0, power=(0.0, 22_500.0)) == []
    (finding,) = huge_findings(tmp_path / "huge", load=0.0, power=(0.0, 22_500_000.0))
    assert "is 2.25e+07 MW, more than any plant in the world" in finding


def test_storage_in_study_of_two_months_is_compared_with_largest_reservoir(tmp_path):
    """The mean inflow of two months may be that of a dry season: it tells nothing about the years to fill."""
    assert huge_findings(tmp_path / "large", storage=(0.0, 180_000.0)) == []
    (finding,) = huge_findings(tmp_path / "huge", storage=(0.0, 180_000_000.0))
    assert "is 1.8e+08 hm3, more than any reservoir in the world" in finding
    (finding,) = huge_findings(tmp_path / "year", stages=12, storage=(0.0, 180_000.0))
    assert "571 years to fill" in finding


def narrow_lines(content):
    for line in content["lines"]:
        if line["target_bus_id"] == 3:
            line["capacity"] = {"direct_mw": 12.0, "reverse_mw": 8.0}


def test_narrow_lines_give_warning(tmp_path):
    """Two lines lead to the Plains, whose own plants cannot serve it in three months of the study."""
    case = shutil.copytree(EXAMPLES / "four_regions", tmp_path / "case")
    edited("system/lines.json", narrow_lines)(case)
    (warning,) = cobre.validate(case).warnings
    for words in ("bus 3 (Plains)", "the load is 931.177 MW in stage 0", "at most 24 MW", "3 of 24 stages"):
        assert words in str(warning)


def test_validation_report_includes_plausibility_findings(tmp_path):
    case = shutil.copytree(EXAMPLES / "two_reservoirs", tmp_path / "case")
    edited("system/thermals.json", same_name)(case)
    findings = cobre.validate(case).as_cobre_python()
    assert findings["valid"]
    assert [finding["kind"] for finding in findings["warnings"]] == ["plausibility"]

"""Twenty-five broken cases and fifteen implausible ones, made from an example: one run reports each in plain words.

`python tests/integration/io/test_broken_cases.py` prints the table.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import compute, parquet

import cobre

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "two_reservoirs"
HYDROS, THERMALS, BUSES = (f"system/{name}.json" for name in ("hydros", "thermals", "buses"))
STAGES, CONFIG, START = "stages.json", "config.json", "initial_conditions.json"
LOADS, INFLOWS = "scenarios/load_seasonal_stats.parquet", "scenarios/inflow_seasonal_stats.parquet"


def edit(file, *path, to):
    """Return a function that sets a value in a JSON file; `...` removes it."""

    def corrupt(folder):
        content = json.loads((folder / file).read_text())
        place = content
        for step in path[:-1]:
            place = place[step]
        if to is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = to
        (folder / file).write_text(json.dumps(content))

    return corrupt


def column(file, name, change):
    """Return a function that replaces a column of a table."""

    def corrupt(folder):
        table = parquet.read_table(folder / file)
        parquet.write_table(table.set_column(table.column_names.index(name), name, change(table[name])), folder / file)

    return corrupt


def apply_both(*changes):
    def corrupt(folder):
        for one in changes:
            one(folder)

    return corrupt


def write_text(file, content):
    def corrupt(folder):
        (folder / file).write_text(content)

    return corrupt


def delete_file(file):
    def corrupt(folder):
        (folder / file).unlink()

    return corrupt


def drop_column(file, name):
    def corrupt(folder):
        parquet.write_table(parquet.read_table(folder / file).drop_columns([name]), folder / file)

    return corrupt


def replace_first(value):
    """Return a function that replaces the first entry of a column."""
    return lambda values: pa.array([value, *values.to_pylist()[1:]], values.type)


def more_rows(file, name, value):
    """Return a function that repeats the rows of the first entity for another one."""

    def corrupt(folder):
        table = parquet.read_table(folder / file)
        rows = table.filter(compute.equal(table[name], table[name][0]))
        values = pa.array([value] * rows.num_rows, rows[name].type)
        rows = rows.set_column(rows.column_names.index(name), name, values)
        parquet.write_table(pa.concat_tables([table, rows]), folder / file)

    return corrupt


def cast_to_text(values):
    return values.cast("string")


def times(factor):
    return lambda values: compute.multiply(values, factor)


# A change, and words of the single error that it must cause.
BROKEN = {
    "a file is missing": (delete_file(THERMALS), "system/thermals.json: the file is missing"),
    "a file is empty": (write_text(THERMALS, ""), "system/thermals.json, line 1, column 1: the file is empty"),
    "a file is cut off": (write_text(THERMALS, '{"thermals": ['), "the file ends before its JSON object is complete"),
    "a comma too many": (
        write_text(THERMALS, '{"thermals": [],}'),
        "column 17: is not valid JSON: a comma before a closing bracket",
    ),
    "text for a number": (edit(THERMALS, "thermals", 0, "cost_per_mwh", to="48"), "cost_per_mwh: is '48'"),
    "a key with a typing error": (edit(CONFIG, "trainning", to={}), "config.json, trainning: "),
    "a field is missing": (edit(THERMALS, "thermals", 1, "bus_id", to=...), "thermal 1 (Coal), bus_id: is missing"),
    "an id twice": (edit(THERMALS, "thermals", 1, "id", to=0), "system/thermals.json, thermal 0"),
    "an unknown bus": (edit(THERMALS, "thermals", 0, "bus_id", to=7), "there is no bus 7"),
    "an unknown plant downstream": (edit(HYDROS, "hydros", 1, "downstream_id", to=9), "there is no hydro 9"),
    "a cascade in a circle": (edit(HYDROS, "hydros", 1, "downstream_id", to=0), "hydro"),
    "an unknown plant in the first volumes": (edit(START, "storage", 0, "hydro_id", to=5), "there is no hydro 5"),
    "a volume outside the reservoir": (
        edit(HYDROS, "hydros", 0, "reservoir", "min_storage_hm3", to=2000.0),
        "is 2000, above",
    ),
    "a negative limit": (edit(THERMALS, "thermals", 2, "generation", "max_mw", to=-90.0), "-90"),
    "a minimum above its maximum": (edit(THERMALS, "thermals", 0, "generation", "min_mw", to=300.0), "is 300, above"),
    "a date that is none": (edit(STAGES, "stages", 3, "start_date", to="2030-13-01"), "2030-13-01"),
    "a stage that ends before it begins": (
        edit(STAGES, "stages", 0, "start_date", to="2030-02-01"),
        "not after start_date",
    ),
    "hours below zero": (edit(STAGES, "stages", 2, "blocks", 0, "hours", to=-1.0), "hours"),
    "no openings": (edit(STAGES, "stages", 2, "num_openings", to=0), "num_openings"),
    "no stopping rule": (edit(CONFIG, "training", "stopping_rules", to=[]), "iteration_limit"),
    "a column is missing": (drop_column(INFLOWS, "std_m3s"), "std_m3s: the column is missing"),
    "a column of text": (
        column(LOADS, "mean_mw", cast_to_text),
        "expected float64, got string",
    ),
    "an unknown plant in a table": (more_rows(INFLOWS, "hydro_id", 8), "there is no hydro 8"),
    "a negative standard deviation": (column(INFLOWS, "std_m3s", replace_first(-3.0)), "std_m3s: is -3"),
    "not a number in a table": (column(LOADS, "mean_mw", replace_first(float("nan"))), "is not a finite number"),
}
# Likewise warnings: the case can be run.
IMPLAUSIBLE = {
    "load times 1000": (column(LOADS, "mean_mw", times(1000.0)), "the load is 651,000 MW"),
    "inflow times 1000": (column(INFLOWS, "mean_m3s", times(1000.0)), "times what it can turbine"),
    "a plant in kW": (
        edit(HYDROS, "hydros", 1, "generation", "max_generation_mw", to=286_000.0),
        "439 times the load of the whole system",
    ),
    "a reservoir in dam3": (
        edit(HYDROS, "hydros", 0, "reservoir", "max_storage_hm3", to=1.6e6),
        "takes 324 years to fill",
    ),
    "inflow below zero": (column(INFLOWS, "mean_m3s", times(-1.0)), "the mean inflow"),
    "a minimum outflow beyond the river": (
        edit(HYDROS, "hydros", 0, "outflow", "min_outflow_m3s", to=50_000.0),
        "the minimum cannot be met",
    ),
    "a minimum beyond the load": (
        edit(THERMALS, "thermals", 0, "generation", to={"min_mw": 5000.0, "max_mw": 6000.0}),
        "5,000 MW",
    ),
    "a deficit cheaper than plants": (
        edit(BUSES, "buses", 0, "deficit_segments", to=[{"depth_mw": None, "cost": 0.004}]),
        "load is shed before they run",
    ),
    "a limit cheaper to break than to keep": (
        apply_both(
            edit("penalties.json", "hydro", "generation_violation_below_cost", to=100.0),
            edit(HYDROS, "hydros", 0, "generation", "min_generation_mw", to=20.0),
            edit(HYDROS, "hydros", 0, "unit_groups", 0, "min_generation_mw", to=20.0),
        ),
        "the limit is violated before that plant runs",
    ),
    "a name twice": (edit(THERMALS, "thermals", 1, "name", to="Combined cycle"), "Combined cycle"),
    "a plant that never runs": (
        edit(THERMALS, "thermals", 2, "generation", to={"min_mw": 0.0, "max_mw": 0.0}),
        "thermal 2 (Gas turbine)",
    ),
    "costs of very different size": (
        edit("penalties.json", "hydro", "outflow_violation_below_cost", to=1e9),
        "a factor of",
    ),
    "no loads": (delete_file(LOADS), "no bus has a load in any stage"),
    "too little capacity": (column(LOADS, "mean_mw", times(3.0)), "MW in stage"),
    "a reservoir that starts above its top": (
        edit(START, "storage", 1, "value_hm3", to=900.0),
        "outside the limits 80 to 420",
    ),
}


def corrupted(folder, *changes):
    case = folder / "case"
    shutil.copytree(EXAMPLE, case, ignore=shutil.ignore_patterns("output"))
    for corrupt in changes:
        corrupt(case)
    return cobre.validate(case)


def test_unmodified_example_is_valid(tmp_path):
    report = corrupted(tmp_path)
    assert report
    assert report.warnings == ()


@pytest.mark.parametrize("name", BROKEN)
def test_corrupted_case_reports_only_its_error(tmp_path, name):
    corrupt, words = BROKEN[name]
    report = corrupted(tmp_path, corrupt)
    assert len(report.errors) == 1, str(report)
    assert words in str(report.errors[0])


@pytest.mark.parametrize("name", IMPLAUSIBLE)
def test_implausible_case_gives_warning(tmp_path, name):
    corrupt, words = IMPLAUSIBLE[name]
    report = corrupted(tmp_path, corrupt)
    assert report, str(report)
    assert any(words in str(warning) for warning in report.warnings), str(report)


# One mistake in each file, from all layers.
TOGETHER = (
    "text for a number",
    "an unknown plant downstream",
    "an unknown plant in the first volumes",
    "hours below zero",
    "no stopping rule",
    "a column of text",
    "an unknown plant in a table",
)


def test_mistakes_in_seven_files_are_reported_together(tmp_path):
    report = corrupted(tmp_path, *(BROKEN[name][0] for name in TOGETHER))
    missing = [name for name in TOGETHER if not any(BROKEN[name][1] in str(error) for error in report.errors)]
    assert missing == [], str(report)


def test_unknown_bus_does_not_hide_findings_of_later_layers(tmp_path):
    names = (
        "an unknown bus",
        "a volume outside the reservoir",
        "a negative standard deviation",
        "a stage that ends before it begins",
    )
    report = corrupted(tmp_path, *(BROKEN[name][0] for name in names))
    missing = [name for name in names if not any(BROKEN[name][1] in str(error) for error in report.errors)]
    assert missing == [], str(report)


def main():
    for name, (corrupt, _) in (BROKEN | IMPLAUSIBLE).items():
        with tempfile.TemporaryDirectory() as folder:
            report = corrupted(Path(folder), corrupt)
        sys.stdout.write(f"{name}:\n")
        sys.stdout.writelines(f"    {problem}\n" for problem in (*report.errors, *report.warnings))


if __name__ == "__main__":
    main()

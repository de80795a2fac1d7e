"""The page "The stage LP" names every family of columns and rows that the code builds, and no other."""

import ast
import re

import pytest
from snippets import DOCS, ROOT

from cobre.io.case import load_case
from cobre.study.preparation.prepare import prepare

PAGE = (DOCS / "explanation" / "stage-lp.md").read_text()
SOURCES = sorted((ROOT / "src" / "cobre" / "sddp" / "lp").glob("*.py"))
# Functions that add a family, and the position of its name among their arguments.
COLUMNS, ROWS = {"add_columns": 0, "slack": 0}, {"add_rows": 0, "_plant_rows": 2}
# Families that are numbered, so that code has a pattern for their names.
NUMBERED_COLUMNS = {"generic_N_short", "generic_N_over"}
NUMBERED_ROWS = {"plane_F", "generic_N_NAME"}


def families(functions):
    """Return the constant names passed to some functions, in all modules that build LPs."""
    calls = [node for file in SOURCES for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    named = [(getattr(call.func, "attr", getattr(call.func, "id", None)), call.args) for call in calls]
    names = [arguments[functions[name]] for name, arguments in named if name in functions and len(arguments) > 2]
    return {argument.value for argument in names if isinstance(argument, ast.Constant)}


def listed(heading):
    """Return the names in the first column of the table below a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


@pytest.mark.parametrize(
    ("heading", "functions", "numbered"), [("Variables", COLUMNS, NUMBERED_COLUMNS), ("Rows", ROWS, NUMBERED_ROWS)]
)
def test_page_lists_every_family(heading, functions, numbered):
    built = families(functions)
    assert len(built) >= 15, "the functions that add families have other names now"
    assert listed(heading) == built | numbered


@pytest.mark.parametrize("example", ["two_reservoirs", "four_regions", "large"])
def test_example_lps_use_listed_families(example):
    for stage in prepare(load_case(ROOT / "examples" / example)).problem.stages:
        columns, rows = (
            {name.partition("[")[0] for name in part}
            for part in (stage.program.names.columns, stage.program.names.rows)
        )
        assert columns <= listed("Variables")
        assert {re.sub(r"^plane_\d+$", "plane_F", row) for row in rows} <= listed("Rows")

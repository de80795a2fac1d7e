"""Bad values in every file, column and key that format 0.19 added: each is named with what to do, all at once."""

import math

import pyarrow as pa
import pytest
from pyarrow import parquet
from validation_case import apply_all, findings_after, put, valid_documents, valid_tables, write_case

from cobre.io.case import read_case
from cobre.io.findings import Findings

NOVOMODELO = "https://raw.githubusercontent.com/ons-ccee-epe/novomodelo/refs/heads/main/schemas/config.schema.json"
CONFIG, HYDROS, MODELS = "config.json", "system/hydros.json", "system/hydro_production_models.json"
CONSTRAINTS, PARAMETERS = "constraints/generic_constraints.json", "constraints/generic_parameters.json"
TABLE, COLUMN = "system/hydro_energy_productivity.parquet", "integrated_equivalent_productivity_mw_per_m3s"
SELECTION, FIT = "training.cut_selection", "production_models.1.stage_ranges.0.fpha_config"
NOT_A_NUMBER = ("x", math.nan, True, {}, 10**400)
NOT_A_CHOICE = ("x", "", 1, None, [])
NOT_POSITIVE = (*NOT_A_NUMBER, 0, -1.0, 1e30)


def use_019(documents, tables):
    """Convert the valid case to format 0.19 and add every field that the tests below corrupt."""
    documents[CONFIG] |= {"$schema": NOVOMODELO, "simulation": {"cut_set": "all"}}
    documents[CONFIG]["training"]["cut_selection"] = {"selection": {"method": "level1"}}
    documents[CONSTRAINTS]["constraints"][0]["slack"]["penalty_basis"] = "per_unit"
    documents[PARAMETERS]["scalar_parameters"].append(
        {"id": 2, "name": "e", "kind": "expression", "expression": "2 * @k + 1"}
    )
    tables[TABLE][COLUMN] = [0.8]


# The place, the field that the error names, and bad values. Null is the default if it is not among them.
PLACES = {
    "method": (f"{CONFIG}:{SELECTION}.selection.method", "selection", NOT_A_CHOICE),
    "lookback": (f"{CONFIG}:{SELECTION}.selection.lookback_iterations", "lookback_iterations", (*NOT_POSITIVE, 1.5)),
    "cap": (f"{CONFIG}:{SELECTION}.max_active_per_stage", "max_active_per_stage", (*NOT_A_NUMBER, -1, 1.5, 1e30)),
    "activity": (f"{CONFIG}:{SELECTION}.row_activity_tolerance", "row_activity_tolerance", (*NOT_A_NUMBER, -1.0, 1e30)),
    "cut set": (f"{CONFIG}:simulation.cut_set", "simulation.cut_set", NOT_A_CHOICE),
    "basis": (f"{CONSTRAINTS}:constraints.0.slack.penalty_basis", "slack.penalty_basis", NOT_A_CHOICE),
    "penalty": (f"{CONSTRAINTS}:constraints.0.slack.penalty", "slack.penalty", (*NOT_POSITIVE, None)),
    "kind": (f"{PARAMETERS}:scalar_parameters.2.kind", "kind", NOT_A_CHOICE),
    "expression": (
        f"{PARAMETERS}:scalar_parameters.2.expression",
        "expression",
        ("", "1 +", "@q", "1 / 0", "hydro_storage(0)", ")", "1e400", "@", 5, None, [], {}, True),
    ),
    "constraint": (
        f"{CONSTRAINTS}:constraints.0.expression",
        "expression",
        (
            *("", "hydro_storage(0) / 0 <= 1", "hydro_storage(0) * hydro_storage(1) <= 1", "(hydro_storage(0) <= 1"),
            *("1 <= 2", "hydro_storage(0) <= @q", "hydro_storage(99) <= 1", "hydro_storage(0) <= 1 <= 2", 5, None, []),
        ),
    ),
    "tag": (f"{PARAMETERS}:scalar_parameters.1.computed_spec.tag", "computed_spec.tag", NOT_A_CHOICE),
    "tag's plant": (
        f"{PARAMETERS}:scalar_parameters.1.computed_spec.hydro_id",
        "hydro_id",
        ("x", 1.5, 99, -1, True, []),
    ),
    "diversion": (f"{HYDROS}:hydros.0.diversion.max_flow_m3s", "diversion.max_flow_m3s", (*NOT_A_NUMBER, -1.0, 1e30)),
    "target": (f"{HYDROS}:hydros.0.diversion.downstream_id", "diversion.downstream_id", ("x", 99, 1.5, None, [])),
    "turbined fit": (f"{MODELS}:{FIT}.turbined_fit_max_m3s", "fpha_config.turbined_fit_max_m3s", NOT_POSITIVE),
    "spillage fit": (f"{MODELS}:{FIT}.spillage_fit_max_m3s", "fpha_config.spillage_fit_max_m3s", NOT_POSITIVE),
    "productivity": (
        f"{MODELS}:production_models.0.stage_ranges.0.productivity_mw_per_m3s",
        "productivity_mw_per_m3s",
        (*NOT_A_NUMBER, -0.1, 1e30),
    ),
}
CELLS = {
    "null id": ("hydro_id", pa.array([None], pa.int32()), "row 0, hydro_id: is null"),
    "unknown plant": ("hydro_id", pa.array([99], pa.int32()), "there is no hydro 99"),
    "unknown stage": ("stage_id", pa.array([99], pa.int32()), "there is no stage 99"),
    "text": (COLUMN, pa.array(["x"]), "expected float64, got string"),
    "list": (COLUMN, pa.array([[1.0]]), "expected float64, got list"),
    "flag": (COLUMN, pa.array([True]), "expected float64, got bool"),
    "whole number": (COLUMN, pa.array([1], pa.int64()), "expected float64, got int64"),
    "not a number": (COLUMN, pa.array([math.nan]), f"row 0, {COLUMN}: is not a finite number"),
    "infinite": (COLUMN, pa.array([math.inf]), f"row 0, {COLUMN}: is not a finite number"),
    "too large": (COLUMN, pa.array([1e30]), f"row 0, {COLUMN}: is too large"),
    "negative": (COLUMN, pa.array([-0.5]), f"hydro 1, {COLUMN}: is -0.5"),
    "missing": (COLUMN, None, f"{COLUMN}: the column is missing"),
    "negative outflow": ("reference_outflow_m3s", pa.array([-1.0]), "reference_outflow_m3s: is -1"),
    "negative productivity": ("specific_productivity_mw_per_m3s_per_m", pa.array([-1.0]), "_per_m: is -1"),
}


def test_unmodified_case_is_valid(tmp_path):
    assert [str(error) for error in findings_after(tmp_path, use_019).errors] == []


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in PLACES for value in PLACES[name][2]], ids=str)
def test_invalid_value_is_reported_with_remedy(tmp_path, name, value):
    place, field, _ = PLACES[name]
    errors = findings_after(tmp_path, apply_all(use_019, put(place, value))).errors
    assert [error.file for error in errors] == [place.partition(":")[0]] * len(errors)
    assert any(field in error.field for error in errors), [str(error) for error in errors]
    assert all(error.advice for error in errors)


def read_with_cell(folder, column, values, rows=1):
    """Return the errors of the case with another column, as Parquet stores it, in its table of productivities."""
    documents, tables = valid_documents(), valid_tables()
    use_019(documents, tables)
    write_case(folder, documents, tables)
    table = parquet.read_table(folder / TABLE)
    table = table.drop_columns([column]) if column in table.column_names else table
    table = table if values is None else table.append_column(column, values)
    parquet.write_table(pa.concat_tables([table] * rows), folder / TABLE)
    problems = Findings()
    read_case(folder, problems)
    return [str(error) for error in problems.errors]


@pytest.mark.parametrize("name", CELLS)
def test_invalid_cell_is_reported(tmp_path, name):
    column, values, words = CELLS[name]
    errors = read_with_cell(tmp_path, column, values)
    assert all(error.startswith(TABLE) for error in errors), errors
    assert any(words in error for error in errors), errors


def test_repeated_rows_are_reported(tmp_path):
    [error] = read_with_cell(tmp_path, COLUMN, pa.array([0.8]), rows=2)
    assert error.startswith(f"{TABLE}, hydro 1: appears 2 times")


def test_all_invalid_values_are_reported_together(tmp_path):
    names = [name for name in PLACES if name not in ("kind", "tag's plant", "method")]  # they hide others
    changes = [put(PLACES[name][0], [] if name != "constraint" else 5) for name in names]
    errors = findings_after(tmp_path, apply_all(use_019, *changes)).errors
    for name in names:
        place, field, _ = PLACES[name]
        found = [error for error in errors if error.file == place.partition(":")[0] and field in error.field]
        assert found, (name, [str(error) for error in errors])


def test_unreadable_parameter_is_not_also_undefined(tmp_path):
    errors = findings_after(tmp_path, apply_all(use_019, put(f"{PARAMETERS}:scalar_parameters.0.values", "x"))).errors
    assert [error.field for error in errors] == ["values"], [str(error) for error in errors]


def test_cap_without_rows_is_valid(tmp_path):
    """Novomodelo reads 0 as it reads 1: cuts of the current iteration stay in any case."""
    assert not findings_after(tmp_path, apply_all(use_019, put(f"{CONFIG}:{SELECTION}.max_active_per_stage", 0))).errors

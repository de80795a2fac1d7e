"""Findings on numbers that only format 0.19 has: divisions, and charges for plants out of service."""

from dataclasses import replace

import pyarrow as pa
import pytest
from format_019_cases import AT_REST, CONSTRAINED, PlantCase, constrained
from pyarrow import parquet

import cobre

TWO = {"id": 0, "name": "k", "kind": "constant", "value": 2.0}
LATER = {"id": 0, "name": "k", "kind": "per_stage", "values": [[0, 4.0], [1, 2.0], [2, 2.0]]}
RATIO = {"id": 1, "name": "e", "kind": "expression", "expression": "300 / (@k - 2)"}
IDLE = "is {} while the plant is not in service, in stage 0: format 0.19 charges for it as for a violation"


@pytest.mark.parametrize(
    "case",
    [
        constrained("hydro_storage(0) * 3 / (@k - 2) >= 600", "per_unit", TWO),
        constrained("hydro_storage(0) >= 600 / (@k - 2)", "per_unit", TWO),
        constrained("hydro_storage(0) >= @e", "per_unit", TWO, RATIO),
    ],
    ids=["coefficient", "bound", "expression"],
)
def test_division_by_zero_through_parameters_is_an_error(tmp_path, case):
    [error] = cobre.validate(case.write(tmp_path)).errors
    assert str(error).startswith(
        "constraints/generic_constraints.json, constraint 0 (c), expression: "
        "something is divided by 0 in stage 0: by a sum with @k"
    )
    assert "other values" in error.remedy
    with pytest.raises(cobre.errors.CobreError, match="divided by 0 in stage 0: by a sum with @k"):
        cobre.train(tmp_path)


HUGE = {"id": 0, "name": "k", "kind": "constant", "value": 1e20}
SQUARE = {"id": 1, "name": "e", "kind": "expression", "expression": "@k * @k * 1e300"}


@pytest.mark.parametrize(
    ("case", "number"),
    [
        (constrained("1e308 * 1e308 * hydro_storage(0) >= 600", "per_unit"), "inf"),
        (constrained("hydro_storage(0) >= 2e20", "per_unit"), "2e+20"),
        (constrained("hydro_storage(0) >= -1e308 - 1e308", "per_unit"), "-inf"),
        (constrained("2 * @k * hydro_storage(0) >= 600", "per_unit", HUGE), "2e+20"),
        (constrained("hydro_storage(0) >= @e", "per_unit", HUGE, SQUARE), "inf"),
        (constrained("@e / @k * hydro_storage(0) >= 600", "per_unit", HUGE, SQUARE), "inf"),
    ],
)
def test_numbers_that_overflow_or_count_as_infinite_are_errors(tmp_path, case, number):
    [error] = cobre.validate(case.write(tmp_path)).errors
    assert str(error).startswith(
        "constraints/generic_constraints.json, constraint 0 (c), expression: "
        f"a coefficient or bound is beyond 1e+20 in stage 0: {number}"
    )
    assert "smaller numbers" in error.remedy
    with pytest.raises(cobre.errors.CobreError, match=r"beyond 1e\+20"):
        cobre.train(tmp_path)


def test_stages_without_constraint_row_are_ignored(tmp_path):
    case = constrained("hydro_storage(0) >= @e", "per_unit", LATER, RATIO)
    assert cobre.validate(case.write(tmp_path)).errors == ()


def test_every_stage_and_the_other_findings_are_named(tmp_path):
    case = constrained("hydro_storage(0) >= @e", "per_unit", LATER, RATIO).write(tmp_path)
    columns = {"constraint_id": [0] * 3, "stage_id": [0, 1, 2], "block_id": [None] * 3}
    table = pa.table({name: pa.array(values, pa.int32()) for name, values in columns.items()})
    table = table.append_column("bound_lower", pa.array([0.0] * 3))
    parquet.write_table(table, case / "constraints/generic_constraint_bounds.parquet", compression="zstd")
    [error] = cobre.validate(case).errors
    assert "in stages 1, 2: by a sum with @k" in str(error)


def test_divisions_by_nonzero_numbers_are_valid(tmp_path):
    for name, case in CONSTRAINED.items():
        assert cobre.validate(case.write(tmp_path / name)).errors == ()


def charges(folder):
    return [warning for warning in cobre.validate(folder).warnings if "not in service" in warning.message]


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("outflow", "min_outflow_m3s", 5),
        ("turbined", "min_turbined_m3s", 4),
        ("generation", "min_generation_mw", 4),
        ("filling", "min_turbined_m3s", 4),
    ],
)
def test_minimums_charged_out_of_service_give_warning(tmp_path, name, field, value):
    [warning] = charges(AT_REST[name].write(tmp_path / "new"))
    assert (warning.entity, warning.field) == ("hydro 0 (H0)", field)
    assert warning.message.startswith(IDLE.format(value))
    assert charges(replace(AT_REST[name], version="0.18").write(tmp_path / "old")) == []


def test_plants_in_service_and_filling_outflows_are_not_charged(tmp_path):
    outflow = {"min_outflow_m3s": 5.0, "max_outflow_m3s": 200.0}
    assert charges(PlantCase(hydro={"outflow": outflow}).write(tmp_path / "always")) == []
    filling = replace(AT_REST["filling"], minimum={}, hydro=AT_REST["filling"].hydro | {"outflow": outflow})
    assert charges(filling.write(tmp_path / "filling")) == []


@pytest.mark.parametrize(("name", "field"), [("outflow", "min_outflow_m3s"), ("turbined", "min_turbined_m3s")])
def test_remedy_ends_the_charge(tmp_path, name, field):
    case = AT_REST[name].write(tmp_path)
    [warning] = charges(case)
    before = cobre.train(case).lower_bound
    ids = {"hydro_id": 0, "stage_id": 0} | ({"hydro_unit_group_id": 0} if name == "turbined" else {})
    columns = {key: pa.array([value], pa.int32()) for key, value in ids.items()}
    columns |= {"block_id": pa.array([None], pa.int32()), field: pa.array([0.0])}
    path = case / warning.expected.rpartition(" ")[2]
    path.parent.mkdir(exist_ok=True)
    parquet.write_table(pa.table(columns), path, compression="zstd")
    assert charges(case) == []
    value = 5.0 if name == "outflow" else 4.0
    assert before - cobre.train(case).lower_bound == pytest.approx(value * 730.0 * 10_000.0, rel=1e-9)

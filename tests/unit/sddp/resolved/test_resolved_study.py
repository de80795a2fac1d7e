"""Discounting, filling, production models and generic rows of a resolved study."""

import numpy as np
import pytest
from small_cases import SmallCase, group, hydro, thermal

from cobre.io.case import load_case
from cobre.sddp.resolved import resolve


@pytest.fixture
def study(tmp_path):
    def build(**fields):
        fields = {"thermals": [thermal(0, 50.0, 100.0)], "stages": 3, "load": {0: 10.0}} | fields
        return resolve(load_case(SmallCase(**fields).write(tmp_path)))

    return build


def test_discount_factors(study):
    stages = study(rate=0.12).stages
    assert [stage.discount for stage in stages] == [1.12 ** -(days / 365.25) for days in (31, 29, 31)]
    assert stages[0].discount == pytest.approx(0.9904275227202862, rel=1e-15)


def test_nearest_discount_rate_applies(study, tmp_path):
    edges = [
        {"source_id": 0, "target_id": 1, "probability": 1.0, "annual_discount_rate_override": 0.2},
        {"source_id": 1, "target_id": 2, "probability": 1.0, "annual_discount_rate_override": 0.3},
    ]
    case = SmallCase(stages=3, rate=0.1, stage_fields={1: {"annual_discount_rate_override": 0.5}})
    stages = case.stages_document()
    stages["policy_graph"]["transitions"] = edges
    factors = [stage.discount for stage in study(documents={"stages.json": stages}).stages]
    assert factors == [1.2 ** -(31 / 365.25), 1.5 ** -(29 / 365.25), 1.1 ** -(31 / 365.25)]


def test_filling_targets(study):
    """A dead volume of 30 hm3 and 5 m3/s over 730 hours: 13.14 hm3 still come in the second stage."""
    filling = {"start_stage_id": 0, "filling_min_rate_m3s": 5.0}
    plant = hydro(0, storage=(30.0, 100.0), entry_stage_id=2, filling=filling)
    resolved = study(hydros=[plant, hydro(1)], filling_storage={0: 4.0}, storage={1: 9.0}, inflow={0: 9.0, 1: 1.0})
    first, second, third = (stage.hydro for stage in resolved.stages)
    assert resolved.initial_storage_hm3.tolist() == [4.0, 9.0]
    assert [part.is_filling.tolist() for part in (first, second, third)] == [[True, False], [True, False], [False] * 2]
    assert [part.was_filled[0] for part in (first, second, third)] == [False, False, True]
    assert first.filling_target_hm3[0] == pytest.approx(16.86)
    assert second.filling_target_hm3[0] == 30.0
    assert np.isnan(third.filling_target_hm3).all()
    assert np.isnan(first.filling_target_hm3[1])
    assert first.max_turbined_m3s[0].tolist() == [0.0]
    assert first.max_spillage_m3s[0].tolist() == [np.inf]
    assert third.min_storage_hm3[0] == 30.0


def test_filling_rate_of_a_stage(study):
    filling = {"start_stage_id": 0, "filling_min_rate_m3s": 5.0}
    plant = hydro(0, storage=(30.0, 100.0), entry_stage_id=2, filling=filling)
    rows = [{"hydro_id": 0, "stage_id": 1, "filling_min_rate_m3s": 8.0}]
    resolved = study(hydros=[plant], inflow={0: 9.0}, tables={"constraints/hydro_bounds": rows})
    assert resolved.stages[0].hydro.filling_target_hm3[0] == pytest.approx(30.0 - 8.0 * 2.628)


def production(*models):
    return {"system/hydro_production_models.json": {"production_models": list(models)}}


def test_productivity_by_ranges_of_stages(study):
    ranges = [
        {"start_stage_id": 0, "end_stage_id": 1, "model": "constant_productivity", "productivity_mw_per_m3s": 0.7},
        {"start_stage_id": 1, "end_stage_id": None, "model": "linearized_head", "productivity_mw_per_m3s": 0.9},
    ]
    models = production({"hydro_id": 0, "selection_mode": "stage_ranges", "stage_ranges": ranges})
    stages = study(hydros=[hydro(0)], documents=models).stages
    assert [stage.hydro.productivity_mw_per_m3s.tolist() for stage in stages] == [[0.7], [0.7], [0.9]]
    assert stages[0].hydro.planes == (None,)


def test_productivity_by_season_and_from_the_table(study):
    seasons = [{"season_id": 1, "model": "constant_productivity", "productivity_mw_per_m3s": 0.6}]
    models = production(
        {"hydro_id": 0, "selection_mode": "seasonal", "default_model": "constant_productivity", "seasons": seasons}
    )
    definitions = [{"id": number, "label": str(number), "month_start": number + 1} for number in range(12)]
    stages = SmallCase(stages=3, stage_fields={number: {"season_id": number} for number in range(3)}).stages_document()
    stages["season_definitions"] = {"cycle_type": "monthly", "seasons": definitions}
    names = ("reference_outflow_m3s", "specific_productivity_mw_per_m3s_per_m")
    rows = [
        {"hydro_id": 0, "stage_id": stage, "equivalent_productivity_mw_per_m3s": value} | dict.fromkeys(names)
        for stage, value in ((0, 0.5), (2, 0.8))
    ]
    resolved = study(
        hydros=[hydro(0)],
        documents=models | {"stages.json": stages},
        tables={"system/hydro_energy_productivity": rows},
    )
    assert [stage.hydro.productivity_mw_per_m3s[0] for stage in resolved.stages] == [0.5, 0.6, 0.8]


def planes(stage, *numbers):
    names = ("plane_id", "gamma_0", "gamma_v", "gamma_q", "gamma_s", "kappa")
    return {"hydro_id": 0, "stage_id": stage} | dict(zip(names, numbers, strict=True))


def test_given_planes(study):
    rows = [
        planes(None, 1, 2.0, 0.1, 0.8, -0.1, 0.5),
        planes(None, 0, 1.0, 0.2, 0.7, 0.0, None),
        planes(1, 0, 3.0, 0.3, 0.6, 0.0, 1.0),
    ]
    resolved = study(hydros=[hydro(0, model="fpha")], tables={"system/fpha_hyperplanes": rows})
    first, second = resolved.stages[0].hydro, resolved.stages[1].hydro
    assert first.planes[0].tolist() == [[1.0, 0.2, 0.7, 0.0], [1.0, 0.1, 0.8, -0.1]]
    assert second.planes[0].tolist() == [[3.0, 0.3, 0.6, 0.0]]
    assert np.isnan(first.productivity_mw_per_m3s).all()


def test_plant_out_of_service_needs_no_productivity(study):
    models = production(
        {
            "hydro_id": 1,
            "selection_mode": "stage_ranges",
            "stage_ranges": [{"start_stage_id": 0, "model": "constant_productivity", "productivity_mw_per_m3s": 0.7}],
        }
    )
    resolved = study(hydros=[hydro(0, entry_stage_id=9), hydro(1)], documents=models)
    assert resolved.stages[0].hydro.productivity_mw_per_m3s.tolist() == [0.0, 0.7]


def generic(*expressions, parameters=(), penalty=100.0):
    slack = {"enabled": penalty is not None} | ({"penalty": penalty} if penalty is not None else {})
    constraints = [
        {"id": number, "name": f"c{number}", "expression": text, "slack": slack}
        for number, text in enumerate(expressions)
    ]
    return {
        "constraints/generic_constraints.json": {"constraints": constraints},
        "constraints/generic_parameters.json": {"scalar_parameters": list(parameters)},
    }


def bound(constraint, stage, block=None, lower=None, upper=None):
    return {
        "constraint_id": constraint,
        "stage_id": stage,
        "block_id": block,
        "bound_lower": lower,
        "bound_upper": upper,
    }


def rows_of(study, documents, bounds, **fields):
    fields = {"hydros": [hydro(0, downstream=1), hydro(1)], "hours": (300.0, 430.0)} | fields
    tables = {"constraints/generic_constraint_bounds": bounds}
    stages = study(documents=documents, tables=tables, **fields).stages
    return [stage.generic_rows for stage in stages]


def shape(row):
    return [(term.variable, term.entity, term.block, term.coefficient) for term in row.terms]


def test_constraint_has_one_row_per_block_or_per_stage(study):
    documents = generic("hydro_turbined(1) + 2*hydro_storage_final(0)", "hydro_storage(0) - 3*hydro_storage_initial(1)")
    first, second, third = rows_of(
        study, documents, [bound(0, 0, upper=9.0), bound(1, 0, lower=1.0), bound(0, 1, 1, 2.0)]
    )
    assert [row.block for row in first] == [0, 1, None]
    assert sorted(shape(first[1])) == [("hydro_storage_final", 0, None, 2.0), ("hydro_turbined", 1, 1, 1.0)]
    assert (first[0].lower, first[0].upper) == (-np.inf, 9.0)
    assert (first[2].lower, first[2].upper) == (1.0, np.inf)
    assert [(row.block, row.lower) for row in second] == [(1, 2.0)]
    assert third == ()


def test_parameters_constants_and_inline_bounds(study):
    parameters = [
        {"id": 0, "name": "k", "kind": "constant", "value": 3.0},
        {"id": 1, "name": "s", "kind": "per_stage", "values": [[0, 1.0], [1, 2.0], [2, 4.0]]},
        {
            "id": 2,
            "name": "b",
            "kind": "per_stage_block",
            "block_values": [[stage, block, 10.0 * stage + block + 1] for stage in range(3) for block in range(2)],
        },
    ]
    documents = generic(
        "2*@s * hydro_storage(0) + 7 <= 100*@k + 5",
        "@b * hydro_storage(0)",
        "hydro_turbined(0) == @b",
        parameters=parameters,
    )
    _, rows, _ = rows_of(study, documents, [bound(0, 1), bound(1, 1, upper=1.0), bound(2, 1)])
    assert [(row.name, row.block) for row in rows] == [("c0", None), ("c1", 0), ("c1", 1), ("c2", 0), ("c2", 1)]
    assert (rows[0].terms[0].coefficient, rows[0].upper, rows[0].slack_cost) == (4.0, 298.0, 100.0)
    assert [row.terms[0].coefficient for row in rows[1:3]] == [11.0, 12.0]
    assert [(row.lower, row.upper) for row in rows[3:]] == [(11.0, 11.0), (12.0, 12.0)]


def test_terms_of_a_block_a_bus_and_a_hard_row(study):
    groups = [group(0, 0, (0.0, 25.0), (0.0, 25.0)), group(1, 1, (0.0, 25.0), (0.0, 25.0))]
    documents = generic("hydro_generation(1, 0, bus=1) - bus_deficit(1)", penalty=None)
    fields = {"hydros": [hydro(0, downstream=1), hydro(1, groups=groups)], "buses": 2}
    rows = rows_of(study, documents, [bound(0, 0, 1, upper=3.0)], **fields)[0]
    assert [(term.variable, term.entity, term.block, term.bus) for term in rows[0].terms] == [
        ("hydro_generation", 1, 0, 1),
        ("bus_deficit", 1, 1, None),
    ]
    assert rows[0].slack_cost is None


GEOMETRY = [
    {"hydro_id": plant, "volume_hm3": volume, "height_m": height + 100.0 * (1 - plant), "area_km2": 1.0}
    for plant in (0, 1)
    for volume, height in ((0.0, 200.0), (50.0, 220.0), (120.0, 238.0), (200.0, 250.0))
]


def plant_with_head(number, level, **fields):
    return hydro(
        number,
        storage=(10.0, 150.0),
        turbined=(0.0, 30.0),
        power=(0.0, 30.0),
        tailrace={"type": "polynomial", "coefficients": [level, 0.05, 0.0002]},
        hydraulic_losses={"type": "factor", "value": 0.03},
        specific_productivity_mw_per_m3s_per_m=0.009,
        **fields,
    )


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("equivalent_productivity", 1.0),
        ("accumulated_productivity", 2.0),
        ("specific_productivity", 0.009),
        ("reference_volume", 101.0),
        ("reference_turbine", 30.0),
        ("min_storage", 10.0),
        ("max_storage", 150.0),
        ("integrated_equivalent_productivity", 0.6536462785714285),
        ("integrated_accumulated_productivity", 0.6536462785714285 * 2),
        ("max_stored_energy", 0.6536462785714285 * 2 * 140),
    ],
)
def test_computed_parameters(study, tag, value):
    """The numbers of the Rust program (cobre-python 0.18.0) for this plant."""
    parameters = [{"id": 0, "name": "p", "kind": "computed", "computed_spec": {"tag": tag, "hydro_id": 0}}]
    fields = {
        "hydros": [plant_with_head(0, 250.0, downstream=1), plant_with_head(1, 150.0)],
        "documents": generic("@p * hydro_storage(0)", parameters=parameters),
        "tables": {
            "constraints/generic_constraint_bounds": [bound(0, 0, upper=1e6)],
            "system/hydro_geometry": GEOMETRY,
        },
    }
    row = study(storage={0: 50.0, 1: 50.0}, **fields).stages[0].generic_rows[0]
    assert row.terms[0].coefficient == pytest.approx(value, rel=1e-14)

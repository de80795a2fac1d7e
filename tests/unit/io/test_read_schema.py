"""Every key of every JSON file is checked, and described in our own words."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from validation_case import apply_all, drop, findings_after, put, valid_documents, write_case

from cobre.io.case import read_case
from cobre.io.findings import Findings, Layer

FOREIGN_WORDS = ("pydantic", "Input should", "valid integer", "Field required", "validation error", "Traceback")


def paths(node, way=()):
    """Return every path in a document."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield (*way, key)
            yield from paths(value, (*way, key))
    elif isinstance(node, list):
        for index, value in enumerate(node[:1]):  # the elements of an array are alike
            yield from paths(value, (*way, index))


def replaced(document, way, value):
    changed = copy.deepcopy(document)
    node = changed
    for key in way[:-1]:
        node = node[key]
    node[way[-1]] = value
    return changed


def read_with(folder, name, content):
    (folder / name).write_text(json.dumps(content))
    problems = Findings()
    return read_case(folder, problems), problems


@pytest.mark.parametrize("name", sorted(valid_documents()))
def test_wrong_types_are_reported_in_every_field(tmp_path, name):
    documents = valid_documents()
    write_case(tmp_path, documents, {})
    for way in paths(documents[name]):
        case, problems = read_with(tmp_path, name, replaced(documents[name], way, {"surprise": [1]}))
        assert case is None, way
        in_schema = [problem for problem in problems.errors if problem.layer is Layer.SCHEMA]
        texts = [str(problem) for problem in in_schema if problem.file == name]
        assert texts, way
        assert not any(word in text for word in FOREIGN_WORDS for text in texts), texts


@pytest.mark.parametrize("name", sorted(valid_documents()))
def test_unknown_keys_are_reported_in_every_object(tmp_path, name):
    documents = valid_documents()
    write_case(tmp_path, documents, {})
    objects = [()] + [way for way in paths(documents[name]) if isinstance(value_at(documents[name], way), dict)]
    for way in objects:
        if way == ("profiles",) or (not way and name == "constraints/generic_parameters.json"):
            continue  # names of profiles are free, and that file allows other keys
        changed = copy.deepcopy(documents[name])
        value_at(changed, way)["surprise"] = 1
        case, problems = read_with(tmp_path, name, changed)
        assert case is None, way
        assert any(problem.field.endswith("surprise") for problem in problems.errors), way


def value_at(node, way):
    for key in way:
        node = node[key]
    return node


@pytest.mark.parametrize("name", ["config.json", "stages.json", "penalties.json", "system/hydros.json"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_json_documents_raise_nothing(tmp_path, name, data):
    documents = valid_documents()
    if not (tmp_path / name).exists():
        write_case(tmp_path, documents, {})
    way = data.draw(st.sampled_from(list(paths(documents[name]))))
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5)
    junk = data.draw(
        st.recursive(scalars, lambda part: st.lists(part) | st.dictionaries(st.text(), part), max_leaves=4)
    )
    _, problems = read_with(tmp_path, name, replaced(documents[name], way, junk))
    assert all(isinstance(str(problem), str) for problem in problems)


@pytest.mark.parametrize(
    ("corrupt", "text"),
    [
        (
            put("system/hydros.json:hydros.1.reservoir.max_storage_hm3", "lots"),
            "system/hydros.json, hydro 1 (H1), reservoir.max_storage_hm3: is 'lots' (expected a number (hm3))",
        ),
        (
            put("system/hydros.json:hydros.1.reservoir.max_storage_hm3", None),
            "system/hydros.json, hydro 1 (H1), reservoir.max_storage_hm3: is null (expected a number (hm3))",
        ),
        (
            put("system/hydros.json:hydros.0.unit_groups.1.bus_id", 1.5),
            "system/hydros.json, hydro 0 (H0), unit_groups[1].bus_id: is 1.5 (expected a whole number)",
        ),
        (
            put("system/hydros.json:hydros.0.reservior", {}),
            "system/hydros.json, hydro 0 (H0), reservior: is not a field of the format (did you mean `reservoir`?)",
        ),
        (
            put("system/hydros.json:hydros.0.generation.model", "magic"),
            "hydro 0 (H0), generation.model: is 'magic' (expected constant_productivity, linearized_head or fpha)",
        ),
        (
            put("system/hydros.json:hydros.0.penalties.evaporation_violation_pos_cost", 3.0),
            "hydro 0 (H0), penalties.evaporation_violation_pos_cost: is not a field of the format",
        ),
        (
            put("system/buses.json:buses.0.operational_start_date", "1704067200"),
            "system/buses.json, bus 0 (A), operational_start_date: is '1704067200' (expected a date like 2024-01-31)",
        ),
        (
            put("system/buses.json:buses.0.operational_start_date", "2024-02-30"),
            "bus 0 (A), operational_start_date: is '2024-02-30' (expected a date of the calendar, like 2024-01-31)",
        ),
        (
            put("system/thermals.json:thermals.0.id", 2**31),
            "thermals.json, thermal 2147483648 (T), id: is 2147483648 (expected an id of at most 32 bits)",
        ),
        (
            put("system/thermals.json:thermals.0.cost_per_mwh", float("inf")),
            "thermal 0 (T), cost_per_mwh: is too large (expected a number between -1e+20 and 1e+20)",
        ),
        (put("system/lines.json:lines.0.losses_percent", None), "line 0 (AB), losses_percent: is null"),
        (put("system/thermals.json:thermals.0.id", True), "id: is true (expected a whole number)"),
        (
            put("config.json:training.stopping_rules.0.limit", 0),
            "config.json, training.stopping_rules[0].limit: is 0 (expected at least 1)",
        ),
        (
            put("config.json:training.stopping_rules.0.type", "patience"),
            "training.stopping_rules[0]: `type` is 'patience' (expected one of iteration_limit, time_limit,",
        ),
        (put("config.json:training.selection", {}), "training.selection: has no `method`"),
        (
            put("stages.json:stages.0.risk_measure", "fear"),
            "stage 0, risk_measure: is 'fear' (expected expectation)",
        ),
        (
            put("stages.json:stages.0.risk_measure", {"cvar": {"alpha": 0.5}}),
            "stage 0, risk_measure.cvar.lambda: is missing",
        ),
        (put("stages.json:stages.0.risk_measure", 3), "stage 0, risk_measure: is 3 (expected an object)"),
        (put("stages.json:stages.0.blocks", {}), "stage 0, blocks: is an object (expected an array)"),
        (
            put("penalties.json:hydro.spillage_cost", [1]),
            "penalties.json, hydro.spillage_cost: is an array (expected a number)",
        ),
        (drop("stages.json:policy_graph"), "stages.json, policy_graph: is missing"),
        (
            put("initial_conditions.json:past_inflows", []),
            "past_inflows: is not a field of the format (now dated windows in `recent_observations`)",
        ),
        (
            put("scenarios/correlation.json:profiles.default.correlation_groups.0.entities.0.type", "wind"),
            "profiles.default.correlation_groups[0].entities[0].type: is 'wind' (expected inflow, load or ncs)",
        ),
        (
            put(
                "system/hydro_production_models.json:production_models.2.stage_ranges.0.fpha_config.fitting_window",
                {"volume_min_percentile": 20.0},
            ),
            "stage_ranges[0].fpha_config.fitting_window.volume_min_percentile: is 20.0 (expected at most 1.0)",
        ),
        (
            put("system/hydros.json:hydros.2.tailrace", {"type": "polynomial", "points": []}),
            "hydro 2 (H2), tailrace.points: is not a field of tailrace (polynomial) (use `coefficients`)",
        ),
        (
            put("system/hydros.json:hydros.2.hydraulic_losses", {"type": "constant"}),
            "hydro 2 (H2), hydraulic_losses.value_m: is missing (hydraulic_losses (constant) needs it)",
        ),
    ],
)
def test_schema_violations_are_reported(tmp_path, corrupt, text):
    problems = findings_after(tmp_path, corrupt)
    assert any(text in str(problem) for problem in problems.errors), [str(problem) for problem in problems.errors]
    assert all(problem.layer is Layer.SCHEMA for problem in problems.errors)


@pytest.mark.parametrize(
    ("corrupt", "text"),
    [
        (put("system/buses.json:buses.1.id", 0), "bus 0, id: is used 2 times"),
        (put("system/hydros.json:hydros.1.id", 0), "hydro 0, id: is used 2 times"),
        (
            put("system/hydros.json:hydros.0.unit_groups.1.id", 0),
            "hydro 0 (H0), unit group 0, id: is used 2 times",
        ),
        (put("stages.json:stages.1.id", 0), "stage 0, id: is used 2 times"),
        (put("stages.json:stages.0.blocks.1.id", 0), "stage 0, block 0, id: is used 2 times"),
        (put("stages.json:season_definitions.seasons.1.id", 0), "season 0, id: is used 2 times"),
        (put("initial_conditions.json:storage.1.hydro_id", 0), "storage of hydro 0, hydro_id: appears 2 times"),
        (
            put("system/hydro_production_models.json:production_models.1.hydro_id", 0),
            "production model of hydro 0, hydro_id: appears 2 times",
        ),
        (
            put(
                "scenarios/load_factors.json:load_factors",
                [{"bus_id": 0, "stage_id": 0, "block_factors": []}] * 2,
            ),
            "bus 0, stage 0, block_factors: appears 2 times",
        ),
    ],
)
def test_duplicate_ids_are_reported(tmp_path, corrupt, text):
    problems = findings_after(tmp_path, corrupt)
    assert any(text in str(problem) for problem in problems.errors), [str(problem) for problem in problems.errors]


NOT_MODELLED = [
    (put("stages.json:policy_graph.type", "cyclic"), "policy_graph.type"),
    (
        put("config.json:training.stopping_rules", [{"type": "iteration_limit", "limit": 3}, {"type": "gap"}]),
        "training.stopping_rules",
    ),
    (put("stages.json:stages.0.sampling_method", "selective"), "sampling_method"),
]


@pytest.mark.parametrize(("corrupt", "field"), NOT_MODELLED)
def test_unmodelled_features_are_rejected_with_remedy(tmp_path, corrupt, field):
    problems = findings_after(tmp_path, corrupt)
    found = [problem for problem in problems.errors if problem.field == field]
    assert found, [str(problem) for problem in problems.errors]
    assert found[0].advice


def test_weekly_seasons_and_short_stages_are_fine_without_lags(tmp_path):
    corrupt = apply_all(
        put("stages.json:season_definitions.cycle_type", "custom"),
        drop("scenarios/inflow_ar_coefficients.parquet"),
        drop("scenarios/inflow_history.parquet"),
        put("stages.json:stages.2.end_date", "2024-03-20"),
    )
    problems = findings_after(tmp_path, corrupt)
    assert not [
        problem for problem in problems.errors if "not modelled" in problem.message or "lags" in problem.message
    ]

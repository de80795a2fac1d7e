"""Tests of format detection and of features that only one format has."""

import json

import pytest
from validation_case import apply_all, findings_after, put, put_columns, valid_documents, valid_tables, write_case

from cobre.io.case import load_case, read_case
from cobre.io.findings import Findings
from cobre.io.saving.case_writer import save_case

NOVOMODELO = "https://raw.githubusercontent.com/ons-ccee-epe/novomodelo/refs/heads/main/schemas/config.schema.json"
COBRE = "https://raw.githubusercontent.com/cobre-rs/cobre/refs/heads/main/schemas/config.schema.json"
CONFIG, HYDROS = "config.json", "system/hydros.json:hydros"
CONSTRAINTS = "constraints/generic_constraints.json:constraints"
PARAMETERS = "constraints/generic_parameters.json:scalar_parameters"
MODELS = "system/hydro_production_models.json"


def add_integrated(_, tables):
    tables["system/hydro_energy_productivity.parquet"]["integrated_equivalent_productivity_mw_per_m3s"] = [0.8]


BASIS = put(f"{CONSTRAINTS}.0.slack.penalty_basis", "per_unit")
AS_019 = apply_all(put(f"{CONFIG}:$schema", NOVOMODELO), BASIS, add_integrated)


def read_after(folder, corrupt):
    documents, tables = valid_documents(), valid_tables()
    corrupt(documents, tables)
    write_case(folder, documents, tables)
    problems = Findings()
    case = read_case(folder, problems)
    problems.raise_errors("case")
    return case


def unchanged(_, __):
    pass


@pytest.mark.parametrize(
    ("corrupt", "version"),
    [
        (unchanged, "0.18"),
        (put(f"{CONFIG}:$schema", COBRE), "0.18"),
        (AS_019, "0.19"),
        (apply_all(BASIS, add_integrated), "0.19"),
        (apply_all(put(f"{CONFIG}:simulation", {"cut_set": "all"}), BASIS, add_integrated), "0.19"),
        (
            apply_all(put("stages.json:$schema", NOVOMODELO.replace("config", "stages")), BASIS, add_integrated),
            "0.19",
        ),
    ],
)
def test_schema_address_determines_format(tmp_path, corrupt, version):
    assert read_after(tmp_path, corrupt).format_version == version


def test_one_column_determines_the_format(tmp_path):
    assert read_after(tmp_path, apply_all(add_integrated, BASIS)).format_version == "0.19"
    problems = findings_after(tmp_path, add_integrated)
    assert any("slack.penalty_basis: is missing" in str(problem) for problem in problems.errors)


def test_defaults_are_those_of_the_format(tmp_path):
    def without_method(documents, _):
        documents[CONFIG].pop("modeling", None)
        documents[CONFIG]["training"]["cut_selection"] = {"selection": {"method": "level1"}}

    old = read_after(tmp_path / "old", without_method).config
    new = read_after(tmp_path / "new", apply_all(AS_019, without_method)).config
    assert old.modeling.inflow_non_negativity.method == "penalty"
    assert new.modeling.inflow_non_negativity.method == "truncation_with_penalty"
    assert new.simulation.cut_set == "all"


OF_019 = {
    "lookback": (
        put(f"{CONFIG}:training.cut_selection", {"selection": {"method": "level1", "lookback_iterations": 9}}),
        "config.json, training.cut_selection.selection.lookback_iterations: belongs to format 0.19",
        "training.cut_selection.state_window",
    ),
    "cut set": (
        put(f"{CONFIG}:simulation", {"cut_set": "all"}),
        "simulation.cut_set: belongs to format 0.19",
        "remove it",
    ),
    "basis": (BASIS, "constraint 0 (cap), slack.penalty_basis: belongs to format 0.19", "by hour"),
    "kind": (
        put(f"{PARAMETERS}.1", {"id": 1, "name": "c", "kind": "expression", "expression": "2 * @k"}),
        "parameter 1 (c), kind: belongs to format 0.19",
        "another kind",
    ),
    "tag": (
        put(f"{PARAMETERS}.1.computed_spec.tag", "max_stored_energy_mwh"),
        "parameter 1 (c), computed_spec.tag: belongs to format 0.19",
        "without a unit",
    ),
    "fit": (
        put(f"{MODELS}:production_models.1.stage_ranges.0.fpha_config.turbined_fit_max_m3s", 40.0),
        "fpha_config.turbined_fit_max_m3s: belongs to format 0.19",
        "remove it",
    ),
    "diversion": (
        put(f"{HYDROS}.0.diversion.max_flow_m3s", None),
        "hydro 0 (H0), diversion.max_flow_m3s: belongs to format 0.19",
        "m3/s",
    ),
}
OF_018 = {
    "lml1": (
        put(f"{CONFIG}:training.cut_selection", {"selection": {"method": "lml1"}}),
        "config.json, training.cut_selection.selection.method: belongs to format 0.18",
        'use "level1"',
    ),
    "domination": (
        put(f"{CONFIG}:training.cut_selection", {"selection": {"method": "domination", "domination_tolerance": 1.0}}),
        "selection.method: belongs to format 0.18",
        'use "level1"',
    ),
    "tie": (
        put(f"{CONFIG}:training.cut_selection", {"selection": {"method": "level1", "tie_tolerance": 1e-6}}),
        "selection.tie_tolerance: belongs to format 0.18",
        "exactly",
    ),
    "model": (
        put(f"{HYDROS}.0.generation.model", "linearized_head"),
        "hydro 0 (H0), generation.model: belongs to format 0.18",
        "constant_productivity",
    ),
}


@pytest.mark.parametrize("name", OF_019)
def test_case_of_format_018_has_nothing_of_019(tmp_path, name):
    corrupt, words, remedy = OF_019[name]
    problems = findings_after(tmp_path, apply_all(put(f"{CONFIG}:$schema", COBRE), corrupt))
    [found] = [problem for problem in problems.errors if words in str(problem)]
    assert "this case is of format 0.18 ($schema of config.json)" in found.message
    assert remedy in found.advice


@pytest.mark.parametrize("name", OF_018)
def test_case_of_format_019_has_nothing_of_018(tmp_path, name):
    corrupt, words, remedy = OF_018[name]
    problems = findings_after(tmp_path, apply_all(AS_019, corrupt))
    [found] = [problem for problem in problems.errors if words in str(problem)]
    assert remedy in found.advice


def test_setting_of_other_format_is_reported_once(tmp_path):
    corrupt = put(f"{CONFIG}:training.cut_selection", {"selection": {"method": "domination"}})
    [found] = findings_after(tmp_path / "new", apply_all(AS_019, corrupt)).errors
    assert "method: belongs to format 0.18" in str(found)
    [found] = findings_after(tmp_path / "old", apply_all(put(f"{CONFIG}:$schema", COBRE), corrupt)).errors
    assert "domination_tolerance: is missing" in str(found)


@pytest.mark.parametrize(
    ("corrupt", "in_018", "in_019"),
    [
        (
            put(f"{CONFIG}:training.cut_selection", {"selection": {"method": "best"}}),
            "one of level1, lml1, domination, dynamic",
            "one of level1, dynamic",
        ),
        (
            put(f"{HYDROS}.0.generation.model", "best"),
            "constant_productivity, linearized_head or fpha",
            "constant_productivity or fpha",
        ),
    ],
    ids=["selection", "model"],
)
def test_error_lists_choices_of_the_format(tmp_path, corrupt, in_018, in_019):
    [old] = findings_after(tmp_path / "old", apply_all(put(f"{CONFIG}:$schema", COBRE), corrupt)).errors
    [new] = findings_after(tmp_path / "new", apply_all(AS_019, corrupt)).errors
    assert (old.expected, new.expected) == (in_018, in_019)


def test_all_features_of_other_format_are_reported_together(tmp_path):
    changes = [corrupt for corrupt, _, _ in OF_019.values() if corrupt is not OF_019["tag"][0]]
    problems = findings_after(tmp_path, apply_all(put(f"{CONFIG}:$schema", COBRE), *changes))
    assert sum("belongs to format 0.19" in str(problem) for problem in problems.errors) == len(changes)


@pytest.mark.parametrize(
    ("slack", "field", "remedy"),
    [
        ({"enabled": True, "penalty": 5.0}, "slack.penalty_basis", '"per_hour" for a row in MW or m3/s'),
        ({"enabled": True, "penalty_basis": "per_unit"}, "slack.penalty", "add it"),
        ({"enabled": True, "penalty": 5.0, "penalty_basis": "per_day"}, "slack.penalty_basis", "per_hour"),
        ({"enabled": False, "penalty": 5.0}, "slack.penalty", "enabled"),
        ({"enabled": False, "penalty_basis": "per_hour"}, "slack.penalty_basis", "enabled"),
    ],
)
def test_slacks_of_format_019_require_penalty_basis(tmp_path, slack, field, remedy):
    problems = findings_after(tmp_path, apply_all(AS_019, put(f"{CONSTRAINTS}.0.slack", slack)))
    [found] = problems.errors
    assert (found.field, remedy in found.advice) == (field, True), str(found)


def test_new_column_is_required(tmp_path):
    problems = findings_after(tmp_path, apply_all(put(f"{CONFIG}:$schema", NOVOMODELO), BASIS))
    [found] = problems.errors
    assert found.field == "integrated_equivalent_productivity_mw_per_m3s"
    assert found.message == "the column is missing"


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        ({"method": "level1", "check_frequency": 4, "lookback_iterations": 3}, "is 3, below check_frequency"),
        ({"method": "level1", "lookback_iterations": 0}, "lookback_iterations"),
        ({"method": "level1", "lookback_iterations": 2.5}, "lookback_iterations"),
    ],
)
def test_windows_of_states_are_checked(tmp_path, selection, words):
    corrupt = put(f"{CONFIG}:training.cut_selection", {"selection": selection})
    problems = findings_after(tmp_path, apply_all(AS_019, corrupt))
    assert [words in str(problem) for problem in problems.errors] == [True]


def test_dynamic_selection_of_format_019_excludes_cap(tmp_path):
    """novomodelo 0.19.1 also rejects it; cobre-python 0.18.0 accepts it."""
    corrupt = put(f"{CONFIG}:training.cut_selection", {"selection": {"method": "dynamic"}, "max_active_per_stage": 5})
    [found] = findings_after(tmp_path, apply_all(AS_019, corrupt)).errors
    assert found.field == "training.cut_selection.max_active_per_stage"
    assert "the method dynamic" in found.message and "level1" in str(found)
    assert not findings_after(tmp_path, corrupt).errors


def test_format_019_is_kept_when_saving(tmp_path):
    selection = {"selection": {"method": "level1", "check_frequency": 2, "lookback_iterations": 6}}
    case = read_after(
        tmp_path / "given",
        apply_all(
            AS_019,
            put(f"{CONFIG}:training.cut_selection", selection),
            put(f"{CONFIG}:simulation", {"cut_set": "active"}),
            put(f"{CONSTRAINTS}.0.expression", "hydro_turbined(0, 1) * 3 / (@k + 1) <= (@e - 2) / @k"),
            put(f"{PARAMETERS}.1", {"id": 1, "name": "e", "kind": "expression", "expression": "-(@k + 2) / @k * 4"}),
            put(f"{HYDROS}.0.diversion.max_flow_m3s", None),
        ),
    )
    again = load_case(save_case(case, tmp_path / "given_again"))
    assert again.format_version == "0.19"
    assert again.config == case.config
    assert again.generic_constraints.constraints == case.generic_constraints.constraints
    assert again.generic_constraints.parameters == case.generic_constraints.parameters
    assert again.system == case.system
    written = json.loads((tmp_path / "given_again" / CONFIG).read_text())
    assert written["$schema"] == NOVOMODELO
    assert written["training"]["cut_selection"]["selection"]["lookback_iterations"] == 6
    assert written["simulation"]["cut_set"] == "active"


def test_format_018_is_kept_when_saving(tmp_path):
    case = read_after(tmp_path / "given", unchanged)
    save_case(case, tmp_path / "given_again")
    texts = [path.read_text() for path in (tmp_path / "given_again").rglob("*.json")]
    assert not any(word in text for text in texts for word in ("$schema", "penalty_basis", "cut_set"))


def test_productivities_of_single_rows_may_be_null(tmp_path):
    corrupt = put_columns("hydro_energy_productivity", integrated_equivalent_productivity_mw_per_m3s=[None])
    assert not findings_after(tmp_path, apply_all(AS_019, corrupt)).errors

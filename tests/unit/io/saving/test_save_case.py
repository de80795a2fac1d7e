"""A case that is saved and loaded again is the same case."""

from dataclasses import replace

import numpy as np
import pytest
from published_data import PUBLISHED_CASES, ROOT
from shuffled_case import same
from validation_case import valid_documents, valid_tables, write_case

import cobre
from cobre.core.case import ABSENT_ID, Correlation, CorrelationGroup
from cobre.core.config import (
    BoundaryPolicy,
    CutSelectionConfig,
    DominationSelection,
    DynamicSelection,
    Level1Selection,
    ScenarioSource,
    SolverConfig,
    SolverProfile,
)
from cobre.core.generic_constraints import Coefficient, GenericConstraint, GenericConstraints, Parameter, Term
from cobre.core.hydro import (
    FittingWindow,
    FphaConfig,
    HydroProduction,
    PlaneReduction,
    ProductionChoice,
    ReferenceVolume,
    StageRange,
)
from cobre.core.stopping import BoundStalling, IterationLimit, SimulationBased, TimeLimit
from cobre.core.temporal import CvarParameters, StateVariables
from cobre.io.findings import InvalidCaseError
from cobre.io.input_files.constraint_expressions import parameter, parse_constraint
from cobre.io.saving.documents import config_document, expression_text, study_documents
from cobre.io.storage.atomic import WriteError

FOLDERS = sorted(path.parent for place in (ROOT / "examples", PUBLISHED_CASES) for path in place.glob("*/config.json"))


def saved(case, folder):
    return cobre.load_case(cobre.save_case(case, folder / case.name))


@pytest.fixture
def sound(tmp_path):
    write_case(tmp_path / "sound", valid_documents(), valid_tables())
    return cobre.load_case(tmp_path / "sound")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_examples_and_published_cases(tmp_path, folder):
    case = cobre.load_case(folder)
    assert same(saved(case, tmp_path), case)


def test_case_with_every_file_of_the_format(tmp_path, sound):
    (tmp_path / "again").mkdir()
    assert same(saved(sound, tmp_path / "again"), sound)
    written = {path.relative_to(tmp_path / "again" / "sound") for path in (tmp_path / "again").rglob("*.*")}
    assert written == {path.relative_to(tmp_path / "sound") for path in (tmp_path / "sound").rglob("*.*")}


@pytest.mark.parametrize("name", ["two_reservoirs", "four_regions"])
def test_training_has_the_same_digest(tmp_path, name):
    folder = ROOT / "examples" / name
    cobre.save_case(cobre.load_case(folder), tmp_path / name)
    first, second = (cobre.train(case, iterations=3, threads=1) for case in (folder, tmp_path / name))
    assert first.digest == second.digest


@pytest.mark.parametrize(
    "settings",
    [
        {"config.training.stopping_rules": (IterationLimit(7), TimeLimit(2.5), BoundStalling(3, 0.01))},
        {"config.training.stopping_rules": (IterationLimit(7), SimulationBased(20, 5, 0.9, 0.01))},
        {"config.training.stopping_mode": "all", "config.training.tree_seed": 7, "config.training.enabled": False},
        {
            "config.training.cut_selection": CutSelectionConfig(
                Level1Selection(check_frequency=3, tie_tolerance=1e-6, method="lml1")
            )
        },
        {"config.training.cut_selection": CutSelectionConfig(DominationSelection(domination_tolerance=1e-4))},
        {"config.training.cut_selection": CutSelectionConfig(DynamicSelection(seed_window=2, candidate_recency=4))},
        {
            "config.training.cut_selection": CutSelectionConfig(
                max_active_per_stage=9, state_window=4, row_activity_tolerance=1e-7
            )
        },
        {"config.training.solver": SolverConfig(3, 10.0, SolverProfile(primal_feasibility_tolerance=1e-8))},
        {"config.training.scenario_source": ScenarioSource.of("out_of_sample", "in_sample", "out_of_sample", seed=5)},
        {"config.simulation.enabled": True, "config.simulation.selection.num_scenarios": 12},
        {"config.simulation.scenario_source": ScenarioSource.of("out_of_sample", seed=3)},
        {"config.modeling.inflow_non_negativity.method": "truncation", "config.modeling.cost_scale_factor": 1e3},
        {"config.policy.mode": "warm_start", "config.policy.path": "elsewhere"},
        {"config.policy.checkpointing.enabled": True, "config.policy.checkpointing.interval_iterations": 4},
        {"config.estimation.max_order": 2, "config.estimation.max_coefficient_magnitude": 3.0},
        {"horizon.policy_graph.annual_discount_rate": 0.08},
    ],
    ids=str,
)
def test_settings(tmp_path, settings):
    case = cobre.changed(cobre.load_case(ROOT / "examples" / "two_reservoirs"), settings)
    assert same(saved(case, tmp_path), case)


def test_saved_case_has_no_warnings_about_defaults(tmp_path):
    source = {"config.simulation.scenario_source": ScenarioSource.of("out_of_sample", seed=3)}
    case = cobre.changed(cobre.load_case(ROOT / "examples" / "two_reservoirs"), source)
    assert cobre.validate(cobre.save_case(case, tmp_path / "saved")).warnings == ()


def test_risk_and_state_variables_of_stages(tmp_path):
    case = cobre.load_case(ROOT / "examples" / "four_regions")
    first, *others = case.horizon.stages
    first = replace(first, risk=CvarParameters(0.3, 0.2), state_variables=StateVariables(inflow_lags=True))
    case = cobre.changed(case, {"horizon.stages": (first, *others)})
    assert same(saved(case, tmp_path), case)


def test_years_of_history_are_written_as_a_list():
    case = cobre.load_case(ROOT / "examples" / "two_reservoirs")
    source = ScenarioSource.of("historical", historical_years=(1990, 1991, 1995))
    document = config_document(cobre.changed(case.config, {"training.scenario_source": source}))
    assert document["training"]["scenario_source"]["historical_years"] == [1990, 1991, 1995]


def test_boundary_policy_path_is_preserved():
    case = cobre.load_case(ROOT / "examples" / "two_reservoirs")
    boundary = BoundaryPolicy("/somewhere/policy.bin", strict=True)
    document = config_document(cobre.changed(case.config, {"policy.boundary": boundary}))
    assert document["policy"]["boundary"] == {"path": "/somewhere/policy.bin", "strict": True}


def test_production_models():
    case = cobre.load_case(ROOT / "examples" / "two_reservoirs")
    fitted = FphaConfig("computed", 4, 4, 3, 6, FittingWindow(volume_min_percentile=0.1, volume_max_percentile=0.9))
    choices = {
        0: HydroProduction(
            0,
            (
                StageRange(0, 5, ProductionChoice("fpha", None, fitted)),
                StageRange(
                    6, None, ProductionChoice("constant_productivity", 0.8, None, ReferenceVolume(percentile=0.5))
                ),
            ),
        ),
        1: HydroProduction(
            1, (), {2: ProductionChoice("constant_productivity", 0.7)}, ProductionChoice("constant_productivity")
        ),
    }
    case = cobre.changed(
        case, {"production.by_hydro": choices, "production.plane_reduction": PlaneReduction("angle", 2.0)}
    )
    document = dict(study_documents(case))["system/hydro_production_models.json"]
    by_stage, by_season = document["production_models"]
    assert by_stage["stage_ranges"][0]["fpha_config"]["fitting_window"]["volume_max_percentile"] == 0.9
    assert "end_stage_id" not in by_stage["stage_ranges"][1]
    assert by_season["seasons"] == [{"season_id": 2, "model": "constant_productivity", "productivity_mw_per_m3s": 0.7}]
    assert document["fpha_plane_reduction"] == {"method": "angle", "tolerance_deg": 2.0}


def test_correlation(tmp_path):
    case = cobre.load_case(ROOT / "examples" / "two_reservoirs")
    group = CorrelationGroup("all", (("inflow", 0), ("inflow", 1)), np.array([[1.0, 0.1 + 0.2], [0.1 + 0.2, 1.0]]))
    correlation = Correlation({"default": (group,), "dry": (group,)}, {3: "dry"})
    case = cobre.changed(case, {"scenarios.correlation": correlation})
    assert same(saved(case, tmp_path), case)


TERM = Term(Coefficient(2.0), "hydro_storage", 1)


@pytest.mark.parametrize(
    "constraint",
    [
        GenericConstraint(0, "a", "", (TERM,), relation="<=", bound=(Coefficient(30.0),)),
        GenericConstraint(
            0,
            "a",
            "",
            (replace(TERM, coefficient=Coefficient(-0.1)), Term(Coefficient(1e-300), "thermal_generation", 2, 0)),
        ),
        GenericConstraint(
            0,
            "a",
            "",
            (Term(Coefficient(-1e22, ("p", "q")), "hydro_generation", 1, 2, 0),),
            (Coefficient(-3.5, ("p",)), Coefficient(1.0)),
            "==",
            (Coefficient(-7.0),),
        ),
        GenericConstraint(0, "a", "", (TERM, Term(Coefficient(-1.0), "hydro_storage", 0)), relation=">=", bound=()),
        GenericConstraint(0, "a", "", (Term(Coefficient(3.0, ("p",)), "hydro_turbined", 1),), relation=">=", bound=()),
    ],
)
def test_expressions_are_read_as_they_were(constraint):
    names = {name: parameter(name) for name in ("p", "q")}
    parsed = parse_constraint(expression_text(constraint), names)
    assert parsed.left.terms == constraint.terms
    assert parsed.left.constants == constraint.constant
    assert (parsed.relation, parsed.right) == (constraint.relation, constraint.bound)


def test_parameters_of_every_kind(tmp_path):
    parameters = (
        Parameter(0, "fixed", "constant", {None: 2.0}),
        Parameter(1, "by_stage", "per_stage", {stage: 0.1 * stage for stage in range(12)}),
        Parameter(2, "by_block", "per_stage_block", {(stage, block): 1.0 for stage in range(12) for block in range(3)}),
        Parameter(3, "found", "computed", {}, "min_storage", 1),
    )
    constraint = GenericConstraint(
        4, "keep some", "why", (TERM,), (), ">=", (Coefficient(1.0, ("found",)),), slack_enabled=True, slack_penalty=5.0
    )
    bounds = {
        "constraint_id": np.array([4, 4], np.int32),
        "stage_id": np.array([0, 1], np.int32),
        "block_id": np.array([ABSENT_ID, ABSENT_ID], np.int32),
        "bound_lower": np.array([np.nan, np.nan]),
        "bound_upper": np.array([np.nan, np.nan]),
    }
    given = GenericConstraints((constraint,), {one.name: one for one in parameters}, bounds)
    case = cobre.changed(cobre.load_case(ROOT / "examples" / "two_reservoirs"), {"generic_constraints": given})
    assert same(saved(case, tmp_path), case)


def test_folder_with_something_in_it_is_refused(tmp_path):
    case = cobre.load_case(ROOT / "examples" / "two_reservoirs")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(WriteError, match="not empty"):
        cobre.save_case(case, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_empty_folder_is_taken(tmp_path):
    case = cobre.load_case(ROOT / "examples" / "two_reservoirs")
    (tmp_path / "new").mkdir()
    assert cobre.save_case(case, str(tmp_path / "new")) == tmp_path / "new"


def test_case_that_could_not_be_loaded_is_not_written(tmp_path):
    case = cobre.load_case(ROOT / "examples" / "two_reservoirs")
    broken = cobre.changed(case, {"system.thermals[0].bus_id": 77})
    with pytest.raises(InvalidCaseError, match="77"):
        cobre.save_case(broken, tmp_path / "new")
    assert not list(tmp_path.iterdir())

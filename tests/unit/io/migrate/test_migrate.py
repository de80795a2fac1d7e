"""Cases of format version 0.5 become cases of the current one: configuration, stages, lags, and refusals."""

from datetime import date

import pyarrow as pa
import pytest
from old_case_files import Old, texts
from pyarrow import parquet

from cobre.io.findings.problems import InvalidCaseError
from cobre.io.migrate import NoteKind, migrate_case
from cobre.io.storage.atomic import WriteError


@pytest.fixture
def old(tmp_path):
    return Old(tmp_path)


def test_simple_case_is_migrated(old):
    report = old.migrate()
    case = old.case
    assert old.new("config.json") == {
        "training": {
            "stopping_rules": [{"type": "iteration_limit", "limit": 9}],
            "selection": {"method": "sampled", "forward_passes": 2},
        },
        "simulation": {"enabled": True, "selection": {"method": "sampled", "num_scenarios": 50}},
    }
    assert [stage.num_openings for stage in case.horizon.stages] == [3, 3, 3]
    assert {plant.operational_start_date for plant in case.system.hydros} == {date(2024, 1, 1)}
    (group,) = case.system.hydros[0].unit_groups
    assert (group.bus_id, group.max_turbined_m3s, group.max_generation_mw) == (0, 50.0, 45.0)
    assert case.production.by_hydro[0].stage_ranges[0].choice.productivity_mw_per_m3s == 0.9
    assert case.penalties.hydro.turbined_cost == 0.05
    assert [plant.penalties.turbined_cost for plant in case.system.hydros] == [0.0, 0.0]
    assert not case.horizon.stages[0].state_variables.inflow_lags
    assert "operational_start_date" in texts(report, NoteKind.GUESSED)
    assert "forward_passes 2 is now training.selection" in texts(report, NoteKind.CONVERTED)
    assert str(report).startswith(str(old.folder / "old"))


def test_tables_are_zstd(old):
    old.migrate()
    path = old.folder / "new" / "scenarios/inflow_seasonal_stats.parquet"
    assert parquet.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
    assert old.case.scenarios.inflow_seasonal_stats["mean_m3s"].tolist() == [20.0] * 6


def test_config_in_full(old):
    old.documents["config.json"] = {
        "training": {
            "enabled": True,
            "tree_seed": 7,
            "forward_passes": 1,
            "cut_formulation": "single",
            "forward_pass": {"type": "default"},
            "stopping_rules": [
                {
                    "type": "simulation",
                    "replications": 10,
                    "period": 5,
                    "bound_window": 5,
                    "distance_tol": 0.1,
                    "bound_tol": 0.1,
                }
            ],
            "stopping_mode": "any",
            "cut_selection": {
                "enabled": True,
                "method": "domination",
                "domination_epsilon": 1e-6,
                "check_frequency": 4,
                "threshold": 0,
                "max_active_per_stage": 100,
                "basis_activity_window": 5,
            },
            "scenario_source": {"seed": 3, "inflow": {"scheme": "out_of_sample"}},
            "solver": {"retry_max_attempts": 4},
            "made_up": 1,
        },
        "simulation": {
            "enabled": False,
            "num_scenarios": 5,
            "policy_type": "outer",
            "output_path": "x",
            "io_channel_capacity": 8,
        },
        "modeling": {"inflow_non_negativity": {"method": "penalty", "penalty_cost": 500.0}},
        "estimation": {"order_selection": "fixed", "max_order": 3},
        "policy": {"path": "./policy", "mode": "fresh", "validate_compatibility": True},
        "exports": {"states": True, "cuts": True},
    }
    report = old.migrate()
    assert old.new("config.json") == {
        "training": {
            "enabled": True,
            "tree_seed": 7,
            "stopping_rules": [{"type": "iteration_limit", "limit": 100}],
            "stopping_mode": "any",
            "scenario_source": {"seed": 3, "inflow": {"scheme": "out_of_sample"}},
            "solver": {"retry_max_attempts": 4},
            "selection": {"method": "sampled", "forward_passes": 1},
            "cut_selection": {
                "selection": {"method": "domination", "check_frequency": 4, "domination_tolerance": 1e-6},
                "max_active_per_stage": 100,
            },
        },
        "simulation": {
            "enabled": False,
            "io_channel_capacity": 8,
            "selection": {"method": "sampled", "num_scenarios": 5},
        },
        "modeling": {"inflow_non_negativity": {"method": "penalty"}},
        "estimation": {"order_selection": "pacf", "max_order": 3},
        "policy": {"path": "./policy", "mode": "fresh"},
        "exports": {"states": True},
    }
    dropped = texts(report, NoteKind.DROPPED)
    for lost in (
        "cut_formulation",
        "forward_pass",
        "policy_type",
        "output_path",
        "penalty_cost",
        "validate_compatibility",
    ):
        assert lost in dropped
    assert "training.made_up, which is not a field" in dropped
    assert "exports.cuts, which is not a field" in dropped
    assert "threshold, basis_activity_window" in dropped
    assert "the stopping rule `simulation`" in dropped


def test_a_disabled_cut_selection_selects_nothing(old):
    old.documents["config.json"]["training"]["cut_selection"] = {"enabled": False, "method": "level1"}
    old.migrate()
    assert old.new("config.json")["training"]["cut_selection"] == {"selection": None}


def with_lags(old):
    stats = old.tables["scenarios/inflow_seasonal_stats.parquet"]
    old.tables["scenarios/inflow_ar_coefficients.parquet"] = {
        "hydro_id": stats["hydro_id"],
        "stage_id": stats["stage_id"],
        "lag": pa.array([1] * 6, pa.int32()),
        "coefficient": pa.array([0.5] * 6, pa.float64()),
        "residual_std_ratio": pa.array([0.9] * 6, pa.float64()),
    }
    past = [{"hydro_id": 0, "values_m3s": [200.0, 150.0], "season_ids": [0, 0]}, {"hydro_id": 1, "values_m3s": [9.0]}]
    old.documents["initial_conditions.json"]["past_inflows"] = past
    for each in old.documents["stages.json"]["stages"]:
        each["season_id"] = 0


def test_lags_get_seasons_windows_and_a_place_in_the_state(old):
    with_lags(old)
    old.documents["stages.json"]["pre_study_stages"] = [
        {"id": -1, "start_date": "2023-12-01", "end_date": "2024-01-01", "season_id": 0}
    ]
    report = old.migrate()
    case = old.case
    assert all(each.state_variables.inflow_lags for each in case.horizon.stages)
    assert [each.season_id for each in case.horizon.stages] == [0, 1, 2]
    assert case.horizon.pre_study_stages[0].season_id == 11
    assert case.horizon.season_definitions.cycle_type == "monthly"
    assert len(case.horizon.season_definitions.seasons) == 12
    found = [
        (row.hydro_id, str(row.start_date), str(row.end_date), row.value_m3s)
        for row in case.initial_conditions.recent_observations
    ]
    assert found == [
        (0, "2023-11-01", "2023-12-01", 150.0),
        (0, "2023-12-01", "2024-01-01", 200.0),
        (1, "2023-12-01", "2024-01-01", 9.0),
    ]
    assert "the months of the calendar" in texts(report, NoteKind.GUESSED)
    assert "the dates of past inflows" in texts(report, NoteKind.GUESSED)


def test_seasons_that_are_defined_stay(old):
    with_lags(old)
    seasons = [{"id": id_, "label": str(id_), "month_start": id_ % 12 + 1} for id_ in range(12)]
    old.documents["stages.json"]["season_definitions"] = {"cycle_type": "monthly", "seasons": seasons}
    old.migrate()
    assert old.new("stages.json")["season_definitions"]["seasons"] == seasons
    assert [each["season_id"] for each in old.new("stages.json")["stages"]] == [0, 0, 0]


def test_history_gets_windows_and_goes_before_past_inflows(old):
    with_lags(old)
    old.tables["scenarios/inflow_history.parquet"] = {
        "hydro_id": pa.array([0, 0, 1], pa.int32()),
        "date": pa.array([date(2023, 11, 1), date(2023, 12, 1), date(2022, 12, 1)], pa.date32()),
        "value_m3s": pa.array([1.0, 2.0, 3.0], pa.float64()),
    }
    report = old.migrate()
    history = old.new("scenarios/inflow_history.parquet").to_pylist()
    assert [(row["start_date"], row["end_date"]) for row in history] == [
        (date(2023, 11, 1), date(2023, 12, 1)),
        (date(2023, 12, 1), date(2024, 1, 1)),
        (date(2022, 12, 1), date(2023, 1, 1)),
    ]
    assert [row.hydro_id for row in old.case.initial_conditions.recent_observations] == [1]
    assert "hydro 0: the past inflow of 2023-12-01 (200 m3/s), which other records cover" in texts(
        report, NoteKind.DROPPED
    )


def test_remaining_problems_are_reported(old):
    old.documents["system/thermals.json"]["thermals"][0]["bus_id"] = 77
    report = old.migrate(is_sound=False)
    assert ["there is no bus 77" in str(problem) for problem in report.problems] == [True]
    assert (old.folder / "new" / "config.json").exists()


def test_a_case_of_the_current_format_is_refused(old):
    old.migrate()
    with pytest.raises(InvalidCaseError, match=r"not a case of format version 0\.5"):
        migrate_case(old.folder / "new", old.folder / "newer")
    assert not (old.folder / "newer").exists()


def test_a_directory_with_something_in_it_is_refused(old):
    (old.folder / "new").mkdir()
    (old.folder / "new" / "mine").write_text("keep")
    with pytest.raises(WriteError, match="exists and is not empty"):
        old.migrate()
    assert [entry.name for entry in (old.folder / "new").iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["stages.json", "system/hydros.json"])
def test_a_missing_file_is_named(old, name):
    del old.documents[name]
    with pytest.raises(InvalidCaseError, match=f"{name}: the file is missing"):
        old.migrate()
    assert not (old.folder / "new").exists()


def test_a_case_that_cannot_be_converted_leaves_nothing(old):
    del old.documents["system/hydros.json"]["hydros"][0]["generation"]
    with pytest.raises(InvalidCaseError, match="cannot be converted"):
        old.migrate()
    assert sorted(entry.name for entry in old.folder.iterdir()) == ["old"]


def test_a_damaged_table_is_named(old):
    (old.folder / "old" / "scenarios").mkdir(parents=True)
    (old.folder / "old" / "scenarios" / "load_seasonal_stats.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InvalidCaseError, match=r"load_seasonal_stats.parquet: cannot be read as Parquet"):
        old.migrate()


def test_no_such_directory(tmp_path):
    with pytest.raises(InvalidCaseError, match="does not exist"):
        migrate_case(tmp_path / "nowhere", tmp_path / "new")

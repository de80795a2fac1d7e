"""cobre.write_policy_checkpoint: policies from dictionaries."""

import copy
import math

import numpy as np
import pytest

import cobre


@pytest.fixture(scope="module")
def plain(finished):
    return cobre.results.load_policy(finished[0])


@pytest.fixture
def parts(plain):
    """Return stages and metadata that a test may change."""
    return copy.deepcopy(plain["stage_cuts"]), copy.deepcopy(plain["metadata"])


def close(left, right):
    return math.isclose(left, right, rel_tol=1e-15)


def test_written_policy_checkpoint_reads_back(parts, plain, tmp_path):
    cobre.write_policy_checkpoint(tmp_path / "policy", *parts)
    found = cobre.results.load_policy(tmp_path)
    assert found["metadata"]["producer"]["completed_iterations"] == 4
    for mine, its in zip(found["stage_cuts"], plain["stage_cuts"], strict=True):
        assert {k: v for k, v in mine.items() if k != "cuts"} == {k: v for k, v in its.items() if k != "cuts"}
        for cut, known in zip(mine["cuts"], its["cuts"], strict=True):
            numbers = [[row["intercept"], *row["coefficients"]] for row in (cut, known)]
            assert all(close(a, b) for a, b in zip(*numbers, strict=True))
            for name in ("cut_id", "slot_index", "iteration", "forward_pass_index", "is_active"):
                assert cut[name] == known[name]


def test_study_simulates_with_a_written_checkpoint(parts, case_dir, limit, finished, tmp_path):
    for stage in parts[0]:
        for cut in stage["cuts"]:
            cut["intercept"] += 1000.0
    cobre.write_policy_checkpoint(str(tmp_path / "policy"), *parts)
    study = cobre.Study(case_dir, tmp_path, config_overrides=limit)
    policy, known = study.load_policy(), cobre.Study(case_dir, finished[0]).load_policy()
    state = [400.0, 200.0]
    assert policy.cost_to_go(0, state) == pytest.approx(known.cost_to_go(0, state) + 1000.0)
    assert policy.evaluate(0, state) == pytest.approx(policy.cost_to_go(0, state) / 1e6)
    assert study.simulate(policy) == {"n_scenarios": 6, "completed": 6}


def test_optional_fields_of_a_checkpoint_may_be_missing(parts, tmp_path):
    """Build a checkpoint without dates, scale and upper bound, as scripts do."""
    stages, _ = parts
    keys = ("stage_id", "state_dimension", "cuts", "entity_manifest")
    bare = [{key: stage[key] for key in keys} for stage in stages]
    producer = {"completed_iterations": 3, "final_lower_bound": 5.0}
    cobre.write_policy_checkpoint(tmp_path / "policy", bare, {"producer": producer})
    found = cobre.results.load_policy(tmp_path)
    assert found["stage_cuts"][0]["priced_state_date"] == -(2**31)
    assert found["stage_cuts"][0]["cuts"] == stages[0]["cuts"]  # with a scale of 1 to the last bit
    assert found["metadata"]["producer"]["best_upper_bound"] is None


def test_lagged_inflows_are_added(parts, tmp_path):
    stages, metadata = parts
    stages[0]["cuts"][0]["inflow_lag_coefficients"] = {1: [5e6, 6e6, 7e6]}
    cobre.write_policy_checkpoint(tmp_path / "policy", stages, metadata, inflow_lag_depth=3)
    found = cobre.results.load_policy(tmp_path)["stage_cuts"][0]
    state = [(entry["entity_type"], entry["entity_id"], entry["subindex"]) for entry in found["entity_manifest"]]
    assert state == [(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1), (1, 0, 2), (1, 1, 2), (1, 0, 3), (1, 1, 3)]
    assert found["cuts"][0]["coefficients"][2:] == pytest.approx([0.0, 5e6, 0.0, 6e6, 0.0, 7e6])
    assert np.count_nonzero(found["cuts"][1]["coefficients"][2:]) == 0


def test_bases_are_dropped_with_a_warning(parts, tmp_path):
    with pytest.warns(UserWarning, match="stage_bases are not kept"):
        cobre.write_policy_checkpoint(tmp_path / "policy", *parts, stage_bases=[{"stage_id": 0}])


def without(key, place):
    def change(stages, metadata):
        del place(stages, metadata)[key]

    return change


def with_(key, value, place):
    def change(stages, metadata):
        place(stages, metadata)[key] = value

    return change


def stage(stages, _):
    return stages[2]


def cut(stages, _):
    return stages[2]["cuts"][1]


def entity(stages, _):
    return stages[2]["entity_manifest"][1]


def producer(_, metadata):
    return metadata["producer"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without("cuts", stage), r"stage_cuts\[2\] has no `cuts`"),
        (without("intercept", cut), r"stage_cuts\[2\], cut \d+ has no `intercept`"),
        (without("completed_iterations", producer), r"metadata.producer has no `completed_iterations`"),
        (with_("coefficients", [1.0], cut), r"coefficients has 1 entries, expected state_dimension=2"),
        (with_("state_dimension", 3, stage), r"entity_manifest has 2 entries for state_dimension=3"),
        (with_("entity_type", 2, entity), r"entity_manifest\[1\]: entity_type is 2"),
        (with_("entity_id", 9, entity), r"stage_cuts\[2\]: its entity_manifest differs"),
        (with_("cost_scale_factor", 5.0, stage), r"cost_scale_factor differs by stage"),
        (with_("stage_end_dates", ["2030-02-01"], lambda _, metadata: metadata), r"stage_end_dates has 1 dates for 12"),
        (with_("inflow_lag_coefficients", {0: [1.0]}, cut), r"hydro 0 do not fit into a state of inflow_lag_depth=0"),
    ],
)
def test_invalid_policies_raise(parts, tmp_path, change, words):
    change(*parts)
    with pytest.raises(cobre.errors.ValidationError, match=words):
        cobre.write_policy_checkpoint(tmp_path / "policy", *parts)
    assert not (tmp_path / "policy" / "policy.bin").exists()


def test_policy_without_stages_raises(tmp_path):
    with pytest.raises(ValueError, match="stage_cuts is empty"):
        cobre.write_policy_checkpoint(tmp_path, [], {})

"""`cobre bench`: counts that do not depend on speed, and arithmetic on given times."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from example_study import EXAMPLE

from cobre.cli.bench_command import memory, usual_cores
from cobre.cli.main import main
from cobre.comm.backends.local import LocalCommunicator
from cobre.io.case import load_case
from cobre.solver.batches import SolveStatistics
from cobre.study.bench import Benchmark, StageCost, bench_case, sampled_stages
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.training.train import train_study
from cobre.text import duration_rounded, size


@pytest.fixture(scope="module")
def measured():
    return bench_case(load_case(EXAMPLE), stages=None, paths=2, rounds=2)


def stage(number, forward_s, backward_s, openings=4):
    return StageCost(number, 3, 5, openings, forward_s, backward_s, SolveStatistics(solves=8, pivots=16))


@pytest.fixture
def given():
    """Return times of three stages; the second was not timed backward. A path costs 6 s forward and 16 s backward."""
    costs = (stage(0, 1.0, None), stage(1, 2.0, None), stage(2, 3.0, 2.0))
    return Benchmark(
        iterations=10,
        forward_passes=5,
        scenarios=7,
        dimension=1,
        paths=2,
        rounds=(costs,),
        bound_s=0.5,
        cpu_s=1.0,
    )


def test_estimate_for_one_core(given):
    found = given.estimate(1)
    assert found.iteration_s == 5 * (6.0 + 16.0) + 0.5
    assert found.training_s == 10 * found.iteration_s
    assert found.simulation_s == 7 * 6.0
    assert found.total_s == found.training_s + found.simulation_s


def test_time_follows_largest_share_of_paths(given):
    assert given.estimate(3).iteration_s == 2 * 22.0 + 0.5
    assert given.estimate(4).iteration_s == 2 * 22.0 + 0.5
    assert given.estimate(4).simulation_s == 2 * 6.0


def test_cores_beyond_paths_save_no_time(given):
    assert given.estimate(500).iteration_s == given.estimate(5).iteration_s


def test_cores_share_the_blocks_of_a_trial_point(given):
    split = replace(given, blocks=4)  # 20 blocks of 4 s
    assert split.estimate(1) == given.estimate(1)
    assert split.estimate(10).iteration_s == 6.0 + 2 * 4.0 + 0.5
    assert split.estimate(500).iteration_s == 6.0 + 4.0 + 0.5


def test_untimed_stages_are_estimated_by_mean(given):
    assert [cost.stage for cost in given.sampled] == [2]
    assert given.backward_path_s == 16.0


@pytest.mark.parametrize(
    ("count", "most", "stages"),
    [(4, None, [1, 2, 3]), (4, 9, [1, 2, 3]), (12, 3, [1, 6, 11]), (12, 1, [11]), (2, 5, [1])],
)
def test_sample_has_the_last_stage(count, most, stages):
    assert sampled_stages(count, most) == stages


def test_every_stage_is_timed(measured):
    stages, openings = 12, 10
    assert [len(costs) for costs in measured.rounds] == [stages, stages]
    assert [cost.stage for cost in measured.sampled] == list(range(1, stages))
    assert all(cost.backward.solves == 2 * openings for cost in measured.sampled)
    assert all(cost.forward_s >= 0.0 for cost in measured.stages)
    assert (measured.iterations, measured.forward_passes, measured.scenarios) == (60, 4, 200)


def test_sample_of_stages():
    sparse = bench_case(load_case(EXAMPLE), stages=2, paths=1, rounds=2)
    assert [cost.stage for cost in sparse.sampled] == [1, 11]


def test_command_prints_two_tables():
    done = CliRunner().invoke(main, ["bench", str(EXAMPLE), "--cores", "1,3", "--rounds", "2"])
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.output.splitlines()]
    assert next(row[:9] for row in rows if row[:1] == ["stage"]) == [
        "stage",
        "rows",
        "columns",
        "forward",
        "backward",
        "pivots",
        "µs/pivot",
        "active",
        "rows",
    ]
    after = next(place for place, row in enumerate(rows) if row[:1] == ["cores"])
    assert [row[0] for row in rows[after + 1 : after + 3]] == ["1", "3"]


def test_json_has_every_number():
    done = CliRunner().invoke(main, ["bench", str(EXAMPLE), "--json", "--rounds", "2", "--stages", "1"])
    answer = json.loads(done.output)
    assert [len(costs) for costs in answer["rounds"]] == [12, 12]
    assert answer["estimates"][0]["cores"] == 1
    assert answer["estimates"][0]["training_s"] == 60 * answer["estimates"][0]["iteration_s"]


@pytest.mark.parametrize("cores", ["0", "1,x", "", "-2", "1.5"])
def test_invalid_core_counts_raise(cores):
    done = CliRunner().invoke(main, ["bench", str(EXAMPLE), "--cores", cores])
    assert done.exit_code == 2
    assert "expected whole numbers of at least 1" in done.output


def test_invalid_case_raises(tmp_path):
    done = CliRunner().invoke(main, ["bench", str(tmp_path)])
    assert done.exit_code == 3


def test_usual_cores_are_no_more_than_there_is_work_for():
    assert max(usual_cores(100)) >= 64
    assert 64 not in usual_cores(32)


def test_durations_are_formatted():
    assert [duration_rounded(seconds) for seconds in (0.0123, 119.0, 3000.0, 9000.0)] == [
        "0.0123 s",
        "119 s",
        "50 min",
        "2.5 h",
    ]


def test_memory_of_cuts_and_states_grows_with_iterations_and_paths(measured):
    stages, entries = len(measured.stages), measured.dimension
    assert measured.cuts == measured.iterations * measured.forward_passes > 0
    assert 8 * stages <= measured.bytes_per_cut <= 8 * stages * (1 + entries)
    assert measured.cut_bytes >= measured.cuts * measured.bytes_per_cut
    assert measured.state_bytes == 0  # this case selects no cuts


def test_states_are_counted_if_selection_reads_them():
    overrides = {"training.cut_selection": {"selection": {"method": "lml1"}}}
    selecting = bench_case(load_case(EXAMPLE, overrides), stages=1, paths=1, rounds=2)
    assert any("of visited states" in line for line in memory(selecting))
    assert replace(selecting, state_window=1).state_bytes == selecting.forward_passes * selecting.bytes_per_state


@pytest.mark.parametrize("iterations", [5, 14, 23])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"training.cut_selection": {"selection": {"method": "level1"}}},
        {"training.cut_selection": {"selection": {"method": "lml1"}, "state_window": 4}},
        {"exports.states": True},
        {"exports.states": True, "training.cut_selection": {"selection": {"method": "lml1"}, "state_window": 4}},
    ],
    ids=["no states", "all iterations", "a window", "exported", "exported, with a window"],
)
def test_estimated_memory_equals_memory_after_training(iterations, more):
    settings = {"training.stopping_rules": [{"type": "iteration_limit", "limit": iterations}]} | more
    case = load_case(EXAMPLE, settings)
    study = prepare(case)
    with LocalCommunicator() as comm:
        held = train_study(comm, ReadyStudy(study, make_solver(study, 1))).context.state
        measured = bench_case(case, stages=1, paths=1, rounds=1)
        assert (measured.cut_bytes, measured.state_bytes) == (held.pool.nbytes, held.visited.nbytes)


def test_sizes_are_written_in_the_unit_that_fits():
    assert [size(count) for count in (1_700_000, 4_600_000_000)] == ["1.7 MB", "4.60 GB"]

"""Checkpoints: when they are written, kept, chosen and refused."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from example_study import EXAMPLE, overrides
from memory_use import peak_bytes

from cobre.comm.backends.local import LocalCommunicator
from cobre.io.storage.array_file import ArrayFile, write_arrays
from cobre.io.storage.atomic import WriteError
from cobre.policy.object import Policy
from cobre.policy.store import load_policy, save_pool
from cobre.sddp.cut_pool import CutPool, CutSet
from cobre.sddp.iteration_records import IterationRecord, PhaseTimes
from cobre.sddp.training.context import TrainingState
from cobre.sddp.training.visited_states import VisitedStates
from cobre.study.preparation.fingerprint import Fingerprint
from cobre.study.preparation.on_ranks import ReadyStudy, as_case
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.requests import TrainingRequest
from cobre.study.training.checkpoints import (
    CheckpointError,
    CheckpointPlan,
    CheckpointWriter,
    check_same_run,
    list_checkpoints,
    newest_checkpoint,
    read_checkpoint,
    restore,
    snapshot,
    with_policy_costs,
)
from cobre.study.training.train import train_study, training_digest


def names(folder):
    return [path.name for path in list_checkpoints(folder)]


def name(iteration):
    return f"iteration-{iteration:06d}.ckpt"


def isolate(path):
    """Copy only this checkpoint into a folder."""
    folder = path.parent / path.stem
    folder.mkdir()
    (folder / path.name).write_bytes(path.read_bytes())
    return folder


def pivots_of(history):
    return [{str(phase): work.pivots for phase, work in record.solver.items()} for record in history]


@pytest.mark.parametrize(
    ("plan", "due"),
    [
        ({"every": 10}, [10, 20, 30]),
        ({"every": 1}, list(range(1, 31))),
        ({"every": 10, "first": 5}, [5, 15, 25]),
        ({"every": 1, "first": 29}, [29, 30]),
        ({"every": 10**9}, []),
    ],
)
def test_when_a_checkpoint_is_due(tmp_path, plan, due):
    chosen = CheckpointPlan(tmp_path, **plan)
    assert [iteration for iteration in range(1, 31) if chosen.is_due(iteration)] == due


def test_checkpoints_beyond_a_million_iterations_are_ordered(tmp_path):
    for iteration in (999_999, 1_000_000, 2):
        (tmp_path / name(iteration)).touch()
    for stranger in ("iteration-12.ckpt", "iteration-000001.ckpt.partial", ".iteration-000009.ckpt", "notes.ckpt"):
        (tmp_path / stranger).touch()
    assert names(tmp_path) == [name(1_000_000), name(999_999), name(2)]


def test_missing_folder_has_no_checkpoints(tmp_path):
    assert list_checkpoints(tmp_path / "missing") == []


def test_training_resumes_from_a_checkpoint_with_the_same_bits(tmp_path, train):
    whole = train(checkpoints=tmp_path, checkpoint_every=1, keep_checkpoints=99)
    assert names(tmp_path) == [name(3), name(2), name(1)]
    for path in list_checkpoints(tmp_path):
        resumed = train(checkpoints=isolate(path), resume=True)
        assert resumed.digest == whole.digest
        assert pivots_of(resumed.history) == pivots_of(whole.history)
        assert [record.solves for record in resumed.history] == [record.solves for record in whole.history]


@pytest.mark.parametrize("method", [{"method": "level1"}, {"method": "domination", "domination_tolerance": 0.0}])
def test_cut_selection_resumes_with_same_bits(tmp_path, method):
    """Check that all visited states, which selection reads, are restored too."""
    selection = {"training.cut_selection": {"selection": {**method, "check_frequency": 2}}}
    study = prepare(as_case(EXAMPLE, overrides(6, **selection))[0])
    ready = ReadyStudy(study, make_solver(study, 1))

    def train(**options):
        with LocalCommunicator() as comm:
            return train_study(comm, ready, TrainingRequest(**options))

    whole = train(checkpoints=tmp_path, checkpoint_every=1, keep_checkpoints=99)
    assert not whole.context.pool.active.all(), "no cut was deselected"
    for path in list_checkpoints(tmp_path)[1::2]:
        assert train(checkpoints=isolate(path), resume=True).digest == whole.digest


def test_old_checkpoints_are_removed(tmp_path, train):
    train(checkpoints=tmp_path, checkpoint_every=1)
    assert names(tmp_path) == [name(3), name(2)]


def test_last_iteration_is_always_kept(tmp_path, train):
    train(checkpoints=tmp_path, checkpoint_every=0)
    assert names(tmp_path) == [name(3)]


def test_first_checkpoint_removes_those_of_earlier_run(tmp_path, train):
    for iteration in (1, 50, 60):
        (tmp_path / name(iteration)).write_bytes(b"of an earlier run")
    (tmp_path / "notes.txt").write_text("of a person")
    train(checkpoints=tmp_path, checkpoint_every=1)
    assert names(tmp_path) == [name(3), name(2)]
    assert (tmp_path / "notes.txt").exists()


def test_resumed_run_keeps_its_starting_checkpoint(tmp_path, train):
    train(checkpoints=tmp_path, checkpoint_every=1)
    (tmp_path / name(3)).write_bytes(b"damaged")
    train(checkpoints=tmp_path, checkpoint_every=1, resume=True)
    assert names(tmp_path) == [name(3), name(2)]
    assert stored(tmp_path / name(3)).iteration == 3


def stored(path):
    """Read a checkpoint as a run does, without its large arrays."""
    with closing(ArrayFile.open(path)) as file:
        return read_checkpoint(LocalCommunicator(), file)


def test_checkpoint_events_are_emitted(tmp_path, train):
    events = []
    train(events.append, checkpoints=tmp_path, checkpoint_every=2)
    written = [event for event in events if event["event"] == "checkpoint"]
    assert [(event["iteration"], event["path"]) for event in written] == [
        (2, str(tmp_path / name(2))),
        (3, str(tmp_path / name(3))),
    ]
    assert all(event["seconds"] >= 0 for event in written)


def test_uncreatable_folder_raises_before_training(tmp_path, train):
    (tmp_path / "file").touch()
    events = []
    with pytest.raises(WriteError):
        train(events.append, checkpoints=tmp_path / "file" / "sub")
    assert not any(event["event"] == "iteration" for event in events)


def test_write_error_is_raised_on_close(tmp_path, train, study, solver):
    trained = train()
    writer = CheckpointWriter(CheckpointPlan(tmp_path / "gone"), lambda: Fingerprint.of(study, solver), lambda *_: None)
    (tmp_path / "gone").rmdir()
    writer.on_checkpoint(trained.context.state, trained.history, True)
    with pytest.raises(WriteError, match="gone"):
        writer.close()


def test_snapshot_is_a_copy(train):
    trained = train()
    taken = snapshot(trained.context.state, trained.history)
    before = taken["intercepts"].copy()
    trained.context.pool.active[:] = 0
    trained.context.state.bases[0].status[:] = 0
    assert np.array_equal(taken["intercepts"], before)
    assert taken["active"].any()


def test_history_reads_back(tmp_path, train):
    trained = train(checkpoints=tmp_path)
    found = stored(tmp_path / name(3))
    assert found.iteration == 3
    history = with_policy_costs(found.history, is_estimate=False)
    assert history == tuple(replace(record, loads=()) for record in trained.history)
    assert history[-1].policy_cost is not None
    assert isinstance(found.history[0], IterationRecord) and isinstance(found.history[0].times, PhaseTimes)
    assert isinstance(found.history[0].solves, int)


@pytest.fixture
def kept(tmp_path, train):
    train(checkpoints=tmp_path, checkpoint_every=1, keep_checkpoints=3)
    return tmp_path


def test_newest_valid_checkpoint_is_used(kept):
    warnings = []
    file = newest_checkpoint(kept, warnings.append)
    assert (file.path.name, warnings) == (name(3), [])
    file.close()


def test_damaged_checkpoints_are_skipped_with_a_warning_each(kept):
    (kept / name(3)).write_bytes(b"")
    (kept / name(2)).write_bytes((kept / name(2)).read_bytes()[:-7])
    warnings = []
    with closing(newest_checkpoint(kept, warnings.append)) as file:
        assert file.path.name == name(1)
    assert [name(3) in warnings[0], name(2) in warnings[1]] == [True, True]
    assert all("an older checkpoint is used instead" in warning for warning in warnings)


def test_error_lists_reasons_of_all_damaged_checkpoints(kept):
    for path in list_checkpoints(kept):
        path.write_bytes(b"nothing of ours")
    with pytest.raises(CheckpointError, match="no checkpoint can be used") as caught:
        newest_checkpoint(kept, lambda _: None)
    assert all(name(iteration) in str(caught.value) for iteration in (1, 2, 3))


def test_resume_without_checkpoints_raises(tmp_path):
    with pytest.raises(CheckpointError, match="there is no checkpoint in"):
        newest_checkpoint(tmp_path, lambda _: None)


def test_valid_file_of_other_content_raises(tmp_path):
    path = tmp_path / name(1)
    write_arrays(path, {"fingerprint": {"other": "things"}}, {})
    with pytest.raises(CheckpointError):
        stored(path)


def test_iterations_record_exact_upper_bounds(tmp_path, train):
    done, path = train(), tmp_path / name(3)
    history = [replace(record, is_exact=record.iteration != 2) for record in done.history]
    facts = {"fingerprint": Fingerprint("1", "2", "3", "4").as_dict()}
    write_arrays(path, facts, snapshot(done.context.state, history))
    assert [record.is_exact for record in stored(path).history] == [True, False, True]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("cobre", "version of cobre"),
        ("solver", "LP solver"),
        ("numpy", "version of numpy"),
        ("case", "content of the case"),
    ],
)
def test_error_names_other_program_or_case(kept, study, solver, field, words):
    found = stored(kept / name(3))
    own = Fingerprint.of(study, solver)
    check_same_run(found, own)
    with pytest.raises(CheckpointError, match=rf"belongs to another run \({words}: other here,"):
        check_same_run(found, replace(own, **{field: "other"}))


def test_case_files_are_compared_only_if_content_differs(kept, study, solver):
    found, own, asked = stored(kept / name(3)), Fingerprint.of(study, solver), []

    def changes():
        asked.append("asked")
        return "changed file: config.json"

    check_same_run(found, own, changes)
    with pytest.raises(CheckpointError):
        check_same_run(found, replace(own, numpy="other"), changes)
    assert asked == []
    with pytest.raises(CheckpointError, match=r"changed file: config\.json"):
        check_same_run(found, replace(own, case="other"), changes)


def test_ineffective_setting_may_change_before_resume(tmp_path):
    def train(budget_s, **options):
        settings = overrides() | {"training.solver.retry_time_budget_seconds": budget_s}
        study = prepare(as_case(EXAMPLE, settings)[0])
        with LocalCommunicator() as comm:
            ready = ReadyStudy(study, make_solver(study, 1))
            return train_study(comm, ready, TrainingRequest(checkpoints=tmp_path, **options))

    assert train(5.0).digest == train(7.0, resume=True).digest


@pytest.mark.parametrize(
    ("asked", "flag", "due"),
    [
        ({}, None, [10, 20, 30]),
        ({"enabled": True, "initial_iteration": 5, "interval_iterations": 20}, None, [5, 25]),
        ({"enabled": False, "interval_iterations": 5}, None, []),
        ({"enabled": False}, 15, [15, 30]),
        ({"enabled": True, "interval_iterations": 5}, 0, []),
    ],
)
def test_interval_precedence_is_flag_then_case_then_default(tmp_path, asked, flag, due):
    settings = {f"policy.checkpointing.{name}": value for name, value in asked.items()}
    case, _ = as_case(EXAMPLE, overrides() | settings)
    plan = CheckpointPlan.of(TrainingRequest(tmp_path, checkpoint_every=flag), case.config)
    assert [iteration for iteration in range(1, 31) if plan.is_due(iteration)] == due


def test_checkpoint_is_due_after_time_interval(tmp_path):
    """Check that a study of long iterations that is killed at iteration 8 does not restart from zero."""
    plan = CheckpointPlan(tmp_path, every=10, seconds=300.0)
    assert not plan.is_due(8, age_s=299.0) and plan.is_due(8, age_s=300.0)
    assert plan.is_due(10, age_s=0.0)
    assert not CheckpointPlan(tmp_path, every=10).is_due(8, age_s=1e9)


def test_neither_checkpoint_nor_policy_nor_digest_copies_the_pool(tmp_path, study, solver, ready):
    comm = LocalCommunicator()
    trained = train_study(comm, ready)
    stages = trained.context.pool.num_stages
    pool = trained.context.state.pool = CutPool(comm, stages, 100)
    slots = pool.reserve_slots(1, 500)
    for stage in range(stages - 1):
        pool.write(stage, slots, CutSet(np.arange(500.0), np.full((500, 100), float(stage))))
    whole = 8 * stages * pool.count * pool.dimension
    allowed = whole // 3  # intercepts and flags of all stages, and one chunk of cuts
    writer = CheckpointWriter(CheckpointPlan(tmp_path), lambda: Fingerprint.of(study, solver), lambda *_: None)

    def keep():
        writer.on_checkpoint(trained.context.state, trained.history, True)
        writer.close()

    assert whole > 2_000_000
    assert peak_bytes(keep) < allowed
    assert peak_bytes(lambda: save_pool(tmp_path / "streamed", study, pool, trained.history)) < allowed
    assert peak_bytes(lambda: training_digest(trained.history, pool)) < allowed
    loaded, held = load_policy(tmp_path / "streamed"), Policy.of(study, pool, trained.history)
    for streamed, cuts in zip(loaded.cuts, held.cuts, strict=True):
        assert np.array_equal(streamed.intercepts, cuts.intercepts)
        assert np.array_equal(streamed.coefficients, cuts.coefficients)
    assert (loaded.state_names, loaded.stage_ids, loaded.problem) == (held.state_names, held.stage_ids, held.problem)
    found = read_checkpoint(comm, ArrayFile.open(tmp_path / name(3)))
    for stage in range(stages):
        coefficients = found.large.read_on_rank_0("coefficients", stage * 50_000, 50_000)
        assert np.array_equal(coefficients.reshape(500, 100), pool.cuts(stage).coefficients)
        assert np.array_equal(found.arrays["intercepts"][stage], pool.cuts(stage).intercepts)
    restored = CutPool(comm, stages, 100)
    again = TrainingState(restored, [], VisitedStates(restored))
    assert peak_bytes(lambda: restore(again, found, 1)) < allowed + pool.nbytes
    assert training_digest(trained.history, again.pool) == training_digest(trained.history, pool)
    comm.close()

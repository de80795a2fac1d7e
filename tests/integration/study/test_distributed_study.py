"""`cobre.train` and `cobre.simulate` with workers: one more argument, the same bits, wherever Python runs."""

import os
import secrets
import signal
import textwrap
import threading

import pytest
from demanding_case import write_demanding_case
from processes import finish, run_python, start_python
from studies import LOCAL, QUICK_CASE, References, content_digest, end_of, ranks_below, small_copy, start_study
from tcp_worlds import new_address

import cobre
from cobre.comm import InitializationFailedError, InvalidBackendError
from cobre.comm.cores import usable_cores
from cobre.comm.launch import WorkerError
from cobre.io.findings import InvalidCaseError
from cobre.sddp.lp.failure import StageFailedError
from cobre.study.placement import ONE_THREAD_PER_RANK

ITERATIONS = 5


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return small_copy(QUICK_CASE, tmp_path_factory.mktemp("case"))


@pytest.fixture(scope="module")
def local_result(case):
    """Train in this process."""
    return cobre.train(case, iterations=ITERATIONS, threads=1)


def counted(bounds):
    """Return a table of bounds without its times."""
    return bounds.select([name for name in bounds.column_names if not name.endswith("_us_per_pivot")])


@pytest.mark.parametrize(("backend", "workers"), [("shm", 2), ("tcp", 2), ("auto", 3)])
def test_workers_give_result_of_one_process(case, local_result, backend, workers):
    result = cobre.train(case, num_workers=workers, backend=backend, iterations=ITERATIONS)
    assert result.digest == local_result.digest
    assert counted(result.bounds).equals(counted(local_result.bounds))
    assert result.stop_reason == local_result.stop_reason
    assert [report.rank for report in result.workers] == list(range(workers))
    assert len({report.pid for report in result.workers} | {os.getpid()}) == workers + 1
    assert {report.backend for report in result.workers} == {"tcp" if backend == "tcp" else "shm"}
    assert all(report.wall_s >= report.busy_s > 0 for report in result.workers)


def test_more_workers_than_paths_is_allowed(case, local_result):
    result = cobre.train(case, num_workers=local_result.history[0].forward_passes + 1, iterations=ITERATIONS)
    assert result.digest == local_result.digest


def test_simulated_tables_do_not_depend_on_workers(case, local_result):
    one = cobre.simulate(case, local_result.policy, scenarios=7, threads=1)
    several = cobre.simulate(case, local_result.policy, scenarios=7, num_workers=3)
    assert several.digest == one.digest
    assert several.scenario_costs == one.scenario_costs
    assert {name: table.equals(one.tables[name]) for name, table in several.tables.items()} == dict.fromkeys(
        one.tables, True
    )


def test_workers_receive_a_case_in_memory(case, local_result):
    loaded = cobre.load_case(case, {"training.stopping_rules": [{"type": "iteration_limit", "limit": ITERATIONS}]})
    assert cobre.train(loaded, num_workers=2).digest == local_result.digest


@pytest.mark.parametrize("workers", [None, 2])
def test_progress_events_follow_iteration_order(case, workers):
    events = []
    cobre.train(case, num_workers=workers, iterations=ITERATIONS, progress_callback=events.append)
    count = workers or 1
    assert [(event.iteration, event.worker) for event in events] == [
        (iteration, worker) for iteration in range(1, ITERATIONS + 1) for worker in range(count)
    ]


def test_callback_runs_in_the_calling_thread(case):
    threads = set()
    cobre.train(case, num_workers=2, iterations=2, progress_callback=lambda _: threads.add(threading.get_ident()))
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("workers", [None, 2])
def test_callback_exception_ends_run(case, workers):
    calls = []

    def callback(event):
        calls.append(event.iteration)
        raise LookupError(f"call {len(calls)}")

    with pytest.raises(LookupError, match="call 1"):
        cobre.train(case, num_workers=workers, iterations=10_000, progress_callback=callback)
    assert calls == [1]


def test_error_of_a_worker_names_the_rank_and_the_cause(tmp_path):
    """Check the error of whichever rank took the infeasible path."""
    with pytest.raises(StageFailedError, match=r"trial point [23]:") as caught:
        cobre.train(write_demanding_case(tmp_path), num_workers=2)
    assert caught.value.stage_id == 0
    cause = caught.value.__cause__
    assert isinstance(cause, WorkerError)
    assert (cause.exit_code, cause.inner) == (1, caught.value)
    assert str(cause).startswith(f"Run stopped: rank {cause.rank} ")


@pytest.mark.parametrize("workers", [None, 2])
def test_invalid_case_is_the_same_error_with_workers(tmp_path, workers, local_result):
    case = small_copy(QUICK_CASE, tmp_path)
    (case / "stages.json").unlink()
    runs = (
        lambda: cobre.train(case, num_workers=workers),
        lambda: cobre.simulate(case, local_result.policy, num_workers=workers),
        lambda: cobre.bound(case, local_result.policy, num_workers=workers),
    )
    for run in runs:
        with pytest.raises(InvalidCaseError, match=r"stages\.json") as caught:
            run()
        assert isinstance(caught.value.__cause__, WorkerError) == (workers is not None)


def test_killed_worker_has_no_inner_error(case):
    def kill_rank_1(event):
        if event.iteration == 2 and event.worker == 1:
            os.kill(ranks_below(os.getpid())[1], signal.SIGKILL)

    with pytest.raises(WorkerError, match="SIGKILL") as caught:
        cobre.train(case, num_workers=2, iterations=100_000, progress_callback=kill_rank_1)
    assert (caught.value.rank, caught.value.exit_code, caught.value.inner) == (1, -signal.SIGKILL, None)


@pytest.mark.parametrize("workers", [0, -1, True, 2.5, "2", 5000])
def test_impossible_worker_counts_raise(case, workers):
    with pytest.raises((InitializationFailedError, TypeError, ValueError), match=r"workers|ranks"):
        cobre.train(case, num_workers=workers)


def test_unknown_backend_raises(case):
    with pytest.raises(InvalidBackendError, match="pigeon"):
        cobre.train(case, num_workers=2, backend="pigeon")


def test_resume_without_folder_raises(case):
    with pytest.raises(ValueError, match="checkpoints="):
        cobre.train(case, resume=True)


def test_script_resumed_from_checkpoint_has_same_bits(case, local_result, tmp_path):
    cobre.train(case, iterations=3, checkpoints=tmp_path, num_workers=2)
    resumed = cobre.train(case, iterations=ITERATIONS, checkpoints=tmp_path, resume=True)
    assert resumed.digest == local_result.digest
    assert resumed.iterations == ITERATIONS


def test_time_limit_returns_result_so_far(case):
    result = cobre.train(case, iterations=1_000_000, time_limit_s=0.2, num_workers=2)
    assert "time limit" in result.stop_reason
    assert result.policy.iterations == result.iterations >= 1


# Typed by users, without a main guard.
TYPED = """
import cobre
result = cobre.train({case!r}, num_workers=2, iterations={iterations})
print("DIGEST", result.digest)
"""


def typed(case):
    return TYPED.format(case=str(case), iterations=ITERATIONS)


def test_works_in_python_shell(case, local_result):
    code, out, err = run_python("-i", "-q", typed=typed(case))
    assert f"DIGEST {local_result.digest}" in out, (code, err)


def test_works_with_python_c(case, local_result):
    code, out, err = run_python("-c", typed(case))
    assert (code, out) == (0, f"DIGEST {local_result.digest}\n"), err


def test_script_needs_no_main_guard(case, local_result, tmp_path):
    script = tmp_path / "study.py"
    script.write_text(typed(case))
    code, out, err = run_python(script)
    assert (code, out) == (0, f"DIGEST {local_result.digest}\n"), err


def test_ctrl_c_returns_result_so_far_to_script(case, tmp_path):
    program = f"""
        import cobre
        def show(event):
            print("ITERATION", event.iteration, flush=True)
        result = cobre.train({str(case)!r}, num_workers=2, iterations=1_000_000, progress_callback=show)
        print("STOPPED", result.iterations, result.stop_reason)
    """
    process = start_python("-c", textwrap.dedent(program))
    while not process.stdout.readline().startswith("ITERATION 2"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert code == 0, err
    assert "STOPPED" in out and "Ctrl-C" in out


def test_externally_started_processes_form_one_world(case, tmp_path):
    """Start ranks as containers do: the same command everywhere, and variables that identify each."""
    reference = References(case, tmp_path / "reference").digest(ITERATIONS)
    world = {
        "COBRE_TCP_COORDINATOR": new_address(),
        "COBRE_TCP_SIZE": "3",
        "COBRE_TCP_SECRET": secrets.token_hex(16),
    }
    flags = ("--iterations", str(ITERATIONS))
    output = tmp_path / "output"
    processes = [start_study(case, output, *flags, COBRE_TCP_RANK=str(rank), **world) for rank in range(3)]
    ends = [end_of(process) for process in processes]
    assert [code for code, _, _ in ends] == [0, 0, 0], ends
    assert "digest" in ends[0][1]
    assert usable_cores() == 1 or ONE_THREAD_PER_RANK in ends[0][1]
    assert [out for _, out, _ in ends[1:]] == ["", ""], "only rank 0 speaks"
    assert content_digest(output) == reference


def test_script_in_external_world_gets_result_on_every_rank(case, local_result):
    world = {
        "COBRE_TCP_COORDINATOR": new_address(),
        "COBRE_TCP_SIZE": "2",
        "COBRE_TCP_SECRET": secrets.token_hex(16),
    }
    program = f"import cobre; print(cobre.train({str(case)!r}, iterations={ITERATIONS}).digest)"
    processes = [
        start_python("-c", program, env={**os.environ, **world, "COBRE_TCP_RANK": str(rank)}) for rank in range(2)
    ]
    assert [finish(process)[:2] for process in processes] == [(0, f"{local_result.digest}\n")] * 2


def test_bits_do_not_depend_on_threads(case, tmp_path):
    references = References(case, tmp_path)
    two = tmp_path / "two"
    process = start_study(case, two, *LOCAL[:2], "--threads", "2", "--iterations", str(ITERATIONS))
    assert end_of(process)[0] == 0
    assert content_digest(two) == references.digest(ITERATIONS)

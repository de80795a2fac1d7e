"""Stopped and resumed runs have the bits of an uninterrupted one."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from processes import is_alive, wait_until, wait_until_gone
from studies import (
    ENDLESS,
    LOCAL,
    SHM_2,
    SLOW_CASE,
    TCP_2,
    References,
    checkpoints_in,
    children_of,
    content_digest,
    end_of,
    events_of,
    must_run,
    ranks_of,
    run_study,
    small_copy,
    start_study,
    wait_for_iteration,
)

from cobre.comm.launch.signals import SAME_REQUEST_S

pytestmark = pytest.mark.long

SHM_3 = ("--backend", "shm", "--workers", "3")


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return small_copy(SLOW_CASE, tmp_path_factory.mktemp("case"))


@pytest.fixture(scope="module")
def references(case, tmp_path_factory):
    return References(case, tmp_path_factory.mktemp("references"))


def stopped_run(case, output, flags, stop):
    """Return exit code and summary of a run that `stop` ends after its second iteration."""
    process = start_study(case, output, *flags, *ENDLESS)
    wait_for_iteration(output, 2, process)
    stop(process)
    code, out, err = end_of(process)
    summary = output / "summary.json"
    assert summary.exists(), (code, out[-1000:], err[-3000:])
    return code, json.loads(summary.read_text())


def to_the_command(number):
    return lambda process: process.send_signal(number)


def to_rank(rank, number):
    return lambda process: os.kill(ranks_of(process)[rank], number)


def check_kept(output, summary):
    """Assert that the run ended after a complete iteration and left everything needed to resume."""
    iterations = [event["iteration"] for event in events_of(output, "iteration")]
    assert iterations == list(range(1, summary["iterations"] + 1))
    assert summary["is_interrupted"]
    assert (output / "policy" / "policy.bin").exists()
    assert checkpoints_in(output)[-1].name == f"iteration-{summary['iterations']:06d}.ckpt"
    assert not events_of(output, "run_failed")
    assert not events_of(output, "simulation_finished")


STOPS = [
    pytest.param(SHM_2, to_the_command(signal.SIGINT), 130, "Ctrl-C", TCP_2, id="Ctrl-C, shm; tcp goes on"),
    pytest.param(TCP_2, to_the_command(signal.SIGTERM), 143, "SIGTERM", LOCAL, id="SIGTERM, tcp; local goes on"),
    pytest.param(LOCAL, to_the_command(signal.SIGINT), 130, "Ctrl-C", SHM_3, id="Ctrl-C, local; shm 3 goes on"),
    pytest.param(LOCAL, to_the_command(signal.SIGTERM), 143, "SIGTERM", LOCAL, id="SIGTERM, local"),
    pytest.param(SHM_2, to_rank(1, signal.SIGTERM), 143, "SIGTERM", SHM_3, id="SIGTERM to rank 1; shm 3 goes on"),
]


@pytest.mark.parametrize(("flags", "stop", "expected", "reason", "others"), STOPS)
def test_signal_stops_after_iteration_and_resume_gives_same_bits(
    tmp_path, case, references, flags, stop, expected, reason, others
):
    output = tmp_path / "output"
    code, summary = stopped_run(case, output, flags, stop)
    assert code == expected
    assert reason in summary["stop_reason"]
    check_kept(output, summary)
    target = summary["iterations"] + 2
    assert must_run(case, output, *others, "--iterations", target, "--resume") == references.digest(target)


def test_run_that_reaches_its_time_limit_exits_with_zero(tmp_path, case, references):
    output = tmp_path / "output"
    code, out, err = run_study(case, output, *SHM_2, *ENDLESS, "--time-limit", "0.5")
    summary = json.loads((output / "summary.json").read_text())
    assert (code, err) == (0, "")
    assert "time limit" in out
    check_kept(output, summary)
    target = summary["iterations"] + 1
    assert must_run(case, output, *LOCAL, "--iterations", target, "--resume") == references.digest(target)


def test_zero_time_limit_runs_one_iteration(tmp_path, case):
    output = tmp_path / "output"
    code, _, _ = run_study(case, output, *LOCAL, "--time-limit", "0")
    assert code == 0
    assert json.loads((output / "summary.json").read_text())["iterations"] == 1


def is_frozen(pid):
    """Return whether all its threads have stopped: one that has not could still take a signal."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return all((thread / "stat").read_text().rsplit(")", 1)[1].split()[0] == "T" for thread in threads)


def is_pending(pid, number):
    """Return whether a signal is pending for a frozen process."""
    status = Path(f"/proc/{pid}/status").read_text()
    masks = [line.split()[1] for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


@pytest.mark.parametrize(
    ("number", "expected", "words"),
    [(signal.SIGINT, 130, "cobre: interrupted"), (signal.SIGTERM, 143, "cobre: terminated")],
)
def test_third_signal_ends_immediately_without_leftover_processes(tmp_path, case, number, expected, words):
    output = tmp_path / "output"
    process = start_study(case, output, *SHM_2, *ENDLESS)
    wait_for_iteration(output, 1, process)
    ranks = ranks_of(process)
    family = children_of(process.pid)
    for rank in ranks:  # frozen ranks cannot stop by themselves; only the third signal ends the run
        os.kill(rank, signal.SIGSTOP)
    wait_until(lambda: all(map(is_frozen, ranks)), "the ranks are frozen")
    process.send_signal(number)
    first_at = time.monotonic()
    wait_until(lambda: all(is_pending(rank, number) for rank in ranks), "the first one was passed on")
    assert process.poll() is None
    wait_until(lambda: time.monotonic() - first_at > SAME_REQUEST_S, "SIGTERM is a request of its own again")
    process.send_signal(number)
    other = signal.SIGTERM if number == signal.SIGINT else signal.SIGINT
    wait_until(lambda: all(is_pending(rank, other) for rank in ranks), "the second one was passed on as another one")
    assert process.poll() is None
    process.send_signal(number)
    code, _, err = end_of(process)
    assert (code, err.splitlines()[-1]) == (expected, words)
    assert "Traceback" not in err
    assert len(family) >= len(ranks) == 2
    wait_until_gone(family)


def test_killed_command_leaves_no_processes(tmp_path, case):
    output = tmp_path / "output"
    process = start_study(case, output, *TCP_2, *ENDLESS)
    wait_for_iteration(output, 1, process)
    family = children_of(process.pid)
    assert len(family) >= 2 and all(map(is_alive, family))
    process.kill()
    end_of(process)
    wait_until_gone(family)


def test_resuming_finished_run_does_no_work(tmp_path, case, references):
    output = tmp_path / "output"
    must_run(case, output, *SHM_2, "--iterations", "3")
    assert must_run(case, output, *TCP_2, "--iterations", "3", "--resume") == references.digest(3)
    assert len(events_of(output, "iteration")) == 3
    assert len(events_of(output, "run_finished")) == 2


def test_resuming_with_more_iterations_continues_the_study(tmp_path, case, references):
    output = tmp_path / "output"
    must_run(case, output, *LOCAL, "--iterations", "2")
    assert must_run(case, output, *LOCAL, "--iterations", "4", "--resume") == references.digest(4)


def test_fresh_run_replaces_later_checkpoints_of_older_run(tmp_path, case):
    """Without this, a resume would find no checkpoint, or one of the older run."""
    output = tmp_path / "output"
    must_run(case, output, *LOCAL, "--iterations", "4", "--checkpoint-every", "1")
    must_run(case, output, *LOCAL, "--iterations", "2", "--checkpoint-every", "1", "--overwrite")
    assert [path.name for path in checkpoints_in(output)] == ["iteration-000001.ckpt", "iteration-000002.ckpt"]


@pytest.fixture
def two_checkpoints(tmp_path, case):
    """Return an output directory with the checkpoints of iterations 2 and 3, of three iterations."""
    output = tmp_path / "output"
    must_run(case, output, *LOCAL, "--iterations", "3", "--checkpoint-every", "1")
    assert len(checkpoints_in(output)) == 2
    return output


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_damaged_checkpoint_is_skipped_with_a_warning(two_checkpoints, case, references):
    flip_a_bit(checkpoints_in(two_checkpoints)[-1])
    code, _, err = run_study(case, two_checkpoints, *SHM_2, "--iterations", "4", "--resume")
    assert code == 0
    assert "iteration-000003.ckpt is truncated or damaged" in err
    assert "an older checkpoint is used instead" in err
    assert content_digest(two_checkpoints) == references.digest(4)
    warnings = [event["message"] for event in events_of(two_checkpoints, "warning")]
    assert any("iteration-000003.ckpt" in message for message in warnings)


@pytest.mark.parametrize("flags", [LOCAL, SHM_2], ids=["local", "shm"])
def test_resume_with_only_damaged_checkpoints_is_an_error(two_checkpoints, case, flags):
    newest, older = reversed(checkpoints_in(two_checkpoints))
    newest.write_bytes(newest.read_bytes()[:100])
    older.write_bytes(b"")
    code, _, err = run_study(case, two_checkpoints, *flags, "--resume")
    assert code == 7
    assert "no checkpoint can be used" in err
    assert newest.name in err and older.name in err


def test_resume_without_checkpoint_is_an_error(tmp_path, case):
    code, _, err = run_study(case, tmp_path / "output", *SHM_2, "--resume")
    assert code == 7
    assert "there is no checkpoint in" in err


@pytest.mark.parametrize("flags", [LOCAL, SHM_2], ids=["local", "shm"])
def test_checkpoint_of_another_case_is_rejected(two_checkpoints, case, tmp_path, flags):
    other = small_copy(case, tmp_path / "elsewhere", tree_seed=4711)
    code, _, err = run_study(other, two_checkpoints, *flags, "--resume")
    assert code == 7
    assert "belongs to another run (content of the case:" in err
    assert "changed file: config.json)" in err  # the message of rank 0
    assert "--warm-start" in err


def test_resuming_with_other_forward_passes_is_rejected(two_checkpoints, case, tmp_path):
    other = small_copy(case, tmp_path / "elsewhere", selection={"method": "sampled", "forward_passes": 3})
    code, _, err = run_study(other, two_checkpoints, *LOCAL, "--resume")
    assert (code, "content of the case" in err) == (7, True)


def test_run_can_start_from_the_policy_of_another_run(two_checkpoints, case, tmp_path):
    warm = [
        must_run(case, tmp_path / name, *flags, "--iterations", "2", "--warm-start", two_checkpoints)
        for name, flags in (("local", LOCAL), ("shm", SHM_3))
    ]
    assert warm[0] == warm[1]
    cold = json.loads((two_checkpoints / "summary.json").read_text())
    assert json.loads((tmp_path / "shm" / "summary.json").read_text())["lower_bound"] >= cold["lower_bound"]


def test_resuming_a_warm_started_run_continues_it(two_checkpoints, case, tmp_path):
    warm = ("--warm-start", two_checkpoints)
    whole = must_run(case, tmp_path / "whole", *LOCAL, *warm, "--iterations", "4")
    must_run(case, tmp_path / "parts", *LOCAL, *warm, "--iterations", "2")
    assert must_run(case, tmp_path / "parts", *LOCAL, *warm, "--iterations", "4", "--resume") == whole
    assert "is not read" in events_of(tmp_path / "parts", "warning")[-1]["message"]


def test_policy_of_another_system_is_rejected(two_checkpoints, tmp_path):
    other = small_copy(SLOW_CASE.parent / "two_reservoirs", tmp_path / "elsewhere")
    code, _, err = run_study(other, tmp_path / "second", *SHM_2, "--warm-start", two_checkpoints)
    assert code == 7
    assert "the policy has " in err
    assert "only in the policy: " in err


@pytest.mark.parametrize("flags", [LOCAL, SHM_2], ids=["local", "shm"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_during_simulation_keeps_the_trained_policy(tmp_path, flags, number, references):
    """Check that no training result is lost, although the run is incomplete."""
    case, output = with_scenarios(small_copy(SLOW_CASE, tmp_path / "case"), 100_000), tmp_path / "output"
    process = start_study(case, output, *flags, "--iterations", "2")
    wait_until(lambda: any(event["name"] == "simulation" for event in events_of(output, "phase")), "it simulates")
    process.send_signal(number)
    code, _, err = end_of(process)
    assert code in {128 + number, -number}, err
    assert not (output / "summary.json").exists()
    with_scenarios(case, 12)
    assert must_run(case, output, *LOCAL, "--iterations", "2", "--resume") == references.digest(2)


def test_remote_rank_death_in_simulation_leaves_no_files(tmp_path, references):
    """Check that the rows that it wrote for rank 0 are removed."""
    case, output = with_scenarios(small_copy(SLOW_CASE, tmp_path / "case"), 100_000), tmp_path / "output"
    flags = ("--backend", "tcp", "--workers", "3", "--iterations", "2")
    process = start_study(case, output, *flags, COBRE_TCP_RANKS_PER_HOST="2")
    unfinished = output / "simulation" / ".unfinished"
    wait_until(lambda: list(unfinished.glob("rows-*-2-[1-9]*")), "rank 2 writes rows")
    os.kill(ranks_of(process)[2], signal.SIGKILL)
    code, _, err = end_of(process)
    assert code not in {0, -signal.SIGKILL} and "rank 2" in err
    with_scenarios(case, 12)
    digest = must_run(case, output, *flags, "--resume", COBRE_TCP_RANKS_PER_HOST="2")
    assert digest == references.digest(2)
    assert not unfinished.exists()


def with_scenarios(case, count):
    config = json.loads((case / "config.json").read_text())
    config["simulation"]["selection"]["num_scenarios"] = count
    (case / "config.json").write_text(json.dumps(config))
    return case

"""Stop requests during a native call: the iteration is dropped, and the previous policy kept."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from processes import wait_until, wait_until_gone
from published_data import DECKS
from studies import (
    ENDLESS,
    LOCAL,
    SHM_2,
    SLOW_CASE,
    TCP_2,
    References,
    checkpoints_in,
    children_of,
    end_of,
    events_of,
    must_run,
    ranks_of,
    small_copy,
    start_command,
    start_study,
    wait_for_iteration,
)

pytestmark = pytest.mark.long

THREADS_2 = ("--backend", "local", "--threads", "2")
EVERYWHERE = pytest.mark.parametrize("flags", [LOCAL, THREADS_2, SHM_2, TCP_2], ids=["local", "threads", "shm", "tcp"])
DECK = DECKS / "pmo_2018"
YEAR = DECKS / "pmo_2018_common_12"


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Return a case whose iterations take some seconds, in a few native calls."""
    passes = {"method": "sampled", "forward_passes": 150}
    return small_copy(SLOW_CASE, tmp_path_factory.mktemp("case"), selection=passes)


@pytest.fixture(scope="module")
def endless_case(tmp_path_factory):
    """Return a case whose iteration, and forward pass (a single native call), take longer than any test waits."""
    passes = {"method": "sampled", "forward_passes": 20_000}
    return small_copy(SLOW_CASE, tmp_path_factory.mktemp("endless"), selection=passes)


@pytest.fixture(scope="module")
def references(case, tmp_path_factory):
    return References(case, tmp_path_factory.mktemp("references"))


def is_pending(pid, number):
    status = Path(f"/proc/{pid}/status").read_text()
    masks = [line.split()[1] for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def send_twice(process, number):
    """Send two signals, the second once the kernel has delivered the first: two pending ones would merge."""
    process.send_signal(number)
    wait_until(lambda: not is_pending(process.pid, number), "the first one is delivered")
    process.send_signal(number)


def wait_for_training(output):
    wait_until(lambda: any(event["name"] == "training" for event in events_of(output, "phase")), "it trains")


def check_kept(output, iterations):
    """Assert that the run ended with the last complete iteration and can be resumed and used; return its summary."""
    summary = json.loads((output / "summary.json").read_text())
    assert summary["iterations"] == iterations and summary["is_interrupted"]
    assert [event["iteration"] for event in events_of(output, "iteration")] == list(range(1, iterations + 1))
    assert checkpoints_in(output)[-1].name == f"iteration-{iterations:06d}.ckpt"
    assert (output / "policy" / "policy.bin").exists()
    assert not events_of(output, "run_failed") and not events_of(output, "simulation_finished")
    return summary


@EVERYWHERE
def test_second_ctrl_c_drops_the_iteration(tmp_path, case, references, flags):
    output = tmp_path / "output"
    process = start_study(case, output, *flags, *ENDLESS)
    wait_for_iteration(output, 1, process)
    family = children_of(process.pid)
    send_twice(process, signal.SIGINT)
    code, out, err = end_of(process)
    assert (code, err) == (130, ""), out
    assert "stopped after 1 iteration: interrupted (Ctrl-C)" in out
    check_kept(output, 1)
    wait_until_gone(family)
    assert must_run(case, output, *LOCAL, "--iterations", "2", "--resume") == references.digest(2)


@EVERYWHERE
@pytest.mark.parametrize(
    ("first", "second", "code", "words"),
    [(signal.SIGINT, signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, signal.SIGINT, 143, "terminated")],
    ids=["Ctrl-C twice", "SIGTERM, Ctrl-C"],
)
def test_two_signals_in_the_first_iteration_end_the_run(tmp_path, endless_case, flags, first, second, code, words):
    """Check that there is no policy, and that no rank waits for one."""
    output = tmp_path / "output"
    process = start_study(endless_case, output, *flags)
    wait_for_training(output)
    family = children_of(process.pid)
    process.send_signal(first)
    wait_until(lambda: not is_pending(process.pid, first), "the first one is delivered")
    process.send_signal(second)
    ended, _, err = end_of(process)
    assert ended in {code, 128 + second}, err
    assert err.startswith("cobre: ") and "Traceback" not in err
    assert words in err or ended != code
    assert not (output / "summary.json").exists() and not (output / "policy").exists()
    wait_until_gone(family)


@EVERYWHERE
def test_sigterm_ends_run_during_native_call(tmp_path, endless_case, flags):
    output = tmp_path / "output"
    process = start_study(endless_case, output, *flags)
    wait_for_training(output)
    family = children_of(process.pid)
    process.send_signal(signal.SIGTERM)
    code, _, err = end_of(process)
    assert (code, err) == (143, "cobre: terminated\n")
    wait_until_gone(family)


@pytest.mark.parametrize("flags", [LOCAL, SHM_2], ids=["local", "shm"])
def test_time_limit_ends_run_during_native_call(tmp_path, endless_case, flags):
    code, _, err = end_of(start_study(endless_case, tmp_path / "output", *flags, "--time-limit", "1"))
    assert code == 8
    assert "the time limit was reached before the first iteration was complete: there is no policy" in err


def test_sigterm_to_one_rank_drops_the_iteration_of_all(tmp_path, endless_case):
    """Check that the communicator informs the other ranks."""
    output = tmp_path / "output"
    process = start_study(endless_case, output, *SHM_2)
    wait_for_training(output)
    os.kill(ranks_of(process)[1], signal.SIGTERM)
    code, _, err = end_of(process)
    assert (code, err) == (143, "cobre: terminated\n")


@pytest.mark.parametrize("flags", [LOCAL, SHM_2], ids=["local", "shm"])
def test_third_signal_ends_run_immediately(tmp_path, case, flags):
    """At any moment of the third signal files are whole or absent, and the run can be resumed or started again."""
    output = tmp_path / "output"
    process = start_study(case, output, *flags, *ENDLESS, "--checkpoint-every", "1")
    wait_for_iteration(output, 1, process)
    send_twice(process, signal.SIGINT)
    process.send_signal(signal.SIGINT)
    code, _, err = end_of(process)
    assert code == 130 and "Traceback" not in err
    assert must_run(case, output, *LOCAL, "--iterations", "2", "--auto-resume")


@EVERYWHERE
def test_ctrl_c_ends_simulation_during_native_call(tmp_path, flags):
    policy, output = tmp_path / "policy", tmp_path / "output"
    quick = small_copy(SLOW_CASE, tmp_path / "quick")
    must_run(quick, policy, *LOCAL, "--iterations", "1")
    config = json.loads((quick / "config.json").read_text())
    config["simulation"]["selection"]["num_scenarios"] = 1_000_000
    config["training"]["enabled"] = False
    (quick / "config.json").write_text(json.dumps(config))
    process = start_study(quick, output, *flags, "--warm-start", policy)
    wait_until(lambda: any(event["name"] == "simulation" for event in events_of(output, "phase")), "it simulates")
    process.send_signal(signal.SIGINT)
    code, _, err = end_of(process)
    assert (code, err) == (130, "cobre: interrupted\n")


def cpu_seconds(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_long(process, condition, what):
    """Wait with a long deadline, for example until a deck is read."""
    deadline = time.monotonic() + 500
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline, f"in vain until {what}"
        time.sleep(0.05)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("flags", [("--workers", "1"), ("--workers", "2")], ids=["one", "two"])
def test_ctrl_c_ends_bound_during_native_call(tmp_path, flags):
    """Millions of paths: nothing is written, and the run is unchanged."""
    run = tmp_path / "run"
    must_run(SLOW_CASE, run, *LOCAL, "--iterations", "1")
    before = {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}
    arguments = ["bound", run, "--method", "sampled", "--paths", "5000000", *flags]
    process = start_command([sys.executable, "-m", "cobre.cli", *map(str, arguments)], dict(os.environ))
    used = 4.0  # seconds of CPU; to start takes less than half of it
    family = [process.pid]
    wait_long(process, lambda: sum(map(cpu_seconds, family + children_of(process.pid))) > used, "it computes")
    family = children_of(process.pid)
    process.send_signal(signal.SIGINT)
    code, out, err = end_of(process)
    assert (code, out, err) == (130, "", "cobre: interrupted\n")
    wait_until_gone(family)
    assert {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()} == before


@pytest.mark.timeout(900)
@pytest.mark.skipif(not YEAR.is_dir(), reason=f"{YEAR} is not there")
@pytest.mark.parametrize("flags", [LOCAL, SHM_2], ids=["local", "shm"])
def test_deck_keeps_its_last_complete_iteration(tmp_path, flags):
    """Send the second Ctrl-C in the second iteration: the policy is that of the first, to the last bit."""
    passes, output = {"method": "sampled", "forward_passes": 8}, tmp_path / "output"
    case = small_copy(YEAR, tmp_path / "case", selection=passes)
    process = start_study(case, output, *flags, *ENDLESS)
    wait_long(process, lambda: events_of(output, "iteration"), "the first iteration is complete")
    send_twice(process, signal.SIGINT)
    code, _, err = end_of(process)
    assert code == 130, err
    check_kept(output, 1)
    must_run(case, tmp_path / "whole", *LOCAL, "--iterations", "1")
    kept, whole = (json.loads((folder / "summary.json").read_text()) for folder in (output, tmp_path / "whole"))
    assert kept["digest"] == whole["digest"]
    assert (output / "policy" / "policy.bin").read_bytes() == (
        tmp_path / "whole" / "policy" / "policy.bin"
    ).read_bytes()


@pytest.mark.timeout(900)
@pytest.mark.skipif(not DECK.is_dir(), reason=f"{DECK} is not there")
@pytest.mark.parametrize("flags", [THREADS_2, SHM_2], ids=["threads", "shm"])
def test_full_deck_stops_on_request(tmp_path, flags):
    """Run 200 forward passes through 117 stages: the forward pass alone is a native call of minutes."""
    output = tmp_path / "output"
    process = start_study(DECK, output, *flags)
    is_training = lambda: any(event["name"] == "training" for event in events_of(output, "phase"))  # noqa: E731
    wait_long(process, is_training, "it trains")
    family = children_of(process.pid)
    send_twice(process, signal.SIGINT)
    code, _, err = end_of(process)
    assert (code, err.splitlines()[-1]) == (130, "cobre: interrupted")
    wait_until_gone(family)

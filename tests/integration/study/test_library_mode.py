"""Worlds that belong to the caller: a communicator or a configuration is passed in, in separate processes."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from studies import QUICK_CASE, small_copy
from tcp_worlds import new_address

import cobre
from cobre.comm import (
    AbortedError,
    BackendKind,
    LocalCommunicator,
    LocalConfig,
    MpiConfig,
    ShmConfig,
    TcpConfig,
    create_communicator,
    launch,
)
from cobre.comm.testing.leaks import no_leaks
from cobre.io.findings import InvalidCaseError
from cobre.study.placement import Placement, WorldRequest, choose_placement
from cobre.study.preparation.fingerprint import RankMismatchError

PROGRAMS = Path(__file__).resolve().parents[3] / "examples" / "own_processes"
ITERATIONS = 4
LIMIT_S = 100
ANOTHER_WORLD = {"COBRE_COMM_BACKEND": "tcp", "COBRE_TCP_RANK": "7", "COBRE_TCP_SIZE": "8"}
FEW = {"method": "sampled", "num_scenarios": 6}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return small_copy(QUICK_CASE, tmp_path_factory.mktemp("case"))


@pytest.fixture(scope="module")
def local_result(case):
    return cobre.train(case, iterations=ITERATIONS, threads=1)


def printed_digests(text):
    return [line.split("digest ")[1].split(",")[0] for line in text.splitlines()]


def test_processes_of_multiprocessing_train_with_their_communicator(case, local_result):
    with no_leaks() as check:
        done = subprocess.run(
            [sys.executable, PROGRAMS / "spawn_training.py", "2", case],
            check=False,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=check.environment,
        )
    assert printed_digests(done.stdout) == [local_result.digest] * 2, done.stderr
    first, second = done.stdout.splitlines()
    assert first.endswith("tables ['buses', 'costs']")
    assert second.endswith("tables []")


def test_program_with_multiprocessing_ends_when_its_ranks_fail(tmp_path):
    with no_leaks() as check:
        done = subprocess.run(
            [sys.executable, PROGRAMS / "spawn_training.py", "2", tmp_path / "no_case"],
            check=False,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=check.environment,
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert "InvalidCaseError" in done.stderr
    assert done.stderr.endswith("a rank failed; its error is above\n")


def test_processes_with_a_tcp_configuration_train_together(case, local_result, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(secrets.token_hex(32))
    secret.chmod(0o600)
    address = f"{new_address()}:29500"
    command = [sys.executable, PROGRAMS / "tcp_training.py"]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), "2", address, secret, case],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (1, 0)
    ]
    outputs = [process.communicate(timeout=LIMIT_S)[0] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], outputs
    assert [printed_digests(output) for output in outputs] == [[local_result.digest]] * 2


def call_all_entry_points(comm, case, folder):
    """Call every function that accepts a communicator in turn; return the results of each rank."""
    trained = cobre.train(case, comm=comm, iterations=ITERATIONS)
    simulated = cobre.simulate(case, trained.policy, comm=comm, scenarios=6)
    bound = cobre.bound(case, trained.policy, comm=comm, method="sampled", paths=4)
    study = cobre.Study(case, Path(folder) / "study", comm=comm, config_overrides={"simulation.selection": FEW})
    policy = study.train()
    counts = study.simulate(policy)
    outcome = cobre.run.run(case, Path(folder) / "run", comm=comm)
    comm.barrier()
    return (
        comm.state,
        trained.digest,
        simulated.mean_cost,
        bound.upper_bound,
        counts["completed"],
        outcome["lower_bound"],
        sorted(simulated.tables) != [],
    )


def test_communicator_serves_many_studies_and_stays_open(case, local_result, tmp_path):
    with LocalCommunicator() as comm:
        expected = call_all_entry_points(comm, case, tmp_path / "one")
        assert comm.state == "open"
    found = launch.run(call_all_entry_points, 2, "shm", (case, tmp_path / "two"))
    assert expected[:2] == ("open", local_result.digest)
    assert [rank[:-1] for rank in found] == [expected[:-1]] * 2
    assert [rank[-1] for rank in found] == [True, False]


def with_foreign_environment(comm, case):
    os.environ.update(ANOTHER_WORLD)
    return cobre.train(case, comm=comm, iterations=ITERATIONS).digest, comm.backend


def test_environment_variables_changed_during_training_are_ignored(case, local_result, monkeypatch):
    """The backend is chosen once: the communicator that was passed in, or the one selected at the start."""

    def change(_event):
        for name, value in ANOTHER_WORLD.items():
            monkeypatch.setenv(name, value)

    trained = cobre.train(case, iterations=ITERATIONS, threads=1, progress_callback=change)
    assert os.environ["COBRE_COMM_BACKEND"] == "tcp" and trained.digest == local_result.digest
    monkeypatch.undo()
    assert launch.run(with_foreign_environment, 2, "shm", (case,)) == [(local_result.digest, "shm")] * 2


def test_gap_refers_to_policy_cost_in_iterations_and_result(case):
    """Check that the gap uses the policy cost, not the mean of sampled paths, which may be below the lower bound."""
    events = []
    trained = cobre.train(case, iterations=ITERATIONS, threads=1, progress_callback=events.append)
    assert [event.iteration for event in events] == list(range(1, ITERATIONS + 1))
    for event in events:
        assert event.gap == pytest.approx((event.policy_cost - event.lower_bound) / event.lower_bound)
        assert event.policy_cost_half_width > 0.0
    assert trained.gap == trained.policy_gap == trained.computed_bound.gap
    assert "gap" in repr(trained) and "upper bound" not in repr(trained)


def test_callback_is_not_mistaken_for_progress_flag(case):
    with pytest.raises(
        TypeError, match=r"progress: expected True or False, got <.*`progress_callback` takes a function"
    ):
        cobre.train(case, iterations=1, progress=print)


def shared_memory_of(comm, case, trainings):
    cobre.train(case, comm=comm, iterations=1)
    before = mapped_segments()
    for _ in range(trainings):
        cobre.train(case, comm=comm, iterations=1)
    comm.barrier()
    return before, mapped_segments()


def mapped_segments():
    return sum("/dev/shm/" in line or "memfd:" in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_study_memory_is_released_with_open_communicator(case):
    for before, after in launch.run(shared_memory_of, 2, "shm", (case, 3)):
        assert before > 0
        assert after <= before


def failing(comm, case):
    """Train an invalid case; return the error, and the state of the communicator."""
    try:
        cobre.train(case, comm=comm, iterations=1)
    except (InvalidCaseError, AbortedError) as error:
        return type(error).__name__, "config.json" in str(error), comm.state
    return None


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_error_reaches_all_ranks_and_closes_no_borrowed_communicator(case, tmp_path, backend):
    broken = small_copy(case, tmp_path)
    (broken / "config.json").write_text("{}")
    found = launch.run(failing, 2, backend, (broken,), output=launch.discard)
    assert found == [("InvalidCaseError", True, "broken"), ("AbortedError", True, "broken")]


def with_arguments_of_its_own(comm, arguments):
    """Train with another case or other settings on each rank; return the error."""
    try:
        cobre.train(comm=comm, **arguments[comm.rank])
    except RankMismatchError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("ranks_per_host", "changes", "words"),
    [
        (0, {"iterations": 3}, "settings of the call"),
        (1, {"iterations": 3}, "settings of the call"),
        (0, {"config_overrides": {"training.tree_seed": 7}}, "settings of the call"),
        (0, {"case": "other settings"}, "content of the case: files other than those"),
        (0, {"case": "other plants"}, "content of the case: files other than those"),
        (0, {"case": "in memory"}, "settings of the call"),
    ],
    ids=["iterations", "iterations, two hosts", "setting", "config.json", "files", "object"],
)
def test_ranks_with_different_requests_raise(case, tmp_path, ranks_per_host, changes, words):
    """Ranks are also refused on one host, where one rank reads the case for all of them."""
    same = {"case": case, "iterations": 2}
    if changes.get("case") == "other settings":
        changes = {"case": small_copy(case, tmp_path, tree_seed=5)}
    elif changes.get("case") == "other plants":
        changes = {"case": small_copy(case, tmp_path)}
        thermals = changes["case"] / "system" / "thermals.json"
        thermals.write_text(thermals.read_text().replace('"max_mw": ', '"max_mw": 1'))
    elif changes.get("case") == "in memory":
        changes = {"case": cobre.load_case(case)}
    environment = {"COBRE_TCP_RANKS_PER_HOST": str(ranks_per_host)}
    found = launch.run(with_arguments_of_its_own, 2, "tcp", ([same, same | changes],), environment=environment)
    assert found[0] == found[1]
    assert found[0].startswith("rank 1 differs from rank 0: ") and words in found[0], found


@pytest.mark.parametrize("kind", [BackendKind.SHM, "shm", BackendKind.AUTO])
def test_backend_may_be_given_by_name(case, local_result, kind):
    assert cobre.train(case, backend=kind, num_workers=2, iterations=ITERATIONS).digest == local_result.digest


@pytest.mark.parametrize("world", [LocalConfig(), ShmConfig(f"one-{os.getpid()}", 0, 1)])
def test_configuration_of_one_rank_runs_in_this_process(case, local_result, world):
    result = cobre.train(case, backend=world, iterations=ITERATIONS)
    assert result.digest == local_result.digest
    assert [report.pid for report in result.workers] == [os.getpid()]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"comm": "shm"}, TypeError, "comm: expected a communicator of cobre.comm"),
        ({"comm": TcpConfig("host", 0, 2)}, TypeError, "a configuration"),
        ({"backend": TcpConfig("host", 0, 2), "workers": 2}, ValueError, "TcpConfig describes a world"),
        ({"backend": MpiConfig(), "workers": 2}, ValueError, "num_workers cannot start more"),
    ],
)
def test_arguments_without_valid_world_raise(arguments, error, words):
    with pytest.raises(error, match=words):
        WorldRequest(**arguments)


def test_communicator_excludes_backend_and_workers():
    with create_communicator(LocalConfig()) as comm:
        for other in ({"workers": 1}, {"backend": "shm"}, {"backend": LocalConfig()}):
            with pytest.raises(ValueError, match="either comm, or backend and num_workers"):
                WorldRequest(comm=comm, **other)
        assert comm.state == "open"


def test_launcher_variables_are_ignored_with_given_world():
    environ = {"PMI_RANK": "0", "PMI_SIZE": "4", "COBRE_COMM_BACKEND": "shm"}
    world = TcpConfig("host", 1, 3)
    assert choose_placement(WorldRequest(world, threads=2), environ) == Placement("tcp", None, 2, config=world)

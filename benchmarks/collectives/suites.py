"""Suites of cases that are measured together, and their result files."""

from dataclasses import dataclass

from collectives.cases import CASES, Kind


@dataclass(frozen=True, slots=True)
class Suite:
    """Contenders to compare. name: of the result files. command: the make target. cases: () selects all."""

    name: str
    command: str
    contenders: tuple[str, ...]
    cases: tuple[str, ...] = ()


# Without shared memory a region is private: gathering into one is the plain allgatherv.
WITHOUT_REGIONS = tuple(case.name for case in CASES if case.kind is not Kind.ALLGATHERV_INTO_REGION)

SUITES = {
    suite.name: suite
    for suite in (
        Suite("comm", "make bench-comm", ("memcpy", "shm", "mpich", "openmpi")),
        Suite("net", "make bench-net", ("sockets", "tcp", "gloo"), WITHOUT_REGIONS),
        Suite("mpi", "make bench-mpi", ("cobre-mpich", "cobre-openmpi")),
    )
}

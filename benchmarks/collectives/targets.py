"""Comparisons between contenders, with targets. Lower is better."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from collectives.cases import CASES

MICROSECONDS = 1e6


class Measure(StrEnum):
    """How two times are compared."""

    RATIO = "ratio"
    DIFFERENCE = "difference in us"

    def of(self, ours: float, other: float) -> float:
        """Compare two numbers of seconds."""
        return ours / other if self is Measure.RATIO else (ours - other) * MICROSECONDS


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of ours with the best of the others in one run; `targets` by number of ranks, then by case."""

    title: str
    ours: str
    others: tuple[str, ...]
    targets: Mapping[int, Mapping[str, float]]
    measure: Measure = Measure.RATIO

    def covers(self, case: str) -> bool:
        """Return whether the comparison applies to a case: ratios to all, differences to those with a target."""
        return self.measure is Measure.RATIO or any(case in by_case for by_case in self.targets.values())


def by_case(*ratios: float) -> dict[str, float]:
    """Name a row of ratios by the cases, in their order."""
    return dict(zip((case.name for case in CASES), ratios, strict=True))


def beside_gloo(allreduce: float, allgatherv: float, large_allgatherv: float) -> dict[str, float]:
    """Return the ratios to gloo that tcp has to reach, by case."""
    return {"allreduce 32 B": allreduce, "allgatherv 3.2 MB": allgatherv, "allgatherv 206 MB": large_allgatherv}


def beside_raw(library: str, name: str) -> tuple[Comparison, ...]:
    """Compare the mpi backend with raw MPI: large calls by ratio, small ones by difference, and hand-written folds."""
    payloads = {"allgatherv 3.2 MB": 1.01, "allgatherv 206 MB": 1.01}
    small = {"barrier": 2.0, "allreduce 32 B": 6.0, "broadcast 10 KB": 2.0}  # our allreduce is ordered, theirs is not
    by_hand = {"barrier": 1.05, "allreduce 32 B": 1.05, "allreduce 8 MB": 1.05}
    ours, others, title = f"cobre-{name}", (f"raw-{name}",), f"cobre mpi {{}} raw, {library}"
    return (
        Comparison(title.format("/"), ours, others, {2: payloads, 4: payloads}),
        Comparison(title.format("-"), ours, others, {2: small, 4: small}, Measure.DIFFERENCE),
        Comparison(f"cobre mpi / by hand, {library}", ours, (f"fold-{name}",), {2: by_hand, 4: by_hand}),
    )


COMPARISONS = (
    Comparison(
        title="shm / better MPI",
        ours="shm",
        others=("mpich", "openmpi"),
        targets={
            2: by_case(0.8, 0.5, 0.75, 0.75, 0.3, 0.85, 0.4, 0.4, 0.7),
            4: by_case(1.3, 0.6, 0.6, 0.5, 0.2, 0.6, 0.2, 0.4, 0.5),  # on two cores
        },
    ),
    Comparison(title="shm / memcpy", ours="shm", others=("memcpy",), targets={}),
    Comparison(
        title="tcp / gloo",
        ours="tcp",
        others=("gloo",),
        targets={2: beside_gloo(0.2, 0.5, 1.0), 4: beside_gloo(0.1, 0.6, 1.0)},
    ),
    Comparison(title="tcp / sockets", ours="tcp", others=("sockets",), targets={2: {"allgatherv 206 MB": 1.5}}),
    *beside_raw("MPICH", "mpich"),
    *beside_raw("Open MPI", "openmpi"),
)

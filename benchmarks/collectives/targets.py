"""Which contenders are set against each other, and the ratios to reach. Lower is better."""

from collections.abc import Mapping
from dataclasses import dataclass

from collectives.cases import CASES


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ours over the best of the others in the same run; `targets` by number of ranks, then by case."""

    title: str
    ours: str
    others: tuple[str, ...]
    targets: Mapping[int, Mapping[str, float]]


def by_case(*ratios: float) -> dict[str, float]:
    """Name a row of ratios by the cases, in their order."""
    return dict(zip((case.name for case in CASES), ratios, strict=True))


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
)

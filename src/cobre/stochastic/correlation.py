"""Correlated noise: groups of entities whose standard normals are mixed by the square root of their matrix.

The root is the symmetric one, D = V sqrt(max(lambda, 0)) V^T. Eigenvectors come from a Jacobi method with a fixed order
of rotations: plain arithmetic, so the bits do not depend on a linear algebra library or a processor. The root is
unique, so another method gives the same up to rounding.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cobre._native import add_outer_products, diagonalise, mix
from cobre.core.arrays import Floats
from cobre.core.case import Correlation, CorrelationGroup
from cobre.core.file_names import CORRELATION_FILE
from cobre.core.temporal import Stage
from cobre.records import dataclass
from cobre.stochastic import NoiseModelError, NoiseNote

# Where the noise of (class, id) stands in the noise vector.
NoisePositions = Mapping[tuple[str, int], int]

DEFAULT_PROFILE = "default"
_MAX_SWEEPS = 100
_NEGATIVE_EIGENVALUE = -1e-8
_ASYMMETRY = 1e-10


@dataclass(frozen=True, slots=True)
class Mixing:
    """Positions in the noise vector, and the matrix root that correlates them."""

    positions: NDArray[np.intp]
    root: Floats

    def apply(self, noise: Floats) -> None:
        """Replace independent numbers by correlated ones, in place; rows are draws."""
        independent = np.ascontiguousarray(noise[:, self.positions])
        total = np.empty(independent.shape)
        mix(independent, self.root, total)  # symmetric; summed from the first column on
        noise[:, self.positions] = total

    def is_within(self, part: slice) -> bool:
        """Return whether all positions belong to a part of the vector."""
        return bool(((self.positions >= part.start) & (self.positions < part.stop)).all())


class CorrelationProfiles:
    """Mixings by stage. `notes`: matrices that were clipped."""

    def __init__(self, by_stage: Mapping[int, tuple[Mixing, ...]], notes: Sequence[NoiseNote] = ()) -> None:
        self._by_stage = by_stage
        self.notes = tuple(notes)

    def apply(self, stage_id: int, noise: Floats, part: slice | None = None) -> Floats:
        """Correlate the independent `noise` of a stage, in place: all of it, or one class's part."""
        for mixing in self._by_stage.get(stage_id, ()):
            if part is None or mixing.is_within(part):
                mixing.apply(noise)
        return noise


def correlation_profiles(
    correlation: Correlation | None,
    stage_ids: Sequence[int],
    noise_positions: NoisePositions,
    known: Mapping[str, frozenset[int]],
    source: str = CORRELATION_FILE,
) -> CorrelationProfiles:
    """Return the profiles of a case.

    noise_positions: of every (class, id) in a noise vector. known: ids there are, by class.
    Negative eigenvalues of a matrix (from the file `source`) count as zero, with a note for the user.
    """
    if correlation is None:
        return CorrelationProfiles({})
    for name in sorted(correlation.profiles):
        _refuse_shared(name, correlation.profiles[name])
    notes: list[NoiseNote] = []
    profiles = {
        name: tuple(_mixing(name, group, noise_positions, known, source, notes) for group in correlation.profiles[name])
        for name in sorted(correlation.profiles)
    }
    names = {stage_id: _profile_of(correlation, stage_id) for stage_id in stage_ids}
    return CorrelationProfiles({stage_id: profiles[name] for stage_id, name in names.items()}, notes)


def _profile_of(correlation: Correlation, stage_id: int) -> str:
    """Return the scheduled profile, else the default one, else the only one there is."""
    names = sorted(correlation.profiles)
    fallback = DEFAULT_PROFILE if DEFAULT_PROFILE in names or len(names) != 1 else names[0]
    name = correlation.schedule.get(stage_id, fallback)
    if name not in correlation.profiles:
        raise NoiseModelError(
            CORRELATION_FILE, f"stage {stage_id}", f"there is no profile named {name!r}; there are {', '.join(names)}"
        )
    return name


def _mixing(
    profile: str,
    group: CorrelationGroup,
    noise_positions: NoisePositions,
    known: Mapping[str, frozenset[int]],
    source: str,
    notes: list[NoiseNote],
) -> Mixing:
    """Return the mixing matrix of a group; entities without noise are left out."""
    where = f"profile {profile}, group {group.name}"
    _check_group(where, group, known)
    members = [index for index, entity in enumerate(group.entities) if entity in noise_positions]
    positions = np.array([noise_positions[group.entities[index]] for index in members], dtype=np.intp)
    _check_matrix(group.matrix, where)
    root, smallest = symmetric_root(group.matrix[np.ix_(members, members)])
    if smallest < _NEGATIVE_EIGENVALUE:
        growth = math.sqrt(float((root * root).sum(axis=1).max())) - 1.0
        text = (
            f"the matrix is not positive semidefinite: negative eigenvalues, down to {smallest:.6g}, count as zero, "
            f"and the standard deviations of the noise grow by up to {100.0 * growth:.1f} %"
        )
        notes.append(NoiseNote("correlation-not-semidefinite", source, where, text))
    return Mixing(positions, root)


def _refuse_shared(profile: str, groups: Sequence[CorrelationGroup]) -> None:
    counts = Counter(entity for group in groups for entity in group.entities)
    for (entity_class, entity_id), count in counts.items():
        if count > 1:
            raise NoiseModelError(CORRELATION_FILE, f"profile {profile}", f"{entity_class} {entity_id} is listed twice")


def _check_group(where: str, group: CorrelationGroup, known: Mapping[str, frozenset[int]]) -> None:
    for entity_class, entity_id in group.entities:
        if entity_id not in known.get(entity_class, frozenset()):
            raise NoiseModelError(CORRELATION_FILE, where, f"there is no {entity_class} entity with id {entity_id}")
    if len({entity_class for entity_class, _ in group.entities}) > 1:
        raise NoiseModelError(CORRELATION_FILE, where, "all entities of a group must be of one type")
    count = len(group.entities)
    if group.matrix.shape != (count, count):
        raise NoiseModelError(
            CORRELATION_FILE, where, f"the matrix is {group.matrix.shape}; {count} entities need {count} x {count}"
        )


def symmetric_root(matrix: Floats) -> tuple[Floats, float]:
    """Return the symmetric root of a correlation matrix and its least eigenvalue; negative ones count as zero."""
    if not len(matrix):
        return matrix, 0.0
    values, vectors = jacobi_eigen(matrix)
    root = np.zeros(matrix.shape)
    add_outer_products(np.ascontiguousarray(vectors.T), np.sqrt(np.maximum(values, 0.0)), root)
    return root, min(values)


def _check_matrix(matrix: Floats, where: str) -> None:
    if not len(matrix):
        return
    if not np.isfinite(matrix).all() or np.abs(matrix).max() > 1.0 + _ASYMMETRY:
        raise NoiseModelError(CORRELATION_FILE, where, "correlations lie between -1 and 1")
    if np.abs(matrix - matrix.T).max() > _ASYMMETRY:
        raise NoiseModelError(CORRELATION_FILE, where, "the matrix is not symmetric")
    if np.abs(np.diagonal(matrix) - 1.0).max() > _ASYMMETRY:
        raise NoiseModelError(CORRELATION_FILE, where, "the diagonal of the matrix must be 1")


def jacobi_eigen(matrix: Floats) -> tuple[list[float], Floats]:
    """Return eigenvalues and orthonormal eigenvectors (as columns) of a symmetric matrix, found by rotations.

    A sweep turns every pair of axes once, in rounds of disjoint pairs that are turned together.
    """
    work, rows = np.array(matrix, dtype=np.float64, order="C"), np.eye(len(matrix))
    diagonalise(work, rows, _MAX_SWEEPS)
    return [float(value) for value in np.diagonal(work)], rows.T


# Stages that share their noise: neighbours in the same season of the same year.
#
# A month that is cut into weeks has one draw of monthly noise, not four. Stages without a season never share.


def group_leaders(stages: Sequence[Stage]) -> tuple[int, ...]:
    """Return for each stage the index of the stage whose noise it uses: its own, or the first of its group."""
    leaders: list[int] = []
    for index, stage in enumerate(stages):
        shares = index > 0 and _key(stage) is not None and _key(stage) == _key(stages[index - 1])
        leaders.append(leaders[-1] if shares else index)
    return tuple(leaders)


def group_numbers(stages: Sequence[Stage]) -> tuple[int, ...]:
    """Return for each stage the number of its group, counted from 0."""
    leaders = group_leaders(stages)
    number = {leader: count for count, leader in enumerate(dict.fromkeys(leaders))}
    return tuple(number[leader] for leader in leaders)


def _key(stage: Stage) -> tuple[int, int] | None:
    return None if stage.season_id is None else (stage.season_id, stage.start_date.year)

"""Correlated noise: groups of entities whose standard normals are mixed by the square root of their matrix.

The root is the symmetric one, D = V sqrt(max(lambda, 0)) V^T. Eigenvectors come from a Jacobi method with a fixed order
of rotations: plain arithmetic, so the bits do not depend on a linear algebra library or a processor. The root is
unique, so another method gives the same up to rounding.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import Correlation, CorrelationGroup
from cobre.stochastic.errors import NoiseModelError

Floats = NDArray[np.float64]

# Where the noise of (class, id) stands in the noise vector.
Places = Mapping[tuple[str, int], int]

CORRELATION_FILE = "scenarios/correlation.json"
DEFAULT_PROFILE = "default"
_MAX_SWEEPS = 100
_NEGATIVE_EIGENVALUE = -1e-8
_ASYMMETRY = 1e-10


@dataclass(frozen=True, slots=True)
class Mixing:
    """Positions in the noise vector, and the matrix that mixes what stands there."""

    positions: NDArray[np.intp]
    root: Floats

    def apply(self, noise: Floats) -> None:
        """Replace independent numbers by correlated ones, in place; rows are draws."""
        independent = noise[:, self.positions]
        total = np.zeros(independent.shape)
        for column in range(len(self.positions)):
            total = total + independent[:, column : column + 1] * self.root[:, column]
        noise[:, self.positions] = total

    def lies_within(self, part: slice) -> bool:
        """Whether all positions belong to a part of the vector."""
        return bool(((self.positions >= part.start) & (self.positions < part.stop)).all())


class CorrelationProfiles:
    """Which mixings hold at which stage."""

    def __init__(self, by_stage: Mapping[int, tuple[Mixing, ...]]) -> None:
        self._by_stage = by_stage

    def apply(self, stage_id: int, noise: Floats, part: slice | None = None) -> Floats:
        """Correlate the independent `noise` of a stage, in place: all of it, or one class's part."""
        for mixing in self._by_stage.get(stage_id, ()):
            if part is None or mixing.lies_within(part):
                mixing.apply(noise)
        return noise


def correlation_profiles(
    correlation: Correlation | None,
    stage_ids: Sequence[int],
    places: Places,
    known: Mapping[str, frozenset[int]],
    *,
    is_estimated: bool = False,
) -> CorrelationProfiles:
    """The profiles of a case. `places`: where the noise of (class, id) stands; `known`: ids there are, by class.

    A matrix from a file must be positive semidefinite. One that is estimated from series with gaps may fail that
    slightly; its negative eigenvalues count as zero.
    """
    if correlation is None:
        return CorrelationProfiles({})
    profiles = {
        name: tuple(_mixing(name, group, places, known, is_estimated) for group in correlation.profiles[name])
        for name in sorted(correlation.profiles)
    }
    names = {stage_id: _profile_of(correlation, stage_id) for stage_id in stage_ids}
    return CorrelationProfiles({stage_id: profiles[name] for stage_id, name in names.items()})


def _profile_of(correlation: Correlation, stage_id: int) -> str:
    """The scheduled profile, else the default one, else the only one there is."""
    names = sorted(correlation.profiles)
    fallback = DEFAULT_PROFILE if DEFAULT_PROFILE in names or len(names) != 1 else names[0]
    name = correlation.schedule.get(stage_id, fallback)
    if name not in correlation.profiles:
        raise NoiseModelError(
            CORRELATION_FILE, f"stage {stage_id}", f"there is no profile named {name!r}; there are {', '.join(names)}"
        )
    return name


def _mixing(
    profile: str, group: CorrelationGroup, places: Places, known: Mapping[str, frozenset[int]], is_estimated: bool
) -> Mixing:
    """Entities whose values have no noise take no part."""
    where = f"profile {profile}, group {group.name}"
    _check_group(where, group, known)
    members = [index for index, entity in enumerate(group.entities) if entity in places]
    positions = np.array([places[group.entities[index]] for index in members], dtype=np.intp)
    root = symmetric_root(group.matrix, where, may_clip=is_estimated)
    if len(members) < len(group.entities):
        root = symmetric_root(group.matrix[np.ix_(members, members)], where, may_clip=is_estimated)
    return Mixing(positions, root)


def _check_group(where: str, group: CorrelationGroup, known: Mapping[str, frozenset[int]]) -> None:
    for entity_class, entity_id in group.entities:
        if entity_id not in known.get(entity_class, frozenset()):
            raise NoiseModelError(CORRELATION_FILE, where, f"there is no {entity_class} entity with id {entity_id}")
    if len({entity_class for entity_class, _ in group.entities}) > 1:
        raise NoiseModelError(CORRELATION_FILE, where, "all entities of a group must be of one type")
    if len(set(group.entities)) != len(group.entities):
        raise NoiseModelError(CORRELATION_FILE, where, "an entity is named twice")
    count = len(group.entities)
    if group.matrix.shape != (count, count):
        raise NoiseModelError(
            CORRELATION_FILE, where, f"the matrix is {group.matrix.shape}; {count} entities need {count} x {count}"
        )


def symmetric_root(matrix: Floats, where: str, *, may_clip: bool = False) -> Floats:
    """The symmetric square root; raises when the matrix is no correlation matrix."""
    if not len(matrix):
        return matrix
    _check_matrix(matrix, where)
    values, vectors = jacobi_eigen(matrix)
    if min(values) < _NEGATIVE_EIGENVALUE and not may_clip:
        raise NoiseModelError(
            CORRELATION_FILE, where, f"the matrix is not positive semidefinite: an eigenvalue is {min(values):.6g}"
        )
    root = np.zeros_like(matrix)
    for index, value in enumerate(values):
        column = vectors[:, index]
        root = root + math.sqrt(max(value, 0.0)) * (column[:, None] * column[None, :])
    return root


def _check_matrix(matrix: Floats, where: str) -> None:
    if not np.isfinite(matrix).all() or np.abs(matrix).max() > 1.0 + _ASYMMETRY:
        raise NoiseModelError(CORRELATION_FILE, where, "correlations lie between -1 and 1")
    if np.abs(matrix - matrix.T).max() > _ASYMMETRY:
        raise NoiseModelError(CORRELATION_FILE, where, "the matrix is not symmetric")
    if np.abs(np.diagonal(matrix) - 1.0).max() > _ASYMMETRY:
        raise NoiseModelError(CORRELATION_FILE, where, "the diagonal of the matrix must be 1")


def jacobi_eigen(matrix: Floats) -> tuple[list[float], Floats]:
    """Eigenvalues and orthonormal eigenvectors (as columns) of a symmetric matrix, by cyclic rotations."""
    work = matrix.copy()
    vectors = np.eye(len(work))
    for _ in range(_MAX_SWEEPS):
        if not _sweep(work, vectors):
            break
    return [float(value) for value in np.diagonal(work)], vectors


def _sweep(work: Floats, vectors: Floats) -> bool:
    """One round over all pairs; False when nothing was left to turn."""
    turned = False
    for p in range(len(work) - 1):
        for q in range(p + 1, len(work)):
            if _is_negligible(work, p, q):
                work[p, q] = work[q, p] = 0.0
            else:
                _rotate(work, vectors, p, q)
                turned = True
    return turned


def _is_negligible(work: Floats, p: int, q: int) -> bool:
    """Whether an element is lost beside both of its diagonal elements, or beside 1."""
    return abs(float(work[p, q])) <= 1e-17 * max(1.0, abs(float(work[p, p])), abs(float(work[q, q])))


def _rotate(work: Floats, vectors: Floats, p: int, q: int) -> None:
    ratio = (float(work[q, q]) - float(work[p, p])) / (2.0 * float(work[p, q]))
    tangent = math.copysign(1.0, ratio) / (abs(ratio) + math.sqrt(ratio * ratio + 1.0))
    cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
    sine = tangent * cosine
    for axis in (work, work.T, vectors):
        left, right = axis[:, p].copy(), axis[:, q].copy()
        axis[:, p] = cosine * left - sine * right
        axis[:, q] = sine * left + cosine * right

"""The openings of a stage: realisations of its noise, and their order in chains of warm-started solves."""

from collections.abc import Sequence

import numpy as np

from cobre._native import add_rows, opening_chains
from cobre.core.arrays import Floats, Ints
from cobre.records import dataclass
from cobre.solver.batches import Bases, Chains, Realisations
from cobre.stochastic.model import NoiseModel


@dataclass(frozen=True, slots=True)
class StageOpenings:
    """The openings of a stage, and the order in which a chain of warm-started solves goes through them.

    Neighbours in a chain should differ little, so openings are sorted by their total inflow, the driest first.

    order: opening indices, sorted. position: by opening, its position in `order` (the inverse permutation).
    """

    realisations: Realisations
    order: Ints
    position: Ints

    @classmethod
    def of(cls, realisations: Realisations) -> "StageOpenings":
        """Sort the openings by total inflow."""
        order = np.argsort(_total_inflow_m3s(realisations), kind="stable").astype(np.int32)
        position = np.empty_like(order)
        position[order] = np.arange(len(order), dtype=np.int32)
        return cls(realisations, order, position)

    @property
    def count(self) -> int:
        """The number of openings of the stage."""
        return len(self.order)

    def positions(self, sampled: Realisations, realisation_index: Ints) -> Ints:
        """Return for each path the position in `order` of the opening that its realisation resembles by total inflow.

        realisation_index: by path, the row of `sampled` that the path drew. In-sample rows are openings and have their
        own position.
        """
        if sampled is self.realisations:
            return self.position[realisation_index]
        inflow = _total_inflow_m3s(self.realisations)[self.order]
        position = np.searchsorted(inflow, _total_inflow_m3s(sampled)[realisation_index])
        return np.minimum(position, self.count - 1).astype(np.int32)

    def chains(self, states: Floats, bases: Bases, positions: Ints) -> Chains:
        """Return every trial point with all openings; results are ordered by trial point, then by opening.

        A trial point's basis is optimal for the realisation that its path drew, at `positions[p]` of the order. From
        there one chain goes to the wettest opening and another one to the driest.
        """
        order = opening_chains(self.order, positions)
        noise, index = self.realisations, order.realisation_index
        return Chains(states, order.start, noise, index, bases, order.basis_index, order.result_index, 2)


def realise(noise: NoiseModel, stage: int, values: Floats) -> Realisations:
    """Turn noise vectors (scenarios x entities) of a stage into inflows, loads and availabilities."""
    outcome = noise.realise(stage, values)
    return Realisations(
        np.ascontiguousarray(outcome.inflow_m3s),
        np.ascontiguousarray(outcome.load_mw),
        np.ascontiguousarray(outcome.availability),
    )


def _total_inflow_m3s(realisations: Realisations) -> Floats:
    """Return by realisation the inflows of all hydros, added in the order of plants so that the bits are fixed."""
    total = np.empty(len(realisations.inflow_m3s))
    add_rows(np.ascontiguousarray(realisations.inflow_m3s.T), total)
    return total


def may_be_negative(autoregression: Sequence[Floats], inflow_m3s: Sequence[Floats]) -> bool:
    """Return whether an inflow that depends on its past, or affects a later one, may be negative in some opening.

    By stage. autoregression: lags x hydros. inflow_m3s: openings x hydros, without the part of the past.
    """
    remembers = np.any([(psi != 0.0).any(axis=0) for psi in autoregression], axis=0)
    if not remembers.any():
        return False
    return any(bool((psi < 0.0).any()) for psi in autoregression) or any(
        bool((inflow[:, remembers] < 0.0).any()) for inflow in inflow_m3s
    )


def has_negative_memory(noise: NoiseModel) -> bool:
    """Return whether inflows of a noise model `may_be_negative`: their correction makes costs-to-go non-convex."""
    stages = range(len(noise.ar_coefficients))
    if not noise.ar_coefficients.any():
        return False
    openings = [realise(noise, stage, noise.openings[stage]).inflow_m3s for stage in stages]
    return may_be_negative(list(noise.ar_coefficients), openings)

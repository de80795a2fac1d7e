"""Risk measures: expectation, and a mix of expectation and conditional value at risk."""

from functools import lru_cache

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.temporal import CvarParameters
from cobre.records import dataclass
from cobre.sddp.plugins.interfaces import RiskMeasure


class Expectation(RiskMeasure):
    """Risk-neutral: the expected cost, with equally likely openings."""

    def weights(self, costs: Floats) -> Floats:
        """Return 1 / number of openings, for every opening."""
        return _equal_weights(*costs.shape)

    def spectral_weights(self, openings: int) -> Floats:
        """Return 1 / number of openings, for every opening."""
        weights: Floats = _equal_weights(1, openings)[0]
        return weights

    def weights_for(self, costs: Floats, probabilities: Floats) -> Floats:
        """Return the probabilities themselves."""
        return probabilities


@lru_cache(maxsize=16)  # a stage asks for the same ones in every iteration
def _equal_weights(points: int, openings: int) -> Floats:
    weights = np.full((points, openings), 1.0 / openings)
    weights.flags.writeable = False
    return weights


@dataclass(frozen=True, slots=True)
class CvarMix(RiskMeasure):
    """(1 - share) times the mean plus `share` times the mean of the worst `alpha` of the openings.

    alpha: probability of the tail, above 0 and at most 1. share: the weight of the tail (lambda), 0 to 1.
    """

    alpha: float
    share: float

    def weights(self, costs: Floats) -> Floats:
        """Return the weight of the mean for every opening, and the rest for the most expensive ones up to `alpha`.

        Equal costs count in order of their numbers; the last opening of the tail may count in part.
        """
        order = np.argsort(-costs, axis=1, kind="stable")
        weights = np.empty_like(costs)
        np.put_along_axis(weights, order, np.broadcast_to(self.spectral_weights(costs.shape[1]), costs.shape), axis=1)
        return weights

    def spectral_weights(self, openings: int) -> Floats:
        """Return the weight of the mean, and for the most expensive openings their part of the tail."""
        return _tail_weights(self.alpha, self.share, openings)

    def weights_for(self, costs: Floats, probabilities: Floats) -> Floats:
        """Return the same for children with probabilities: the tail ends where these add up to `alpha`."""
        order = np.argsort(-costs, kind="stable")
        before = np.concatenate([np.zeros(1), np.add.accumulate(probabilities[order])[:-1]])
        tail = np.clip(self.alpha - before, 0.0, probabilities[order]) / self.alpha
        weights = np.empty_like(probabilities)
        weights[order] = (1.0 - self.share) * probabilities[order] + self.share * tail
        return weights


@lru_cache(maxsize=16)
def _tail_weights(alpha: float, share: float, openings: int) -> Floats:
    probability = 1.0 / openings
    max_weight = probability / alpha
    tail = np.clip(1.0 - max_weight * np.arange(openings), 0.0, max_weight)
    weights: Floats = (1.0 - share) * probability + share * tail
    weights.flags.writeable = False
    return weights


def risk_measure(parameters: CvarParameters | None) -> RiskMeasure:
    """Return the risk measure of a stage; None, lambda 0 and alpha 1 are the expectation."""
    if parameters is None or parameters.is_expectation:
        return Expectation()
    return CvarMix(parameters.alpha, parameters.lambda_)


def weighted(weights: Floats, values: Floats) -> Floats:
    """Sum over openings (axis 1) in order, so the bits are reproducible."""
    products = weights.reshape(*weights.shape, *([1] * (values.ndim - 2))) * values
    total: Floats = np.add.accumulate(products, axis=1)[:, -1]
    return total

"""The cuts of one stage as selections read them."""

from typing import Protocol

from cobre.core.arrays import Floats


class CutsOfStage(Protocol):
    """The cuts of one stage, the oldest first. Values are scaled costs ($ / cost_scale)."""

    def values_at(self, states: Floats) -> Floats:
        """States x cuts: the value of every cut at every state."""

    def values_from(self, states: Floats, first: int) -> Floats:
        """States x cuts, as `values_at`, for the cuts from index `first` on."""

    def __len__(self) -> int:
        """The number of cuts."""

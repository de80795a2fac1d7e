"""The layout of a noise vector: hydros, then buses with random load, then sources."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Flags
from cobre.records import dataclass

CLASSES = ("inflow", "load", "ncs")


@dataclass(frozen=True, slots=True)
class NoiseLayout:
    """Ids by class, in the order of the vector, and the positions of buses and sources among all of their class."""

    hydro_ids: tuple[int, ...]
    bus_ids: tuple[int, ...]
    ncs_ids: tuple[int, ...]
    bus_positions: NDArray[np.intp]
    ncs_positions: NDArray[np.intp]

    @property
    def dimension(self) -> int:
        """The number of entries of a noise vector."""
        return len(self.hydro_ids) + len(self.bus_ids) + len(self.ncs_ids)

    @property
    def inflow(self) -> slice:
        """The hydros' part of a noise vector."""
        return slice(0, len(self.hydro_ids))

    @property
    def load(self) -> slice:
        """The part of a noise vector for loads."""
        return slice(len(self.hydro_ids), len(self.hydro_ids) + len(self.bus_ids))

    @property
    def ncs(self) -> slice:
        """The part of a noise vector for non-controllable sources."""
        return slice(len(self.hydro_ids) + len(self.bus_ids), self.dimension)

    def part(self, entity_class: str) -> slice:
        """The part of a class: inflow, load or ncs."""
        return {"inflow": self.inflow, "load": self.load, "ncs": self.ncs}[entity_class]

    def positions(self) -> dict[tuple[str, int], int]:
        """The position of every (class, id) that has noise."""
        keys = [("inflow", i) for i in self.hydro_ids]
        keys += [("load", i) for i in self.bus_ids] + [("ncs", i) for i in self.ncs_ids]
        return {key: position for position, key in enumerate(keys)}


def noise_layout(
    hydro_ids: Sequence[int],
    bus_ids: Sequence[int],
    has_random_load: Flags,
    ncs_ids: Sequence[int],
    has_statistics: Flags,
) -> NoiseLayout:
    """The layout of a study from what its buses and sources have."""
    buses, sources = np.flatnonzero(has_random_load), np.flatnonzero(has_statistics)
    return NoiseLayout(
        tuple(hydro_ids),
        tuple(bus_ids[i] for i in buses.tolist()),
        tuple(ncs_ids[i] for i in sources.tolist()),
        buses,
        sources,
    )

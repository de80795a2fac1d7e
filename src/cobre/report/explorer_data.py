"""Data of the explorer: results of every plant, bus and line, small enough for one HTML file.

Percentiles and means over scenarios, a few single scenarios and means by block, with four digits; with `is_full` all
scenarios, and percentiles by block.
"""

import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.records import dataclass
from cobre.report.charts import BLUE, ORANGE, VARIABLES
from cobre.report.simulated import (
    KINDS,
    PERCENTILES,
    QUANTITIES,
    Cube,
    SimulationTables,
    congestion,
    limits_by_stage,
    percentiles,
)
from cobre.report.stored_study import StoredStudy
from cobre.runs.labels import NEGLIGIBLE

# Compact encoding of numbers, which the script of the page decodes: four significant digits, deflated, in base64. Sign,
# exponent and 13 bits of the fraction of a float32 take 3 bytes. The relative error is at most 6.1e-5.
FRACTION_BITS = 13
_DROPPED_BITS = 23 - FRACTION_BITS


def pack(values: NDArray[np.floating]) -> str:
    """Encode all numbers in order. Bytes of equal significance are stored together: deflate compresses them."""
    bits = np.ascontiguousarray(values, np.float32).reshape(-1).view(np.uint32)
    is_finite = np.isfinite(values).reshape(-1)
    rounded = np.where(is_finite, bits + np.uint32(1 << (_DROPPED_BITS - 1)), bits) >> np.uint32(8)
    leading = rounded & ~np.uint32((1 << (_DROPPED_BITS - 8)) - 1)
    planes = np.stack([leading >> 16, leading >> 8, leading]).astype(np.uint8)
    return b64encode(zlib.compress(planes.tobytes(), 6)).decode("ascii")


STATISTICS = (*("median" if percentile == 50 else f"{percentile} %" for percentile in PERCENTILES), "mean")
BLOCK_PERCENTILES = (5, 95)
SINGLE_SCENARIOS = {"cheapest": 0.0, "median by cost": 0.5, "most expensive": 1.0}


@dataclass(frozen=True, slots=True)
class Summary:
    """A quantity by entity: its mean over stages and scenarios, and the scenarios (S x E) in which it is not 0."""

    mean: Floats
    is_nonzero: NDArray[np.bool_]

    @classmethod
    def of(cls, values: Floats) -> "Summary":
        """Compute from S x T x E values; stages in which an entity is out of service do not count."""
        means = values.mean(axis=0)
        is_present = ~np.isnan(means)
        sums, counts = np.where(is_present, means, 0.0).sum(axis=0), is_present.sum(axis=0)
        mean: Floats = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        highest, lowest = np.fmax.reduce(values, axis=1), np.fmin.reduce(values, axis=1)
        return cls(mean, np.fmax(highest, -lowest) > NEGLIGIBLE)

    @property
    def scenario_share(self) -> Floats:
        """By entity: the share of scenarios in which the quantity is not 0."""
        return np.asarray(self.is_nonzero.mean(axis=0))


@dataclass(frozen=True, slots=True)
class Explorer:
    """The data of all kinds of entities, in the order of the page; `summaries` are filled by `as_dict`."""

    simulated: SimulationTables
    study: StoredStudy
    is_full: bool = False
    summaries: dict[str, Summary] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return all data of the explorer, for the page's script."""
        scenarios = self._scenarios()
        return {
            "statistics": list(STATISTICS),
            "scenarios": list(scenarios),
            "is_full": self.is_full,
            "kinds": [self._kind(kind, list(scenarios.values())) for kind in self.kinds()],
        }

    def kinds(self) -> list[str]:
        """Return the entity kinds that the simulation has results for."""
        return [kind for kind, (_, names) in KINDS.items() if self.simulated.has(names[0])]

    def _scenarios(self) -> dict[str, int]:
        """Return the indices of the scenarios that are shown one by one, by name."""
        costs = self.simulated.scenario_costs()
        order = np.argsort(costs, kind="stable")
        ids = self.simulated.rows("costs").scenarios
        indices = {name: int(order[round(share * (len(order) - 1))]) for name, share in SINGLE_SCENARIOS.items()}
        typical = {f"{name} (scenario {ids[position]})": position for name, position in indices.items()}
        return typical | {f"scenario {ids[position]}": position for position in range(len(ids) if self.is_full else 0)}

    def _kind(self, kind: str, scenarios: Sequence[int]) -> dict[str, Any]:
        title, names = KINDS[kind]
        rows = self.simulated.rows(QUANTITIES[names[0]].table)
        hours = self.simulated.hours(rows)
        return {
            "key": kind,
            "title": title,
            "ids": list(rows.entities),
            "names": [self.study.entity_name(kind, id_) for id_ in rows.entities],
            "facts": [", ".join(self._phrases(kind, id_)) for id_ in rows.entities],
            "labels": self.study.stage_labels(rows.stages),
            "blocks": [f"block {block}" for block in rows.blocks] if len(rows.blocks) > 1 else [],
            "block_hours": hours.mean(axis=0).tolist(),
            "quantities": [quantity for name in names if (quantity := self._quantity(name, scenarios)) is not None]
            + (self._congestion() if kind == "lines" else []),
        }

    def _phrases(self, kind: str, id_: int) -> Iterator[str]:
        """Yield phrases about an entity: its bus, its neighbours and its direction."""
        record = self.study.entity(kind, id_)
        for bus in record.get("bus_ids") or [record.get("bus_id")]:
            if isinstance(bus, int):
                yield f"at {self.study.entity_name('buses', bus)}"
        if isinstance(downstream := record.get("downstream_id"), int):
            yield f"upstream of {self.study.entity_name('hydros', downstream)}"
        if isinstance(source := record.get("source_bus_id"), int) and isinstance(record.get("target_bus_id"), int):
            target = self.study.entity_name("buses", record["target_bus_id"])
            yield f"from {self.study.entity_name('buses', source)} to {target}, which is the positive direction"

    def _quantity(self, name: str, scenarios: Sequence[int]) -> dict[str, Any] | None:
        """Return the data of a quantity; None if the tables lack it, or if it is a violation that never occurs."""
        if not self.simulated.has(name):
            return None
        quantity = QUANTITIES[name]
        cube, means = self._read(name)
        summary = self.summaries[name] = Summary.of(cube.values)
        indices = (
            np.flatnonzero(summary.is_nonzero.any(axis=0)) if quantity.is_violation else np.arange(len(cube.entities))
        )
        if quantity.is_violation and not len(indices):
            return None
        values = cube.values if len(indices) == len(cube.entities) else cube.values[:, :, indices]
        statistics = np.concatenate([percentiles(values), values.mean(axis=0)[None], values[list(scenarios)]])
        return {
            "key": name,
            "title": quantity.title,
            "unit": quantity.unit,
            "colour": VARIABLES[quantity.colour],
            "is_violation": quantity.is_violation,
            "entities": None if len(indices) == len(cube.entities) else indices.tolist(),
            "packed": pack(np.moveaxis(statistics, 2, 0)),  # entity by entity
            **self._blocks(name, means),
            **self._references(name),
        }

    def _read(self, name: str) -> tuple[Cube, Floats | None]:
        """Return the values of a quantity, and its means by block where blocks differ."""
        quantity = QUANTITIES[name]
        rows = self.simulated.rows(quantity.table)
        if quantity.aggregation == "last" or quantity.is_violation or len(rows.blocks) < 2:
            return self.simulated.cube(name), None
        return self.simulated.cube_and_block_means(name)

    def _blocks(self, name: str, means: Floats | None) -> dict[str, Any]:
        """Return statistics by block, packed as E x B x statistics x T; empty if blocks do not differ."""
        if means is None:
            return {}
        statistics = means[None]  # statistics x T x E x B
        if self.is_full:
            statistics = np.concatenate([statistics, percentiles(self.simulated.blocks(name), BLOCK_PERCENTILES)])
        names = ["mean", *(f"{percentile} %" for percentile in BLOCK_PERCENTILES)][: len(statistics)]
        return {"block_statistics": names, "packed_blocks": pack(statistics.transpose(2, 3, 0, 1))}

    def _references(self, name: str) -> dict[str, Any]:
        """Return limits drawn together with a fan: those of lines."""
        if name != "line_flow":
            return {}
        rows = self.simulated.rows("exchanges")
        direct, reverse = limits_by_stage(self.study, rows, self.simulated.hours(rows))
        both = np.stack([direct, -reverse], axis=1)  # L x 2 x T
        return {"references": ["limit", "limit of the other direction"], "packed_references": pack(both)}

    def _congestion(self) -> list[dict[str, Any]]:
        rows = self.simulated.rows("exchanges")
        shares = congestion(self.study, rows, self.simulated.hours(rows))
        if shares is None:
            return []
        names = [{"name": "at the limit", "colour": VARIABLES[ORANGE]}]
        names += [{"name": "at the reverse limit", "colour": VARIABLES[BLUE]}]
        return [
            {
                "key": "congestion",
                "title": "Congestion: share of hours and scenarios at the limit",
                "unit": "%",
                "lines": names,
                "entities": None,
                "packed": pack(100.0 * shares),
            }
        ]

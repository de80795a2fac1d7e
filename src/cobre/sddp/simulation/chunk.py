"""The results of some scenarios, stage by stage as they come, and as rows in the order of scenarios."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from cobre.core.stage_data import Floats
from cobre.sddp.simulation.extract import StageExtractor
from cobre.sddp.simulation.tables import Sink, StageRows
from cobre.solver.program import Ints

BYTES_PER_CHUNK = 64 << 20
MOST_SCENARIOS = 256
FEWEST_SCENARIOS = 16


def scenarios_per_chunk(extractors: tuple[StageExtractor, ...]) -> int:
    """As many as fit into a fixed space. It depends on the study alone, so that results do not depend on ranks."""
    bytes_per_scenario = 8 * sum(extractor.width for extractor in extractors)
    return min(MOST_SCENARIOS, max(FEWEST_SCENARIOS, BYTES_PER_CHUNK // max(1, bytes_per_scenario)))


class Chunk:
    """Numbers of consecutive scenarios; only rank 0 keeps them."""

    def __init__(self, first_scenario: int, extractors: tuple[StageExtractor, ...]) -> None:
        self._first = first_scenario
        self._extractors = extractors
        self._stages: list[Floats] = []

    def add_stage(self, numbers: Floats) -> None:
        """All scenarios' numbers of the next stage."""
        self._stages.append(numbers)

    def hand_over(self, sink: Sink) -> None:
        """Give all rows to the sink, table by table."""
        pieces: dict[str, list[tuple[int, StageRows, Floats]]] = {}
        for extractor, numbers in zip(self._extractors, self._stages, strict=True):
            for rows, part in extractor.split(numbers):
                pieces.setdefault(rows.format.name, []).append((extractor.stage_id, rows, part))
        for name, parts in pieces.items():
            sink.write(name, dict(self._columns(parts)))

    def _columns(self, parts: list[tuple[int, StageRows, Floats]]) -> Iterator[tuple[str, NDArray[np.int32] | Floats]]:
        numbers = np.concatenate([part for _, _, part in parts], axis=1)
        scenarios, rows = numbers.shape[:2]
        yield "scenario_id", np.repeat(np.arange(self._first, self._first + scenarios, dtype=np.int32), rows)
        for name, column in _ids(parts).items():
            yield name, np.tile(column, scenarios)
        for position, name in enumerate(parts[0][1].format.numbers):
            yield name, np.ascontiguousarray(numbers[:, :, position]).reshape(-1)


def _ids(parts: list[tuple[int, StageRows, Floats]]) -> Mapping[str, Ints]:
    """Ids of one scenario's rows, over all stages."""
    names = ("block_id", *parts[0][1].format.ids)
    stage = np.concatenate([np.full(rows.count, stage_id, np.int32) for stage_id, rows, _ in parts])
    return {"stage_id": stage} | {name: np.concatenate([rows.ids[name] for _, rows, _ in parts]) for name in names}

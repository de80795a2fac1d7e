"""Layout of the plants on the map: rivers flow to the right, tributaries join from above and below."""

from collections.abc import Iterator, Mapping, Sequence

from cobre.records import dataclass

Cell = tuple[int, int]  # level, row


@dataclass(frozen=True, slots=True)
class CascadeLayout:
    """The cell of each plant, in a grid of `levels` columns and `rows` rows, from 0."""

    cells: Mapping[int, Cell]
    levels: int
    rows: int


def layouts(downstream: Mapping[int, int | None]) -> list[CascadeLayout]:
    """The layout of each river system, the largest first; of equal size, that with the lowest outlet id first.

    Plants in a cycle, which no valid case has, are left out.
    """
    upstream: dict[int, list[int]] = {}
    for plant, below in downstream.items():
        if below in downstream and below is not None:
            upstream.setdefault(below, []).append(plant)
    outlets = [plant for plant, below in downstream.items() if below not in downstream]
    found = [_Cascade(upstream).laid_out(outlet) for outlet in sorted(outlets)]
    return sorted(found, key=lambda layout: -len(layout.cells))


def pack_layouts(found: Sequence[CascadeLayout], width: int) -> tuple[list[Cell], int]:
    """The first level and row of each layout, packed side by side up to `width` levels, and the number of rows used."""
    corners: list[Cell] = []
    left = top = height = 0
    for layout in found:
        if left and left + layout.levels > width:
            left, top, height = 0, top + height, 0
        corners.append((left, top))
        left += layout.levels + 1  # space for a name
        height = max(height, layout.rows)
    return corners, top + height


class _Cascade:
    """A river system while its plants are laid out."""

    def __init__(self, upstream: Mapping[int, Sequence[int]]) -> None:
        self._upstream = upstream
        self._cells: dict[int, Cell] = {}
        self._taken: set[Cell] = set()
        self._lengths: dict[int, int] = {}

    def laid_out(self, outlet: int) -> CascadeLayout:
        """Lay out the system: the longest river is straight, each tributary takes the nearest free row."""
        for plant in reversed(list(self._from(outlet))):
            self._lengths[plant] = 1 + max((self._lengths[above] for above in self._above(plant)), default=0)
        waiting = [(outlet, self._lengths[outlet] - 1, 0)]
        while waiting:
            mouth, level, near = waiting.pop(0)
            stem = self._stem(mouth)
            row = self._free_row(level, len(stem), near)
            for step, plant in enumerate(stem):
                self._cells[plant] = (level - step, row)
                self._taken.add((level - step, row))
                others = [above for above in self._above(plant) if above not in stem]
                waiting += [(above, level - step - 1, row) for above in sorted(others, key=self._by_length)]
        return self._from_zero()

    def _above(self, plant: int) -> Sequence[int]:
        return self._upstream.get(plant, ())

    def _from(self, outlet: int) -> Iterator[int]:
        """All plants, each after the one below it."""
        waiting = [outlet]
        while waiting:
            plant = waiting.pop()
            yield plant
            waiting += self._above(plant)

    def _by_length(self, plant: int) -> tuple[int, int]:
        return -self._lengths[plant], plant

    def _stem(self, mouth: int) -> list[int]:
        """The longest path upstream from a plant, that plant first."""
        stem = [mouth]
        while above := sorted(self._above(stem[-1]), key=self._by_length):
            stem.append(above[0])
        return stem

    def _free_row(self, level: int, length: int, near: int) -> int:
        """The nearest to `near`, below before above, with space for the stem and its confluence."""
        cells = range(level - length, level + 2)  # one more at each end, so that names do not touch
        for distance in range(len(self._taken) + 2):
            for row in (near + distance, near - distance):
                if not any((cell, row) in self._taken for cell in cells):
                    return row
        return near  # not reached: some row is always free

    def _from_zero(self) -> CascadeLayout:
        levels, rows = zip(*self._cells.values(), strict=True)
        left, top = min(levels), min(rows)
        cells = {plant: (level - left, row - top) for plant, (level, row) in self._cells.items()}
        return CascadeLayout(cells, max(levels) - left + 1, max(rows) - top + 1)

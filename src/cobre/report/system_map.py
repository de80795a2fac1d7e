"""A map of a system as SVG: buses and lines, and below them the cascades. The same system gives the same bytes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from cobre.records import dataclass
from cobre.report.charts import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, variable
from cobre.report.stored_study import StoredStudy
from cobre.text import digits

# Layout of the plants: rivers flow to the right, tributaries join from above and below.

Cell = tuple[int, int]  # level, row


@dataclass(frozen=True, slots=True)
class CascadeLayout:
    """The cell of each plant, in a grid of `levels` columns and `rows` rows, from 0."""

    cells: Mapping[int, Cell]
    levels: int
    rows: int


def layouts(downstream: Mapping[int, int | None]) -> list[CascadeLayout]:
    """Lay out each river system, the largest first; of equal size, that with the lowest outlet id first.

    Plants in a cycle, which no valid case has, are left out.
    """
    upstream: dict[int, list[int]] = {}
    for plant, below in downstream.items():
        if below in downstream and below is not None:
            upstream.setdefault(below, []).append(plant)
    outlets = [plant for plant, below in downstream.items() if below not in downstream]
    systems = [_Cascade(upstream).lay_out(outlet) for outlet in sorted(outlets)]
    return sorted(systems, key=lambda layout: -len(layout.cells))


def pack_layouts(systems: Sequence[CascadeLayout], width: int) -> tuple[list[Cell], int]:
    """Pack layouts side by side up to `width` levels; return the corner of each, and the number of rows."""
    corners: list[Cell] = []
    left = top = height = 0
    for layout in systems:
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

    def lay_out(self, outlet: int) -> CascadeLayout:
        """Lay out the system: the longest river is straight, each tributary takes the nearest free row."""
        for plant in reversed(list(self._plants_above_outlet(outlet))):
            self._lengths[plant] = 1 + max((self._lengths[above] for above in self._plants_upstream(plant)), default=0)
        waiting = [(outlet, self._lengths[outlet] - 1, 0)]
        while waiting:
            mouth, level, near = waiting.pop(0)
            stem = self._stem(mouth)
            row = self._free_row(level, len(stem), near)
            for step, plant in enumerate(stem):
                self._cells[plant] = (level - step, row)
                self._taken.add((level - step, row))
                others = [above for above in self._plants_upstream(plant) if above not in stem]
                waiting += [(above, level - step - 1, row) for above in sorted(others, key=self._length_key)]
        return self._shift_to_origin()

    def _plants_upstream(self, plant: int) -> Sequence[int]:
        return self._upstream.get(plant, ())

    def _plants_above_outlet(self, outlet: int) -> Iterator[int]:
        """Yield all plants, each after the one below it."""
        waiting = [outlet]
        while waiting:
            plant = waiting.pop()
            yield plant
            waiting += self._plants_upstream(plant)

    def _length_key(self, plant: int) -> tuple[int, int]:
        return -self._lengths[plant], plant

    def _stem(self, mouth: int) -> list[int]:
        """Return the longest path upstream from a plant, that plant first."""
        stem = [mouth]
        while above := sorted(self._plants_upstream(stem[-1]), key=self._length_key):
            stem.append(above[0])
        return stem

    def _free_row(self, level: int, length: int, near: int) -> int:
        """Find the row nearest to `near`, below before above, with space for the stem and its confluence."""
        cells = range(level - length, level + 2)  # one more at each end, so that names do not touch
        for distance in range(len(self._taken) + 2):
            for row in (near + distance, near - distance):
                if not any((cell, row) in self._taken for cell in cells):
                    return row
        return near  # not reached: a row is always free within that distance

    def _shift_to_origin(self) -> CascadeLayout:
        levels, rows = zip(*self._cells.values(), strict=True)
        left, top = min(levels), min(rows)
        cells = {plant: (level - left, row - top) for plant, (level, row) in self._cells.items()}
        return CascadeLayout(cells, max(levels) - left + 1, max(rows) - top + 1)


WIDTH = 1140
STEP, ROW, MARGIN = 47.0, 44.0, 44.0
MAX_LEVELS = int((WIDTH - 2 * MARGIN) / STEP)
MAX_NAME_LENGTH = 14
NO_LIMIT = "no limit"
BUS_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION, GREY)
INK, MUTED, PAPER = "var(--ink,#1c2733)", "var(--muted,#5b6875)", "var(--card,#fefefe)"


@dataclass(frozen=True, slots=True)
class SystemMap:
    """The map as SVG, which notebooks show and `save` writes."""

    svg: str
    title: str

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto;max-height:720px;background:#fefefe">{self.svg}</div>'

    def save(self, path: Any) -> None:
        """Write the map as an SVG file.

        path: a path, or anything else that `open` takes.
        """
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - anything that names a file
            file.write(self.svg)

    def __repr__(self) -> str:
        return f"<SystemMap of {self.title}>"


def system_map(study: StoredStudy, *, with_links: bool = False) -> SystemMap | None:
    """Draw the map; None without hydro plants and lines. with_links: entities link to their results in the report."""
    buses, lines, hydros = (study.entities(kind) for kind in ("buses", "lines", "hydros"))
    if not hydros and not lines:
        return None
    drawing = _Drawing(study, with_links)
    top = drawing.network(buses, lines)
    height = drawing.cascades(hydros, top)
    title = f"{len(buses)} buses, {len(lines)} lines and {len(hydros)} hydro plants"
    return SystemMap(drawing.svg(height, title), title)


class _Drawing:
    def __init__(self, study: StoredStudy, with_links: bool) -> None:
        self._study = study
        self._with_links = with_links
        self._parts: list[str] = []
        self._colours: dict[int, str] = {}

    def svg(self, height: float, title: str) -> str:
        """Return the SVG of all parts, with a text alternative."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="map" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
            f'height="{height:.0f}" role="img" aria-label="Map of the system: {escape(title)}" '
            f'font-family="var(--font,sans-serif)" font-size="10.5">{"".join(self._parts)}</svg>'
        )

    def network(self, buses: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]]) -> float:
        """Draw buses on an ellipse, in order, and lines; returns the height of the drawing."""
        self._colours = {bus["id"]: BUS_COLOURS[index % len(BUS_COLOURS)] for index, bus in enumerate(buses)}
        radius = min(420.0, 90.0 + 34.0 * len(buses))
        height = 0.0 if len(buses) < 2 else min(620.0, 130.0 + 26.0 * len(buses))
        middle = (WIDTH / 2, 30.0 + height / 2)
        positions = {
            bus["id"]: _on_ellipse(middle, radius, height / 2, index / len(buses)) for index, bus in enumerate(buses)
        }
        for line in lines:
            self._line(line, positions)
        for bus in buses:
            self._bus(bus, positions[bus["id"]])
        return 2 * middle[1] + 10.0

    def _line(self, line: Mapping[str, Any], positions: Mapping[int, tuple[float, float]]) -> None:
        start, end = positions.get(line.get("source_bus_id", -1)), positions.get(line.get("target_bus_id", -1))
        if start is None or end is None:
            return
        (x1, y1), (x2, y2) = start, end
        direct, reverse = (_power(line.get(name)) for name in ("direct_mw", "reverse_mw"))
        title = (
            f"{line.get('name', '')}: {direct} MW, in the other direction {reverse} MW"
            if direct
            else str(line.get("name", ""))
        )
        stroke = f'stroke="{MUTED}" stroke-width="2"'
        unit = "" if direct == reverse == NO_LIMIT else " MW"
        label = f"{direct} / {reverse}{unit}" if direct else ""
        self._add(
            "lines",
            line["id"],
            title,
            f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" {stroke}/>'
            + _text((0.62 * x1 + 0.38 * x2), (0.62 * y1 + 0.38 * y2) + 3, label, MUTED, is_over_lines=True),
        )

    def _bus(self, bus: Mapping[str, Any], position: tuple[float, float]) -> None:
        x, y = position
        name = self._study.entity_name("buses", bus["id"])
        width = 7.2 * len(name) + 20
        box = f'x="{x - width / 2:.0f}" y="{y - 12:.0f}" width="{width:.0f}" height="24" rx="6"'
        colour = variable(self._colours[bus["id"]])
        self._add(
            "buses",
            bus["id"],
            f"Bus {name}",
            f'<rect {box} fill="{PAPER}" stroke="{colour}" stroke-width="3"/>'
            f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" font-size="12" font-weight="600" fill="{INK}">'
            f"{escape(name)}</text>",
        )

    def cascades(self, hydros: Sequence[Mapping[str, Any]], top: float) -> float:
        """Draw the river systems below the network; returns the total height."""
        downstream = {hydro["id"]: hydro.get("downstream_id") for hydro in hydros}
        systems = layouts(downstream)
        width = max([MAX_LEVELS, *(layout.levels for layout in systems)])
        step = min(STEP, (WIDTH - 2 * MARGIN) / width)
        corners, rows = pack_layouts(systems, width)
        positions: dict[int, tuple[float, float]] = {}
        parity: dict[int, int] = {}
        for layout, (left, first) in zip(systems, corners, strict=True):
            for plant, (level, row) in layout.cells.items():
                positions[plant] = (MARGIN + step * (left + level), top + ROW * (first + row) + ROW / 2)
                parity[plant] = level % 2
        by_id = {hydro["id"]: hydro for hydro in hydros}
        self._parts += [_river(positions[plant], positions[below]) for plant, below in _pairs(downstream, positions)]
        self._parts += [
            _river(positions[id_], positions[other], is_diversion=True)
            for id_, hydro in by_id.items()
            if id_ in positions and (other := hydro.get("diversion_id")) in positions
        ]
        for plant, position in positions.items():
            self._hydro(by_id[plant], position, parity[plant])
        return top + ROW * rows + 12.0

    def _hydro(self, hydro: Mapping[str, Any], position: tuple[float, float], parity: int) -> None:
        """Draw a disc for a reservoir, sized by its volume; a ring for a run-of-river plant."""
        x, y = position
        name = self._study.entity_name("hydros", hydro["id"])
        buses = [bus for bus in hydro.get("bus_ids") or () if bus in self._colours]
        colour = variable(self._colours[buses[0]]) if buses else MUTED
        volume_hm3 = _range_hm3(hydro)
        radius = 4.0 + (min(5.0, 1.1 * math.log10(1.0 + volume_hm3)) if volume_hm3 else 0.0)
        phrases = [name, *(f"at {self._study.entity_name('buses', bus)}" for bus in buses)]
        phrases.append(f"stores {digits(volume_hm3)} hm³" if volume_hm3 else "run of river")
        fill = colour if volume_hm3 else PAPER
        self._add(
            "hydros",
            hydro["id"],
            ", ".join(phrases),
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{fill}" stroke="{colour}" stroke-width="2"/>'
            + _text(x, y + (18.5 if parity else -11.5), _short(name), INK),
        )

    def _add(self, kind: str, id_: int, title: str, shapes: str) -> None:
        element = f"<title>{escape(title)}</title>"
        if self._with_links:  # not in the tab order: the search reaches all entities by keyboard
            self._parts.append(f'<a href="#{kind}-{id_}" tabindex="-1">{element}{shapes}</a>')
        else:
            self._parts.append(f"<g>{element}{shapes}</g>")


def _on_ellipse(middle: tuple[float, float], radius_x: float, radius_y: float, share: float) -> tuple[float, float]:
    """Return a point on an ellipse; `share` 0 to 1 is one turn, clockwise from the left."""
    angle = math.pi * (1.0 + 2.0 * share)
    return middle[0] + radius_x * math.cos(angle), middle[1] + radius_y * math.sin(angle)


def _pairs(
    downstream: Mapping[int, int | None], positions: Mapping[int, tuple[float, float]]
) -> Iterator[tuple[int, int]]:
    for plant, below in downstream.items():
        if below is not None and plant in positions and below in positions:
            yield plant, below


def _river(start: tuple[float, float], end: tuple[float, float], *, is_diversion: bool = False) -> str:
    (x1, y1), (x2, y2) = start, end
    bend = f"L{x2 - 20.0 if x2 > x1 else x2:.1f} {y1:.1f}" if y1 != y2 else ""
    path = f"M{x1:.1f} {y1:.1f}{bend}L{x2:.1f} {y2:.1f}"
    dash = ' stroke-dasharray="3 3"' if is_diversion else ""
    return f'<path d="{path}" fill="none" stroke="{variable(SKY)}" stroke-width="1.6"{dash}/>'


def _text(x: float, y: float, text: str, fill: str, *, is_over_lines: bool = False) -> str:
    """Draw a text centred at x, outlined in the background colour so that it is readable over lines."""
    if not text:
        return ""
    outline = f'paint-order="stroke" stroke="{PAPER}" stroke-width="{8 if is_over_lines else 2.5}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{fill}" {outline}>{escape(text)}</text>'


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"


def _range_hm3(hydro: Mapping[str, Any]) -> float:
    low, high = hydro.get("min_storage_hm3"), hydro.get("max_storage_hm3")
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return 0.0
    return max(0.0, float(high) - float(low))


def _power(value: object) -> str:
    if not isinstance(value, int | float):
        return ""
    return digits(float(value), 3) if math.isfinite(value) and value < 99_999 else NO_LIMIT

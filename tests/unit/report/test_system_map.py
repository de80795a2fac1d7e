"""The map: every plant once, no overlaps, legible names, the same picture every time."""

import random
import re

import pytest
from report_page import EXAMPLE, Page

import cobre
from cobre.report.stored_study import StoredStudy
from cobre.report.system_map import ROW, layouts, pack_layouts, system_map

LARGE = EXAMPLE.parent / "large"


def forest(size, seed):
    """Draw plants that flow to one with a higher number, or to the sea."""
    choose = random.Random(seed)
    return {plant: choose.choice([None, *range(plant + 1, min(size, plant + 9))]) for plant in range(size)}


@pytest.mark.parametrize("seed", range(5))
def test_plants_have_distinct_cells(seed):
    downstream = forest(151, seed)
    found = layouts(downstream)
    assert sorted(plant for layout in found for plant in layout.cells) == list(range(151))
    for layout in found:
        assert len(set(layout.cells.values())) == len(layout.cells)
        assert all(0 <= level < layout.levels and 0 <= row < layout.rows for level, row in layout.cells.values())
        for plant, (level, _) in layout.cells.items():
            if downstream[plant] is not None:
                assert layout.cells[downstream[plant]][0] == level + 1, "water goes one step to the right"


@pytest.mark.parametrize("seed", range(5))
def test_neighbouring_labels_do_not_overlap(seed):
    """Names are as wide as two steps, above and below in turns: in a row, two of the same side are two steps apart."""
    for layout in layouts(forest(151, seed)):
        taken = set(layout.cells.values())
        for level, row in taken:
            neighbours = [other for other, other_row in taken if other_row == row and other != level]
            assert all(abs(other - level) >= 1 for other in neighbours)


def test_river_systems_are_packed_side_by_side():
    found = layouts(forest(60, 1))
    corners, rows = pack_layouts(found, 22)
    cells = [
        (left + level, top + row)
        for layout, (left, top) in zip(found, corners, strict=True)
        for level, row in layout.cells.values()
    ]
    assert len(set(cells)) == 60
    assert max(row for _, row in cells) < rows


def test_plants_in_cycle_are_omitted():
    assert [layout.cells for layout in layouts({1: 2, 2: 1, 3: None})] == [{3: (0, 0)}]


def test_case_is_drawn():
    drawn = cobre.system_map(LARGE)
    page = Page(drawn.svg)
    case = cobre.load_case(LARGE)
    for entity in (*case.system.hydros, *case.system.buses):
        assert entity.name in page.text
    assert drawn.svg.count("<circle") == len(case.system.hydros)
    assert drawn.svg == cobre.system_map(case).svg
    assert "script" not in drawn._repr_html_()
    assert repr(drawn) == "<SystemMap of 5 buses, 6 lines and 34 hydro plants>"


def test_map_is_saved(tmp_path):
    drawn = cobre.system_map(str(LARGE))
    drawn.save(tmp_path / "map.svg")
    assert (tmp_path / "map.svg").read_text() == drawn.svg


def test_system_without_rivers_and_lines_has_no_map():
    assert system_map(StoredStudy({"entities": {"buses": [{"id": 0, "name": "one"}]}})) is None


def test_large_map_is_readable():
    """151 plants: wide as a page, in letters of their natural size, and not higher than a few screens."""
    hydros = [{"id": id_, "name": f"PLANT {id_}", "downstream_id": below} for id_, below in forest(151, 2).items()]
    drawn = system_map(StoredStudy({"entities": {"hydros": hydros, "buses": [{"id": 0, "name": "one"}]}}))
    width, height = map(int, re.search(r'width="(\d+)" height="(\d+)"', drawn.svg).groups())
    assert width <= 1140
    assert height <= 60 * ROW


def test_report_contains_map(finished_page):
    page = Page(finished_page)
    assert "system-map" in page.ids
    assert ("a", "href", "#hydros-1") in page.attributes

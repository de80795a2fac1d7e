"""Families of tailrace curves: segments that join, one reference level for each family, plants that use them."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from cobre.core.arrays import sum_in_order
from cobre.core.case import Case, Table
from cobre.io.input_files.table_formats import PRODUCTION_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, distinct
from cobre.io.validation.plants.production_choice import choice_of

FILE = PRODUCTION_TABLES["tailrace_curves"].file
OUTFLOW_TOLERANCE_M3S = 1e-6
LEVEL_TOLERANCE_M = 1e-3
Finding = tuple[str, str, str]  # field, message, remedy


def numbers_of_curves(case: Case, findings: Findings) -> None:
    """Outflows and levels are not negative, and a segment ends after it begins."""
    table = case.production.tailrace_curves
    if table is None:
        return
    wrong = (
        ("downstream_reference_level_m", table["downstream_reference_level_m"] < 0, "at least 0"),
        ("outflow_min_m3s", table["outflow_min_m3s"] < 0, "at least 0"),
        ("outflow_max_m3s", table["outflow_max_m3s"] < table["outflow_min_m3s"], "at least outflow_min_m3s"),
    )
    findings.report_rows(FILE, table, wrong, _segment)


def _segment(table: Table, row: int) -> str:
    return f"{_family(table, row)}, segment {table['segment_id'][row]}"


def joined_segments(case: Case, findings: Findings) -> None:
    """The segments of a family follow one another without a gap, an overlap or a step."""
    table = case.production.tailrace_curves
    if table is None:
        return
    for hydro_id, family_id in distinct(table, "hydro_id", "family_id"):
        rows = np.flatnonzero((table["hydro_id"] == hydro_id) & (table["family_id"] == family_id))
        rows = rows[np.argsort(table["outflow_min_m3s"][rows], kind="stable")]
        for field, message, remedy in _joints(table, rows.tolist()):
            findings.error(FILE, _family(table, rows[0]), field, message, remedy)


def one_family_for_a_level(case: Case, findings: Findings) -> None:
    """The level of the reservoir downstream chooses between the families of a plant."""
    table = case.production.tailrace_curves
    if table is None:
        return
    levels: dict[tuple[int, float], set[int]] = {}
    columns = (table[name].tolist() for name in ("hydro_id", "downstream_reference_level_m", "family_id"))
    for hydro_id, level, family_id in zip(*columns, strict=True):
        levels.setdefault((hydro_id, level), set()).add(family_id)
    for (hydro_id, level), families in levels.items():
        if len(families) > 1:
            message = f"families {', '.join(map(str, sorted(families)))} have the same level, {level:g}"
            field = "downstream_reference_level_m"
            findings.error(FILE, f"hydro {hydro_id}", field, message, "a level of its own for each family")


def _joints(table: Table, rows: list[int]) -> Iterator[Finding]:
    levels = table["downstream_reference_level_m"]
    if len({float(levels[row]) for row in rows}) > 1:
        yield "downstream_reference_level_m", "differs from segment to segment", "one level for each family"
    for before, after in pairwise(rows):
        end, start = table["outflow_max_m3s"][before], table["outflow_min_m3s"][after]
        if abs(end - start) > OUTFLOW_TOLERANCE_M3S:
            word = "a gap" if start > end else "an overlap"
            yield (
                "outflow_min_m3s",
                f"there is {word} between {end:g} and {start:g} m3/s",
                "segments that meet",
            )
            continue
        left, right = _level_m(table, before, end), _level_m(table, after, end)
        if abs(left - right) > LEVEL_TOLERANCE_M:
            message = f"the level jumps from {left:g} to {right:g} m at {end:g} m3/s"
            yield "coefficient_0", message, "the same level where segments meet"


def _level_m(table: Table, row: int, outflow_m3s: float) -> float:
    return sum_in_order(table[f"coefficient_{power}"][row] * outflow_m3s**power for power in range(5))


def _family(table: Table, row: int | np.integer) -> str:
    return f"hydro {table['hydro_id'][row]}, family {table['family_id'][row]}"


def curves_of_other_plants(case: Case, findings: Findings) -> None:
    """Curves serve planes that are computed; other plants do not read them."""
    for (hydro_id,) in distinct(case.production.tailrace_curves, "hydro_id"):
        hydro = next((plant for plant in case.system.hydros if plant.id == hydro_id), None)
        configs = [choice_of(case, hydro, stage).fpha_config for stage in case.horizon.stages] if hydro else []
        if hydro is not None and not any(config and config.source == "computed" for config in configs):
            message = "its curves are not used: no stage uses computed planes"
            findings.warn(FILE, f"hydro {hydro_id}", "", message)


RULES: tuple[Rule, ...] = (
    numbers_of_curves,
    joined_segments,
    one_family_for_a_level,
    curves_of_other_plants,
)

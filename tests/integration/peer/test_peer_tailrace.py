"""Planes fitted with families of tailrace curves: those of cobre-python, plane by plane and point by point."""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from peer import TIMEOUT_S, peer_python
from small_system import SmallHydro, SmallSystem, SmallThermal, write_case

from cobre.io.case import load_case
from cobre.study.output.exports import fpha_tables

RUN_ALL = """
import cobre, sys
for folder in sys.argv[1:]:
    cobre.run.run(folder, folder + "_out", threads=1)
"""
SLOPING = [(1, 1, 50.0, 0.0, 1000.0, 10.0, 0.02), (2, 1, 60.0, 0.0, 1000.0, 20.0, 0.03)]
PIECES = [
    (1, 1, 50.0, 40.0, 60.0, 10.0, 0.1),
    (1, 2, 50.0, 60.0, 110.0, 13.0, 0.05),
    (2, 1, 60.0, 0.0, 400.0, 20.0, 1e-2, 1e-4, 1e-6, 1e-9),
]
# Rows of (family, segment, level downstream, from, to, coefficients ...), and other settings.
CASES: dict[str, tuple[list[tuple[float, ...]], dict]] = {
    "one family": (SLOPING[:1], {}),
    "two families": (SLOPING, {}),
    "a volume of reference": (SLOPING, {"reference": {"volume_hm3": 20.0}}),
    "a share of reference": (SLOPING, {"reference": {"percentile": 0.2}}),
    "families far below": ([(1, 1, 40.0, *SLOPING[0][3:]), (2, 1, 45.0, *SLOPING[1][3:])], {}),
    "no geometry downstream": (SLOPING, {"knows_below": False}),
    "nothing downstream": (SLOPING, {"is_last": True}),
    "pieces of degree four": (PIECES, {}),
    "families in reverse": (SLOPING[::-1], {}),
}


def write_plant(folder: Path, rows, reference=None, knows_below=True, is_last=False) -> Path:
    """Write two plants, the upper one with computed planes."""
    plant = SmallHydro(0, None if is_last else 1, 0.0, 200.0, 50.0, 150.0, 1.0, 0.0, 80.0, 0.0)
    below = SmallHydro(0, None, 0.0, 200.0, 50.0, 150.0, 1.0, 0.0, 10.0, 0.0)
    system = SmallSystem(
        loads=((120.0,),) * 2,
        noise=(((0.0, 0.0),),) * 2,
        hours=(730.0,),
        load_factors=(1.0,),
        hydros=(plant, below),
        thermals=(SmallThermal(0, 100.0, 0.0, 200.0),),
    )
    write_case(folder, system, forward_passes=1, iterations=1)
    change(folder / "config.json", lambda file: file.update(exports={"fpha_deviation_points": True}))
    change(folder / "system" / "hydros.json", lambda file: _describe(file["hydros"][0]))
    models = folder / "system" / "hydro_production_models.json"
    change(models, lambda file: _compute(*(one["stage_ranges"][0] for one in file["production_models"]), reference))
    _write_geometry(folder, knows_below)
    _write_curves(folder, rows)
    return folder


def change(path: Path, how) -> None:
    content = json.loads(path.read_text())
    how(content)
    path.write_text(json.dumps(content))


def _describe(plant: dict) -> None:
    plant["generation"]["model"] = "fpha"
    plant["specific_productivity_mw_per_m3s_per_m"] = 0.0088
    plant["tailrace"] = {"type": "polynomial", "coefficients": [5.0]}
    plant["hydraulic_losses"] = {"type": "constant", "value_m": 1.0}
    plant["efficiency"] = {"type": "constant", "value": 0.93}


def _compute(upper: dict, lower: dict, reference: dict | None) -> None:
    upper.pop("productivity_mw_per_m3s")
    upper |= {"model": "fpha", "fpha_config": {"source": "computed"}}
    if reference is not None:
        lower["reference_volume"] = reference


def _write_geometry(folder: Path, knows_below: bool) -> None:
    points = [(0, 0.0, 100.0), (0, 90.0, 112.0), (0, 200.0, 120.0)]
    points += [(1, 0.0, 50.0), (1, 200.0, 60.0)] if knows_below else []
    ids, volumes, heights = (list(column) for column in zip(*points, strict=True))
    columns = {"volume_hm3": volumes, "height_m": heights, "area_km2": [1.0] * len(points)}
    table = pa.table({"hydro_id": pa.array(ids, pa.int32()), **columns})
    pq.write_table(table, folder / "system" / "hydro_geometry.parquet", compression="zstd")


def _write_curves(folder: Path, rows) -> None:
    names = ["family_id", "segment_id", "downstream_reference_level_m", "outflow_min_m3s", "outflow_max_m3s"]
    names += [f"coefficient_{power}" for power in range(5)]
    whole = [(*row, *[0.0] * (len(names) - len(row))) for row in rows]
    columns = {"hydro_id": pa.array([0] * len(rows), pa.int32())}
    for name, values in zip(names, zip(*whole, strict=True), strict=True):
        columns[name] = pa.array(values, pa.int32() if name.endswith("_id") else pa.float64())
    pq.write_table(pa.table(columns), folder / "system" / "tailrace_curves.parquet", compression="zstd")


@pytest.fixture(scope="module")
def both():
    python = peer_python()
    with tempfile.TemporaryDirectory() as parent:
        folders = {name: Path(parent) / f"case_{number}" for number, name in enumerate(CASES)}
        for name, folder in folders.items():
            rows, others = CASES[name]
            write_plant(folder, rows, **others)
        command = [python, "-I", "-c", RUN_ALL, *map(str, folders.values())]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, done.stderr
        yield folders


@pytest.mark.parametrize("name", CASES)
def test_fitted_planes_match_peer(both, name):
    folder = both[name]
    ours = fpha_tables(load_case(folder))
    theirs = folder.with_name(f"{folder.name}_out") / "hydro_models"
    for table, columns in (
        ("fpha_deviation_points", ("v", "q", "fph_exact", "fpha_fitted")),
        ("fpha_hyperplanes", ("gamma_0", "gamma_v", "gamma_q", "gamma_s")),
    ):
        expected = pq.read_table(theirs / f"{table}.parquet")
        for column in columns:
            mine, its = (np.sort(one[column].to_numpy()) for one in (ours[table], expected))
            assert mine == pytest.approx(its, rel=1e-9, abs=1e-10), column

"""Water values of a simulation, by stage and reservoir."""

import pyarrow as pa
import pytest

from cobre.policy.object import simulated_water_values


def hydros(rows):
    names = ("scenario_id", "stage_id", "block_id", "hydro_id", "water_value_per_hm3")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def test_stage_water_value_is_that_of_last_block():
    found = simulated_water_values(hydros([(0, 0, 1, 7, 30.0), (0, 0, 0, 7, 10.0)]))
    assert found.to_pylist() == [
        {
            "stage_id": 0,
            "hydro_id": 7,
            "mean_per_hm3": 30.0,
            "p5_per_hm3": 30.0,
            "p50_per_hm3": 30.0,
            "p95_per_hm3": 30.0,
        }
    ]


def test_water_values_are_averaged_by_stage_and_reservoir():
    rows = [
        (scenario, stage, 0, hydro, 100.0 * stage + 10.0 * hydro + scenario)
        for scenario in range(3)
        for stage in range(2)
        for hydro in (4, 2)
    ]
    found = simulated_water_values(hydros(rows))
    assert list(zip(found["stage_id"].to_pylist(), found["hydro_id"].to_pylist(), strict=True)) == [
        (0, 2),
        (0, 4),
        (1, 2),
        (1, 4),
    ]
    assert found["mean_per_hm3"].to_pylist() == pytest.approx([21.0, 41.0, 121.0, 141.0])
    assert found["p95_per_hm3"].to_pylist() == pytest.approx([21.9, 41.9, 121.9, 141.9])

"""A reservoir whose inflow remembers the month before and would often be negative."""

import json
from dataclasses import replace
from itertools import pairwise

from small_cases import SmallCase, hydro, thermal

SEASONS = {
    "cycle_type": "monthly",
    "seasons": [{"id": month, "label": f"M{month}", "month_start": month + 1} for month in range(12)],
}
BEFORE = ("2023-10-01", "2023-11-01", "2023-12-01", "2024-01-01")
MEAN_M3S, STD_M3S, OBSERVED_M3S, MEMORY = 12.0, 10.0, 8.0, 0.7


def write_dry_case(folder, method, seed=0, price=700.0, std=STD_M3S, memory=MEMORY, **others):
    """Write four stages with four openings. price: $ for one m3/s of missing inflow over an hour."""
    stages = 4
    case = SmallCase(
        **{
            "hydros": [hydro(0)],
            "thermals": [thermal(0, 10.0, 20.0), thermal(1, 90.0, 60.0)],
            "stages": stages,
            "openings": 4,
            "load": {0: 50.0},
            "inflow": {0: [(MEAN_M3S, std)] * stages},
            "storage": {0: 30.0},
            "forward_passes": 4,
            "iterations": 60,
            "stage_fields": {
                number: {"season_id": number, "state_variables": {"storage": True, "inflow_lags": True}}
                for number in range(stages)
            },
        }
        | others
    )
    months = range(-3, stages)
    case.tables["scenarios/inflow_seasonal_stats"] = [
        {"hydro_id": 0, "stage_id": stage, "mean_m3s": MEAN_M3S, "std_m3s": std} for stage in months
    ]
    if memory:
        case.tables["scenarios/inflow_ar_coefficients"] = [
            {"hydro_id": 0, "stage_id": stage, "lag": 1, "coefficient": memory} for stage in range(stages)
        ]
    case = replace(case, penalties={"inflow_nonnegativity_cost": price})
    case.write(folder)
    months = list(pairwise(BEFORE))
    before = [
        {"id": number - 3, "start_date": start, "end_date": end, "season_id": 9 + number}
        for number, (start, end) in enumerate(months)
    ]
    observed = [
        {"hydro_id": 0, "start_date": start, "end_date": end, "value_m3s": OBSERVED_M3S} for start, end in months
    ]
    _change(folder / "stages.json", {"season_definitions": SEASONS, "pre_study_stages": before})
    _change(folder / "initial_conditions.json", {"recent_observations": observed})
    config = json.loads((folder / "config.json").read_text())
    config["training"]["tree_seed"] = seed
    _change(
        folder / "config.json",
        {"training": config["training"], "modeling": {"inflow_non_negativity": {"method": method}}},
    )
    return folder


def _change(path, content):
    path.write_text(json.dumps(json.loads(path.read_text()) | content))

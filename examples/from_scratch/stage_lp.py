"""Stage LP of a case with two reservoirs in a row, thermal plants and one bus, such as examples/two_reservoirs.

docs/explanation/sddp-from-scratch.md explains it; docs/explanation/stage-lp.md has the LP of any case.
"""

import json
from datetime import date
from pathlib import Path

import numpy as np

from cobre.sddp.lp.lp_builder import power_of_two_scales
from cobre.solver.program import Names, StageProgram

UNIT = 1e6  # $: costs inside LPs and cuts are in millions
HM3_PER_M3S_HOUR = 0.0036
INFINITY = float("inf")
UPPER, LOWER = 0, 1


def total(values):
    """Add along the first axis, from the first to the last: the order decides the last bit."""
    return np.add.accumulate(np.asarray(values), axis=0)[-1]


class StageLp:
    """LP of one stage in hm3, m3/s, MW and $. Row bounds are those of a stage without storage, inflow and load."""

    def __init__(self, system, stage):
        self.columns, self.rows = [], []
        is_last = stage is system["stages"][-1]
        hours = [block["hours"] for block in stage["blocks"]]
        days = (date.fromisoformat(stage["end_date"]) - date.fromisoformat(stage["start_date"])).days
        self.discount = (1.0 + system["annual_discount_rate"]) ** -(days / 365.25)
        hydros, price, blocks = system["hydros"], system["penalties"]["hydro"], range(len(hours))

        limits = [plant["reservoir"] for plant in hydros]
        self.storage = [self.column(limit["min_storage_hm3"], limit["max_storage_hm3"], 0.0) for limit in limits]
        self.future_cost = self.column(0.0, 0.0 if is_last else INFINITY, self.discount * UNIT)
        turbines = [plant["generation"]["max_turbined_m3s"] for plant in hydros]
        turbined = [[self.column(0.0, most, price["turbined_cost"] * h) for h in hours] for most in turbines]
        spilled = [self.slacks(price["spillage_cost"], hours) for _ in hydros]
        thermal = [
            [self.column(*plant["generation"].values(), plant["cost_per_mwh"] * h) for h in hours]
            for plant in system["thermals"]
        ]
        segments = system["buses"][0]["deficit_segments"]
        deficit = [self.slacks(segment["cost"], hours, segment["depth_mw"] or INFINITY) for segment in segments]
        excess = self.slacks(system["penalties"]["bus"]["excess_cost"], hours)
        inflow_slack = self.slacks(price["inflow_nonnegativity_cost"], [total(hours)] * len(hydros))
        outflow_below = [self.slacks(price["outflow_violation_below_cost"], hours) for _ in hydros]

        volume = [HM3_PER_M3S_HOUR * h for h in hours]  # hm3 of 1 m3/s, by block
        self.stage_volume = total(volume)
        for plant in (UPPER, LOWER):  # storage + released - received = incoming storage + inflow
            balance = {self.storage[plant]: 1.0, inflow_slack[plant]: -self.stage_volume}
            balance |= {flow[plant][k]: volume[k] for flow in (turbined, spilled) for k in blocks}
            if plant == LOWER:
                balance |= {flow[UPPER][k]: -volume[k] for flow in (turbined, spilled) for k in blocks}
            self.rows.append((balance, 0.0, 0.0))
        for plant in (UPPER, LOWER):  # turbined + spilled >= minimum outflow
            least = hydros[plant]["outflow"]["min_outflow_m3s"]
            for k in blocks:
                outflow = dict.fromkeys((turbined[plant][k], spilled[plant][k], outflow_below[plant][k]), 1.0)
                self.rows.append((outflow, least, INFINITY))
        for k in blocks:  # generation + deficit - excess = load
            power = {turbined[plant][k]: system["productivity"][plant] for plant in (UPPER, LOWER)}
            supply = {column[k]: 1.0 for column in (*thermal, *deficit)}
            self.rows.append((power | supply | {excess[k]: -1.0}, 0.0, 0.0))

    def column(self, low, high, cost):
        """Add a variable with its bounds and its cost in $ per unit; return its number."""
        self.columns.append((low, high, cost))
        return len(self.columns) - 1

    def slacks(self, price, hours, high=INFINITY):
        """Add variables from 0 to `high` with a price per hour, one for each entry of `hours`."""
        return [self.column(0.0, high, price * h) for h in hours]

    def program(self, load_factors):
        """Return the LP as the solver takes it: scaled by powers of two, with the rows that inputs move."""
        low, high, cost = (np.array(part) for part in zip(*self.columns, strict=True))
        row_low, row_high = (np.array([row[part] for row in self.rows]) for part in (1, 2))
        matrix = np.zeros((len(self.rows), len(low)))
        for number, (entries, _, _) in enumerate(self.rows):
            matrix[number, [*entries]] = [*entries.values()]
        row, column = np.nonzero(matrix)
        start, index = np.searchsorted(row, np.arange(len(matrix) + 1)).astype(np.int32), column.astype(np.int32)
        row_scale, scale = power_of_two_scales(start, index, matrix[row, column], len(low))
        scale[self.future_cost] = 1.0
        balances, loads = np.array([0, 0, 1, 1], np.int32), np.arange(len(matrix) - 3, len(matrix), dtype=np.int32)
        lp = {"cost": cost * scale / UNIT, "column_lower": low / scale, "column_upper": high / scale}
        lp |= {"row_lower": row_low * row_scale, "row_upper": row_high * row_scale, "row_start": start}
        lp |= {"column_index": index, "value": matrix[row, column] * row_scale[row] * scale[column]}
        lp |= {"column_scale": scale, "row_scale": row_scale, "future_cost": self.future_cost, "truncates": False}
        lp |= {"state_column": np.array(self.storage, np.int32), "autoregression": np.zeros((0, 2))}
        # Inputs are both incoming storages, then both inflows; they move the right-hand sides of the balances.
        lp |= {"input_row": balances, "input_index": np.array([0, 2, 1, 3], np.int32)}
        lp |= {"input_value": np.array([1.0, self.stage_volume] * 2) * row_scale[balances], "load_row": loads}
        lp |= {"load_bus": np.zeros(3, np.int32), "load_factor": np.array(load_factors) * row_scale[loads]}
        absent = dict.fromkeys(("lag_from", "passed_from", "source_column", "source_index"), np.zeros(0, np.int32))
        absent |= {"lag_share": np.zeros(0), "source_factor": np.zeros(0), "source_is_pinned": np.zeros(0, np.uint8)}
        return StageProgram(**lp, **absent, names=Names((), ()))


def read(folder):
    """Return the numbers of a case directory that LPs and method need, by the names of its files."""

    def file(name):
        return json.loads((Path(folder) / f"{name}.json").read_text())

    models = file("system/hydro_production_models")["production_models"]
    factors = file("scenarios/load_factors")["load_factors"]
    return {
        **{name: file(f"system/{name}")[name] for name in ("hydros", "thermals", "buses")},
        "productivity": [model["stage_ranges"][0]["productivity_mw_per_m3s"] for model in models],
        "load_factors": [[block["factor"] for block in entry["block_factors"]] for entry in factors],
        "penalties": file("penalties"),
        "initial_storage": [entry["value_hm3"] for entry in file("initial_conditions")["storage"]],
        "stages": file("stages")["stages"],
        "annual_discount_rate": file("stages")["policy_graph"]["annual_discount_rate"],
        "forward_passes": file("config")["training"]["selection"]["forward_passes"],
    }

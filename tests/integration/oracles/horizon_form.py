"""Small cases without noise as one linear program over all stages and blocks, written down only from the entities.

It uses nothing of the package, so it does not share errors of its stage LPs, states and cuts. Blocks are parallel.
Money is in thousands of $.
"""

from calendar import monthrange
from datetime import date
from itertools import pairwise

import numpy as np
from extensive_form import Program
from small_cases import PENALTIES, STARTS

HM3_PER_M3S_HOUR = 0.0036
MONEY = 1000.0


class HorizonForm:
    """The program of a case. Columns: decisions of every stage and block, and one for the total cost."""

    def __init__(self, case):
        self.case, self.program = case, Program()
        self.cost = self.program.column(-np.inf)
        self.terms = {self.cost: -1.0}
        self.prices = {**PENALTIES["hydro"], **case.penalties}

    def optimum(self):
        """Return the optimal cost, $."""
        storage = dict(self.case.storage)
        for stage in range(self.case.stages):
            storage = self.add_stage(stage, storage)
        self.program.row(self.terms, 0.0, 0.0)
        return MONEY * self.program.minimise(self.cost)

    def weight(self, stage):
        """Return the discount factor of a stage to the first one."""
        days = (date.fromisoformat(STARTS[stage]) - date.fromisoformat(STARTS[0])).days
        return (1.0 + self.case.rate) ** (-days / 365.25)

    def priced(self, stage, price, hours, upper=np.inf, lower=0.0):
        """Add a column that costs `price` in each of some hours."""
        column = self.program.column(lower, upper)
        self.terms[column] = self.weight(stage) * price * hours / MONEY
        return column

    def add_stage(self, stage, storage):
        case, total = self.case, sum(self.case.hours)
        ends = {plant["id"]: self.end_volume(plant) for plant in case.hydros}
        balance = {plant["id"]: {ends[plant["id"]]: 1.0} for plant in case.hydros}
        for block, hours in enumerate(case.hours):
            self.add_block(stage, block, hours, storage, ends, balance)
        for plant in case.hydros:
            number = plant["id"]
            right = HM3_PER_M3S_HOUR * total * self.at(case.inflow, number, stage)
            self.evaporate(stage, plant, storage[number], ends[number], balance[number], total)
            right += self.put(balance[number], storage[number], -1.0)
            self.program.row(balance[number], right, right)
        return ends

    def end_volume(self, plant):
        reservoir = plant["reservoir"]
        return self.program.column(reservoir["min_storage_hm3"], reservoir["max_storage_hm3"])

    def add_block(self, stage, block, hours, storage, ends, balance):
        case = self.case
        supply = [{} for _ in range(case.buses)]
        for plant in case.hydros:
            self.add_hydro(stage, hours, plant, storage[plant["id"]], ends[plant["id"]], supply, balance)
        for plant in case.thermals:
            limits = plant["generation"]
            power = self.priced(stage, plant["cost_per_mwh"], hours, limits["max_mw"], limits["min_mw"])
            supply[plant["bus_id"]][power] = 1.0
        for line in case.lines:
            for name, a, b in (("direct", "source", "target"), ("reverse", "target", "source")):
                flow = self.priced(stage, PENALTIES["line"]["exchange_cost"], hours, line["capacity"][f"{name}_mw"])
                supply[line[f"{a}_bus_id"]][flow], supply[line[f"{b}_bus_id"]][flow] = -1.0, 1.0
        for contract in case.contracts:
            sign = 1.0 if contract["type"] == "import" else -1.0
            limits = contract["limits"]
            traded = self.priced(stage, contract["price_per_mwh"], hours, limits["max_mw"], limits["min_mw"])
            supply[contract["bus_id"]][traded] = sign
        for bus, terms in enumerate(supply):
            terms[self.priced(stage, PENALTIES["bus"]["deficit_segments"][0]["cost"], hours)] = 1.0
            terms[self.priced(stage, PENALTIES["bus"]["excess_cost"], hours)] = -1.0
            load = self.at(case.load, bus, stage) * self.factor(stage, bus, block)
            self.program.row(terms, load, load)

    def add_hydro(self, stage, hours, plant, before, end, supply, balance):
        number, limits = plant["id"], plant["generation"]
        is_plane = limits["model"] == "fpha"
        rate = self.case.productivity.get(number, 1.0)
        most = (
            limits["max_turbined_m3s"]
            if is_plane
            else min(limits["max_turbined_m3s"], limits["max_generation_mw"] / rate)
        )
        turbined = self.priced(stage, self.prices["turbined_cost"], hours, most)
        spilled = self.priced(stage, self.prices["spillage_cost"], hours)
        power = {turbined: rate}
        if is_plane:
            generated = self.program.column(0.0, limits["max_generation_mw"])
            power = {generated: 1.0}
            self.limit_by_planes(number, generated, turbined, spilled, before, end)
        supply[plant["unit_groups"][0]["bus_id"]] |= power
        self.at_least(stage, hours, {turbined: 1.0}, limits["min_turbined_m3s"], "turbined_violation_below_cost")
        self.at_least(stage, hours, power, limits["min_generation_mw"], "generation_violation_below_cost")
        released = {turbined: 1.0, spilled: 1.0}
        self.at_least(stage, hours, released, plant["outflow"]["min_outflow_m3s"], "outflow_violation_below_cost")
        for column in released:
            balance[number][column] = HM3_PER_M3S_HOUR * hours
            if plant["downstream_id"] is not None:
                balance[plant["downstream_id"]][column] = -HM3_PER_M3S_HOUR * hours

    def at_least(self, stage, hours, terms, least, price):
        """Add a soft minimum: the shortfall has a price."""
        if least > 0.0:
            missing = self.priced(stage, self.prices[price], hours)
            self.program.row({**terms, missing: 1.0}, least, np.inf)

    def limit_by_planes(self, number, generated, turbined, spilled, before, end):
        """Limit power by every plane, at the mean of the volumes before and after."""
        for plane in self.case.tables["system/fpha_hyperplanes"]:
            if plane["hydro_id"] == number:
                half = plane["gamma_v"] / 2.0
                terms = {generated: 1.0, turbined: -plane["gamma_q"], spilled: -plane["gamma_s"], end: -half}
                right = plane["kappa"] * plane["gamma_0"] + self.put(terms, before, -half)
                self.program.row(terms, -np.inf, right)

    def evaporate(self, stage, plant, before, end, balance, hours):
        """Add evaporation, linear in the mean volume, with area and slope taken at the middle of the reservoir."""
        if "evaporation" not in plant:
            return
        day = date.fromisoformat(STARTS[stage])
        month_s = 3600.0 * 24.0 * monthrange(day.year, day.month)[1]
        reservoir = plant["reservoir"]
        reference = (reservoir["min_storage_hm3"] + reservoir["max_storage_hm3"]) / 2.0
        area, slope = self.area_km2(plant["id"], reference)
        depth_m = plant["evaporation"]["coefficients_mm"][day.month - 1] / 1000.0
        rate = depth_m * slope * 1e6 / month_s  # m3/s for each hm3
        constant = depth_m * area * 1e6 / month_s - rate * reference
        evaporated = self.program.column(0.0, 2.0 * max(0.0, constant + rate * reservoir["max_storage_hm3"]))
        price = self.prices["evaporation_violation_cost"]
        less, more = self.priced(stage, price, hours), self.priced(stage, price, hours)
        terms = {evaporated: 1.0, end: -rate / 2.0, less: 1.0, more: -1.0}
        right = constant + self.put(terms, before, -rate / 2.0)
        self.program.row(terms, right, right)
        balance[evaporated] = HM3_PER_M3S_HOUR * hours

    def area_km2(self, number, volume):
        """Interpolate area and slope at a volume, km2 and km2 per hm3. Raises ValueError outside the table."""
        points = [row for row in self.case.tables["system/hydro_geometry"] if row["hydro_id"] == number]
        for low, high in pairwise(points):
            if low["volume_hm3"] <= volume <= high["volume_hm3"]:
                slope = (high["area_km2"] - low["area_km2"]) / (high["volume_hm3"] - low["volume_hm3"])
                return low["area_km2"] + slope * (volume - low["volume_hm3"]), slope
        raise ValueError(volume)

    def factor(self, stage, bus, block):
        """Return the load factor of a block."""
        document = self.case.documents.get("scenarios/load_factors.json", {"load_factors": []})
        for row in document["load_factors"]:
            if (row["stage_id"], row["bus_id"]) == (stage, bus):
                return next(f["factor"] for f in row["block_factors"] if f["block_id"] == block)
        return 1.0

    @staticmethod
    def at(given, number, stage):
        values = given.get(number, 0.0)
        return values[stage] if isinstance(values, list) else values

    @staticmethod
    def put(terms, before, factor):
        """Add a column's volume to `terms`, or return the contribution of a number to the right-hand side."""
        if isinstance(before, int):
            terms[before] = terms.get(before, 0.0) + factor
            return 0.0
        return -factor * before

"""Cases of `ahead_cases` as one LP over the whole tree of openings, without the package's models.

One bus, one block for each stage, plants with a productivity of 1. Times are hours from the start of the study.
"""

from dataclasses import dataclass, field
from datetime import date

import highspy
import numpy as np
from small_cases import PENALTIES, STARTS

HM3 = 0.0036
BEFORE = -1


@dataclass
class Node:
    """A stage on a path, with the decisions made before it."""

    stage: int
    weight: float  # probability and discount
    storage: list
    released: dict = field(default_factory=dict)  # (plant, stage): columns
    ordered: dict = field(default_factory=dict)  # (plant, delivery): column or number


class ScenarioTreeLp:
    """The LP of a case; inflow[t]: openings x plants."""

    def __init__(self, case, inflow):
        self.case, self.inflow = case, inflow
        self.lp = highspy.Highs()
        self.lp.setOptionValue("output_flag", False)
        fields = [case.stage_fields.get(t, {}) for t in range(case.stages)]
        starts = [f.get("start_date", STARTS[t]) for t, f in enumerate(fields)]
        ends = [f.get("end_date", STARTS[t + 1]) for t, f in enumerate(fields)]
        self.days = [(date.fromisoformat(b) - date.fromisoformat(a)).days for a, b in zip(starts, ends, strict=True)]
        self.starts, self.ends = starts, ends
        self.hours = [f["blocks"][0]["hours"] if "blocks" in f else case.hours[0] for f in fields]
        self.edges = np.concatenate([[0.0], np.cumsum(self.hours)])
        self.initial = case.documents["initial_conditions.json"]

    def optimum(self):
        volumes = {row["hydro_id"]: row["value_hm3"] for row in self.initial["storage"]}
        root = Node(-1, 1.0, [volumes[plant["id"]] for plant in self.case.hydros])
        for plant in self.case.thermals:
            for delivery, decider in self.deciders(plant).items():
                if decider == BEFORE:
                    root.ordered[plant["id"], delivery] = self.committed_power(plant, delivery)
        self.add_successors(root)
        self.lp.run()
        return self.lp.getObjectiveValue()

    def add_successors(self, parent):
        """Add all nodes that may follow."""
        stage = parent.stage + 1
        if stage == self.case.stages:
            return
        before = self.discount(parent.stage) if stage else 1.0
        for inflow in self.inflow[stage]:
            weight = parent.weight * before / len(self.inflow[stage])
            node = Node(stage, weight, [], dict(parent.released), dict(parent.ordered))
            self.decide(node, parent, inflow)
            self.add_successors(node)

    def decide(self, node, parent, inflow):
        power = []
        for plant in self.case.hydros:
            turbined, spilled = self.column(node, 0.005, 50.0), self.column(node, 0.01)
            node.released[plant["id"], node.stage] = (turbined, spilled)
            power.append((turbined, 1.0))
        self.volumes(node, parent, inflow)
        power += [(self.thermal(node, plant), 1.0) for plant in self.case.thermals]
        power += [(self.column(node, 1000.0), 1.0), (self.column(node, PENALTIES["bus"]["excess_cost"]), -1.0)]
        load = self.case.load[0][node.stage]
        self.row(power, load)

    def volumes(self, node, parent, inflow):
        hours = self.hours[node.stage]
        for number, plant in enumerate(self.case.hydros):
            terms, right = [], HM3 * hours * float(inflow[number])
            end = self.column(node, 0.0, plant["reservoir"]["max_storage_hm3"], per_hour=False)
            node.storage.append(end)
            terms.append((end, 1.0))
            right += self.add_term(terms, parent.storage[number], -1.0)
            terms += [(column, HM3 * hours) for column in node.released[plant["id"], node.stage]]
            for above in self.case.hydros:
                if above["downstream_id"] == plant["id"]:
                    right += self.arriving(terms, node, above)
            self.row(terms, right)

    def arriving(self, terms, node, above):
        """Add the water that arrives from a plant above to `terms`; return the part released before the study, hm3."""
        tau, stage, number = above.get("travel_time_hours") or 0.0, node.stage, 0.0
        for (plant, sent), columns in node.released.items():
            if plant == above["id"]:
                volume = HM3 * self.overlap(self.edges[sent] + tau, self.edges[sent + 1] + tau, stage)
                terms += [(column, -volume) for column in columns if volume]
        for row in self.initial.get("past_defluences", ()):
            if row["hydro_id"] == above["id"] and tau:
                begin, end = (self.hours_after_start(row[name]) for name in ("start_date", "end_date"))
                number += HM3 * row["value_m3s"] * self.overlap(begin + tau, end + tau, stage)
        return number

    def thermal(self, node, plant):
        most, least = plant["generation"]["max_mw"], plant["generation"]["min_mw"]
        for delivery, decider in self.deciders(plant).items():
            if decider == node.stage and delivery != node.stage:
                discount = np.prod([self.discount(t) for t in range(node.stage, delivery)])
                price = plant["cost_per_mwh"] * self.hours[delivery] * discount
                node.ordered[plant["id"], delivery] = self.column(node, price, most, least, per_hour=False)
        if self.deciders(plant).get(node.stage, node.stage) == node.stage:
            return self.column(node, plant["cost_per_mwh"], most, least)
        power = self.column(node, 0.0, most, least)
        terms = [(power, 1.0)]
        self.row(terms, self.add_term(terms, node.ordered[plant["id"], node.stage], -1.0))
        return power

    def deciders(self, plant):
        """Return the deciding stages by delivery; empty for ordinary plants."""
        config = plant.get("anticipated_config")
        if config is None:
            return {}
        if "lead_stages" in config:
            return {t: max(t - config["lead_stages"], BEFORE) for t in range(self.case.stages)}
        moments = {t: self.edges[t + 1] - config["lead_time_hours"] for t in range(self.case.stages)}
        return {t: int(np.searchsorted(self.edges[1:], at)) if at > 0 else BEFORE for t, at in moments.items()}

    def committed_power(self, plant, delivery):
        total = 0.0
        first, last = (date.fromisoformat(text).toordinal() for text in (self.starts[delivery], self.ends[delivery]))
        for row in self.initial["past_anticipated_commitments"]:
            if row["thermal_id"] == plant["id"]:
                begin, end = (date.fromisoformat(row[name]).toordinal() for name in ("start_date", "end_date"))
                total += row["value_mw"] * max(0, min(end, last) - max(begin, first))
        return total / (last - first)

    def discount(self, stage):
        return (1.0 + self.case.rate) ** -(self.days[stage] / 365.25)

    def overlap(self, begin, end, stage):
        return max(0.0, min(end, self.edges[stage + 1]) - max(begin, self.edges[stage]))

    def hours_after_start(self, day):
        return 24.0 * (date.fromisoformat(day) - date.fromisoformat(self.starts[0])).days

    def column(self, node, price, upper=highspy.kHighsInf, lower=0.0, per_hour=True):
        cost = node.weight * price * (self.hours[node.stage] if per_hour else 1.0)
        self.lp.addCol(cost, lower, upper, 0, [], [])
        return self.lp.getNumCol() - 1

    @staticmethod
    def add_term(terms, thing, factor):
        """Add a column to `terms`, or return the contribution of a number to the right-hand side."""
        if isinstance(thing, int):
            terms.append((thing, factor))
            return 0.0
        return -factor * thing

    def row(self, terms, right):
        index = np.array([column for column, _ in terms], np.int32)
        self.lp.addRow(right, right, len(terms), index, np.array([value for _, value in terms]))

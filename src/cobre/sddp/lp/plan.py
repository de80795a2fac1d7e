"""Plan of a stage's LP, for its builder: active plants, routing of water, limits."""

from functools import cached_property

import numpy as np

from cobre.core.arrays import Flags, Floats, Indices, Ints, sum_in_order
from cobre.core.case import FormatVersion
from cobre.core.config import ModelingConfig
from cobre.core.stage_data import COMMITMENT, StageData, StateLayout, Topology
from cobre.records import dataclass
from cobre.sddp.lp.lp_builder import StateIndex


@dataclass(frozen=True)
class PlanOptions:
    """Choices that hold for the whole study. Costs in the LP are scaled: $ / `cost_scale`.

    has_inflow_slack: water may be added to an inflow, at a penalty. truncates_inflow: negative inflows become zero,
    also for the lags of later stages. limits_inflow_slack: at most the negative part of an inflow may be added.
    fixes_inflow_slack: exactly the negative part is added, at no cost. keeps_planes_at_rest: production planes hold
    also in stages in which a plant can generate nothing. keeps_initial_storage: limits of the first stage hold only for
    its end; otherwise the study starts within them. corrects_passing_inflow: inflows at plants that are not in service
    may be corrected, too.
    """

    has_inflow_slack: bool
    truncates_inflow: bool
    cost_scale: float
    limits_inflow_slack: bool = False
    fixes_inflow_slack: bool = False
    keeps_planes_at_rest: bool = False
    keeps_initial_storage: bool = False
    corrects_passing_inflow: bool = False

    @classmethod
    def of(cls, modeling: ModelingConfig, version: FormatVersion) -> "PlanOptions":
        """Return the options of a configuration: what truncation means depends on the format of the case."""
        method = modeling.non_negativity_method
        truncates, is_new = method in ("truncation", "truncation_with_penalty"), version == "0.19"
        fixes = is_new and method == "truncation"
        return cls(
            has_inflow_slack=fixes or method in ("penalty", "truncation_with_penalty"),
            truncates_inflow=truncates and not is_new,
            cost_scale=modeling.cost_scale_factor,
            limits_inflow_slack=truncates and is_new,
            fixes_inflow_slack=fixes,
            keeps_planes_at_rest=is_new,
            keeps_initial_storage=is_new,
            corrects_passing_inflow=is_new,
        )


@dataclass(frozen=True)
class StagePlan:
    """One stage seen by the builder. autoregression: lags x hydros. pumping_consumption: MW per m3/s, by station.

    future_cost_floor, future_cost_ceiling: limits of the cost of all later stages, scaled ($ / cost_scale); a ceiling
    of 0 says that nothing follows. lag_from, lag_share: how lags change; empty: they move on by one lag.
    is_out_of_reach: N, plants whose minimum storage a dry period makes impossible in some stage of the study.
    """

    data: StageData
    topology: Topology
    layout: StateLayout
    options: PlanOptions
    autoregression: Floats
    lag_from: Ints
    lag_share: Floats
    pumping_consumption: Floats
    future_cost_floor: float
    future_cost_ceiling: float
    is_out_of_reach: Flags

    @property
    def hours(self) -> Floats:
        """K: hours of each block."""
        return self.data.hours

    @cached_property
    def total_hours(self) -> float:
        """Hours of the stage: those of all blocks."""
        return sum_in_order(self.data.hours.tolist())

    @property
    def discount(self) -> float:
        """The cost of the future-cost column in $: the builder divides it by `cost_scale` like every other cost."""
        return self.data.discount * self.options.cost_scale

    @property
    def num_blocks(self) -> int:
        """K, the number of blocks."""
        return len(self.data.hours)

    @property
    def num_hydros(self) -> int:
        """N, the number of hydro plants."""
        return len(self.topology.downstream)

    @cached_property
    def state_index(self) -> StateIndex:
        """Positions of states among the inputs of the LP."""
        return StateIndex(self.layout, self.num_hydros, len(self.autoregression))

    @property
    def has_commitments(self) -> bool:
        """Whether some thermal plant of the study decides ahead."""
        return self.layout.has(COMMITMENT)

    @property
    def inflow_inputs(self) -> Indices:
        """The inputs that are the inflows of every plant."""
        return self.state_index.num_decided + np.arange(self.num_hydros)

    @property
    def num_buses(self) -> int:
        """B, the number of buses."""
        return len(self.data.bus.excess_cost)

    @property
    def is_chronological(self) -> bool:
        """Whether blocks follow one another in time."""
        return self.data.stage.block_mode == "chronological" and self.num_blocks > 1

    @property
    def storage_points(self) -> int:
        """Number of volumes of a reservoir that are decided."""
        return self.num_blocks if self.is_chronological else 1

    @cached_property
    def point_hours(self) -> Floats:
        """Hours that end with each of these volumes."""
        return self.hours if self.is_chronological else np.array([self.total_hours])

    def period_of(self, block: int) -> int:
        """Return the period that a block belongs to: itself, or the stage where blocks are parallel."""
        return block if self.is_chronological else 0

    def by_block(self, by_period: Floats) -> Floats:
        """Return rows for blocks, from rows for periods."""
        return by_period if self.is_chronological else np.repeat(by_period, self.num_blocks, axis=0)

    # Plants in and out of service

    @property
    def in_service(self) -> Flags:
        """N: plants between entry and exit."""
        return self.data.hydro.is_active

    @property
    def is_filling(self) -> Flags:
        """Plants whose dead volume is being filled."""
        return self.data.hydro.is_filling

    @cached_property
    def has_reservoir(self) -> Flags:
        """Plants whose dam is closed: in service, or being filled."""
        return self.in_service | self.is_filling

    @cached_property
    def is_absent(self) -> Flags:
        """Plants that are not there yet or no more: their storage stays, water passes by."""
        return ~self.has_reservoir

    @cached_property
    def has_soft_minimum(self) -> Flags:
        """Plants that may fall below their minimum storage, at a price."""
        return self.in_service & (self.data.hydro.was_filled | self.is_out_of_reach)

    @cached_property
    def has_hard_minimum(self) -> Flags:
        """N: plants in service whose minimum storage must hold."""
        return self.in_service & ~self.has_soft_minimum

    @cached_property
    def lowest_storage_hm3(self) -> Floats:
        """N: what storages cannot fall below at any price; the declared minimum if it is soft for want of water."""
        hydro = self.data.hydro
        lowest = np.where(self.has_hard_minimum, hydro.min_storage_hm3, 0.0)
        declared = np.minimum(hydro.declared_min_storage_hm3, hydro.min_storage_hm3)
        return np.where(self.in_service & self.is_out_of_reach, declared, lowest)

    @cached_property
    def has_filling_target(self) -> Flags:
        """Plants that should have reached a volume by the end of the stage."""
        return self.is_filling & np.isfinite(self.data.hydro.filling_target_hm3)

    @cached_property
    def has_inflow_slack(self) -> Flags:
        """N: plants at which missing inflow may be made up for at a penalty.

        By the rules of format 0.19 also if there is no plant yet, or no more, and its inflow reaches another one.
        """
        has_use = self.receiver >= 0 if self.options.corrects_passing_inflow else ~self.is_absent
        return has_use & self.options.has_inflow_slack

    @cached_property
    def has_travel_time(self) -> Flags:
        """Plants whose releases have a travel time to the plant downstream."""
        travels = np.zeros(self.num_hydros, bool)
        travels[self.data.transit.hydro] = True
        return travels

    @cached_property
    def receiver(self) -> Indices:
        """N: the plant whose reservoir receives water that arrives at a plant.

        Itself, or the next downstream that has one.
        """
        receiver = np.arange(self.num_hydros)
        while (passes := (receiver >= 0) & self.is_absent[receiver]).any():
            receiver[passes] = self.topology.downstream[receiver[passes]]
        return receiver

    def arrives_at(self, site: int) -> Flags:
        """Return for every plant whether water that arrives at it flows on to a site, past plants that are absent."""
        arrives = np.zeros(self.num_hydros, bool)
        for hydro in range(self.num_hydros):
            at = hydro
            while at not in (site, -1) and self.is_absent[at]:
                at = int(self.topology.downstream[at])
            arrives[hydro] = at == site
        return arrives

    def receiver_of(self, target: Indices) -> Indices:
        """Return the `receiver` of each target plant; -1 where the target is -1, that is, none."""
        return np.where(target >= 0, self.receiver[np.maximum(target, 0)], -1)

    # Pairs of plant and bus: the unit groups of a plant that feed one bus act as one

    @cached_property
    def _pairs(self) -> tuple[Indices, Indices, Indices]:
        keys = self.topology.group_hydro * max(1, self.num_buses) + self.topology.group_bus
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return self.topology.group_hydro[first], self.topology.group_bus[first], inverse.reshape(-1)

    @property
    def pair_hydro(self) -> Indices:
        """F: the plant of each pair of plant and bus, in canonical order."""
        return self._pairs[0]

    @property
    def pair_bus(self) -> Indices:
        """F: the bus of each pair of plant and bus."""
        return self._pairs[1]

    @property
    def num_pairs(self) -> int:
        """F, the number of pairs of a plant and a bus that it feeds."""
        return len(self.pair_hydro)

    def _sum_groups(self, values: Floats) -> Floats:
        total = np.zeros((self.num_pairs, self.num_blocks))
        np.add.at(total, self._pairs[2], values)
        return total

    @cached_property
    def is_plane_pair(self) -> Flags:
        """Pairs of plants whose power is limited by planes."""
        has_planes = np.array([planes is not None for planes in self.data.hydro.planes], bool)
        return has_planes[self.pair_hydro] if self.num_pairs else np.zeros(0, bool)

    @cached_property
    def pair_productivity(self) -> Floats:
        """MW per m3/s; 0 for pairs with planes."""
        return np.where(
            self.is_plane_pair, 0.0, np.nan_to_num(self.data.hydro.productivity_mw_per_m3s)[self.pair_hydro]
        )

    @cached_property
    def max_pair_generation(self) -> Floats:
        """F x K, MW: what the groups of a pair can give, and no more than their plant."""
        plant = self.data.hydro.max_generation_mw[self.pair_hydro]
        maximum = np.minimum(plant, self._sum_groups(self.data.group.max_generation_mw))
        return np.where(self.in_service[self.pair_hydro][:, None], maximum, 0.0)

    @cached_property
    def max_pair_turbined(self) -> Floats:
        """F x K: what the machines take, and no more than what their power allows, group by group."""
        group, hydro = self.data.group, self.data.hydro
        rate = self.pair_productivity[self._pairs[2]]
        groups = self._sum_groups(_flow_limit(group.max_turbined_m3s, group.max_generation_mw, rate))
        owner = self.pair_hydro
        plant = _flow_limit(hydro.max_turbined_m3s[owner], hydro.max_generation_mw[owner], self.pair_productivity)
        return np.where(self.in_service[owner][:, None], np.minimum(plant, groups), 0.0)

    @cached_property
    def feeds_several_buses(self) -> Flags:
        """Plants with more than one bus: their own limits are rows over all pairs."""
        return np.bincount(self.pair_hydro, minlength=self.num_hydros) > 1

    @cached_property
    def pair_share(self) -> Floats:
        """F: the part of its plant's production function that belongs to a pair, 0 to 1."""
        share = np.zeros(self.num_pairs)
        np.add.at(share, self._pairs[2], self.topology.group_share)
        return share

    @cached_property
    def min_pair_turbined(self) -> Floats:
        """F x K, m3/s: the minimums of the groups of a pair, added."""
        return self._sum_groups(self.data.group.min_turbined_m3s)

    @cached_property
    def min_pair_generation(self) -> Floats:
        """F x K, MW: the minimums of the groups of a pair, added."""
        return self._sum_groups(self.data.group.min_generation_mw)

    @cached_property
    def limits_pair_turbined(self) -> Flags:
        """F x K: a minimum of the turbined flow."""
        return np.asarray(self.min_pair_turbined > 0)

    @cached_property
    def limits_pair_generation(self) -> Flags:
        """F x K: where the unit groups of a pair have a minimum power."""
        return np.asarray(self.min_pair_generation > 0)

    @cached_property
    def limits_turbined(self) -> Flags:
        """N x K: a minimum of the turbined flow that the minimums of the groups do not ensure."""
        return np.asarray(self.data.hydro.min_turbined_m3s > self._sum_pairs(self.min_pair_turbined))

    @cached_property
    def limits_generation(self) -> Flags:
        """N x K: a minimum of the power that the minimums of the groups do not ensure."""
        return np.asarray(self.data.hydro.min_generation_mw > self._sum_pairs(self.min_pair_generation))

    def _sum_pairs(self, values: Floats) -> Floats:
        total = np.zeros((self.num_hydros, self.num_blocks))
        np.add.at(total, self.pair_hydro, values)
        return total

    @cached_property
    def constrains_curtailment(self) -> Flags:
        """Sources whose curtailment appears in a generic constraint."""
        named = np.zeros(len(self.data.source.is_active), bool)
        for row in self.data.generic_rows:
            for term in row.terms:
                if term.variable == "non_controllable_curtailment":
                    named[term.entity] = True
        return named

    # Unserved energy

    @cached_property
    def deficit_depth(self) -> Floats:
        """B x segments, MW; 0 if a bus has fewer."""
        return self._segments(0)

    @cached_property
    def deficit_cost(self) -> Floats:
        """B x segments, $/MWh; 0 if a bus has fewer."""
        return self._segments(1)

    def _segments(self, part: int) -> Floats:
        lists = self.data.bus.deficit_segments
        table = np.zeros((len(lists), max((len(segments) for segments in lists), default=0)))
        for bus, segments in enumerate(lists):
            table[bus, : len(segments)] = [segment[part] for segment in segments]
        return table


def _flow_limit(flow_m3s: Floats, power_mw: Floats, rate_mw_per_m3s: Floats) -> Floats:
    """Return the flow that both limits allow; a rate of 0 sets no limit on power."""
    by_power = np.full(flow_m3s.shape, np.inf)
    rate = np.broadcast_to(rate_mw_per_m3s[:, None], flow_m3s.shape)
    np.divide(power_mw, rate, out=by_power, where=rate > 0)
    both: Floats = np.minimum(flow_m3s, by_power)
    return both

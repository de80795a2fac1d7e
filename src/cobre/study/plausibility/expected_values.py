"""Expected values of a study, by stage: loads, capacities and inflows as arrays (stage, entity).

Apart from `rules`, which is long enough without them.
"""

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats, Indices
from cobre.core.stage_data import ResolvedStudy, StageData, Topology
from cobre.records import dataclass
from cobre.stochastic.model import NoiseModel


@dataclass(frozen=True, slots=True)
class Expected:
    """T stages, B buses, J thermals, N hydros, G unit groups, L lines. Powers are averages over the blocks of a stage.

    capacity_mw: total capacity feeding a bus, non-controllable sources with their mean availability.
    must_run_mw: thermal minima and the minima of import contracts. inflow_m3s: natural, incremental.
    """

    study: ResolvedStudy
    noise: NoiseModel
    hours: Floats  # T
    load_mw: Floats  # T x B
    capacity_mw: Floats  # T x B
    must_run_mw: Floats  # T x B
    line_in_mw: Floats  # T x B
    line_out_mw: Floats  # T x B
    inflow_m3s: Floats  # T x N

    @property
    def topology(self) -> Topology:
        """Which entities are connected."""
        return self.study.topology

    def stage_id(self, position: int) -> int:
        """Return the id of a stage by its position."""
        return self.study.stages[position].stage.id


def expected_numbers(study: ResolvedStudy, noise: NoiseModel) -> Expected:
    """Average over the openings of each stage; inflows depend on the expected inflows before."""
    realisations = [noise.realise(stage, openings) for stage, openings in enumerate(noise.openings)]
    availability = [draw.availability.mean(axis=0) for draw in realisations]
    loads = [draw.load_mw.mean(axis=0) for draw in realisations]
    parts = [_of_stage(study.topology, *of) for of in zip(study.stages, loads, availability, strict=True)]
    load, capacity, must_run, line_in, line_out = (np.array(part) for part in zip(*parts, strict=True))
    return Expected(
        study=study,
        noise=noise,
        hours=np.array([stage.hours.sum() for stage in study.stages]),
        load_mw=load,
        capacity_mw=capacity,
        must_run_mw=must_run,
        line_in_mw=line_in,
        line_out_mw=line_out,
        inflow_m3s=_expected_inflow(noise, [draw.inflow_m3s.mean(axis=0) for draw in realisations]),
    )


def _of_stage(topology: Topology, stage: StageData, load: Floats, availability: Floats) -> tuple[Floats, ...]:
    buses, share = len(load), stage.hours / stage.hours.sum()
    is_import = topology.contract_sign > 0

    def at(bus: Indices, values: Floats) -> Floats:
        return np.bincount(bus, values, buses).astype(np.float64)

    imports = topology.contract_bus[is_import]
    source = stage.source.available_mw * availability * (stage.source.factor @ share)
    capacity = (
        at(topology.thermal_bus, stage.thermal.max_mw @ share)
        + at(topology.group_bus, stage.group.max_generation_mw @ share)
        + at(topology.source_bus, source)
        + at(imports, stage.contract.max_mw[is_import] @ share)
    )
    must_run = at(topology.thermal_bus, stage.thermal.min_mw @ share) + at(
        imports, stage.contract.min_mw[is_import] @ share
    )
    direct, reverse = stage.line.direct_mw @ share, stage.line.reverse_mw @ share
    line_in = at(topology.line_target, direct) + at(topology.line_source, reverse)
    line_out = at(topology.line_source, direct) + at(topology.line_target, reverse)
    return load * (stage.bus.load_factor @ share), capacity, must_run, line_in, line_out


def _expected_inflow(noise: NoiseModel, means: list[NDArray[np.float64]]) -> Floats:
    """Return inflows by stage: the mean over openings plus the terms of the expected inflows before."""
    lags, inflows = noise.initial_lags.copy(), []
    for stage, mean in enumerate(means):
        inflow = mean + noise.lag_inflow(stage, lags[None])[0]
        inflows.append(inflow)
        lags = noise.next_lags(stage, lags, inflow)
    return np.array(inflows)

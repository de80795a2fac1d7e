"""The numbers of every stage, resolved from a case."""

from collections.abc import Sequence

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import Case
from cobre.core.preparation_steps import PreparationStep, StepReporter, no_report, report_each
from cobre.core.stage_data import ResolvedStudy, StageData, StateLayout
from cobre.core.temporal import Stage
from cobre.sddp.resolved.generic_rows import GenericRowResolver
from cobre.sddp.resolved.hydro import GroupResolver, HydroResolver, find_topology
from cobre.sddp.resolved.network import (
    BusResolver,
    ContractResolver,
    LineResolver,
    PumpingResolver,
    SourceResolver,
    ThermalResolver,
)
from cobre.sddp.resolved.state_slots import CommitmentResolver, TransitResolver


def resolve(case: Case, later_hours: Sequence[float] = (), report: StepReporter = no_report) -> ResolvedStudy:
    """Resolve all stages of a valid case, each with every cascade applied.

    later_hours: of the periods after the study for which a boundary policy values water in transit.
    """
    report(PreparationStep.STAGES, 0, len(case.horizon.stages))
    resolver = _StageResolver(case, later_hours)
    parts = (resolver.commitments, resolver.transit)
    layout = StateLayout(
        tuple(slot for part in parts for slot in part.decided), tuple(slot for part in parts for slot in part.passed)
    )
    return ResolvedStudy(
        topology=find_topology(case),
        layout=layout,
        initial_storage_hm3=_initial_storage(case),
        initial_decided=np.concatenate([part.initial(part.decided) for part in parts]),
        initial_passed=np.concatenate([part.initial(part.passed) for part in parts]),
        stages=tuple(
            resolver.resolve(number, stage)
            for number, stage in report_each(
                enumerate(case.horizon.stages), PreparationStep.STAGES, len(case.horizon.stages), report
            )
        ),
    )


class _StageResolver:
    def __init__(self, case: Case, later_hours: Sequence[float]) -> None:
        self._horizon = case.horizon
        self._hydro = HydroResolver(case)
        self._group = GroupResolver(case)
        thermal = ThermalResolver(case)
        self._thermal = tuple(thermal.resolve(stage) for stage in case.horizon.stages)
        self.commitments = CommitmentResolver(case, self._thermal)
        self.transit = TransitResolver(case, later_hours)
        self._line = LineResolver(case)
        self._bus = BusResolver(case)
        self._source = SourceResolver(case)
        self._pumping = PumpingResolver(case)
        self._contract = ContractResolver(case)
        self._generic = GenericRowResolver(case)

    def resolve(self, number: int, stage: Stage) -> StageData:
        return StageData(
            stage=stage,
            hours=np.array([block.hours for block in stage.blocks], dtype=np.float64),
            discount=self._horizon.discount_factor(stage),
            hydro=self._hydro.resolve(stage),
            group=self._group.resolve(stage),
            thermal=self._thermal[number],
            line=self._line.resolve(stage),
            bus=self._bus.resolve(stage),
            source=self._source.resolve(stage),
            pumping=self._pumping.resolve(stage),
            contract=self._contract.resolve(stage),
            commitment=self.commitments.resolve(number),
            transit=self.transit.resolve(number),
            generic_rows=self._generic.resolve(stage),
        )


def _initial_storage(case: Case) -> Floats:
    """Return initial storages, hm3; a plant that is being filled starts from its filling storage.

    As given in cases of 0.18, whose limits are applied later, stage by stage. In cases of 0.19 a plant that is there
    from the beginning starts within its own limits; validation warns where that changes a number.
    """
    conditions = case.initial_conditions
    storage = {**conditions.filling_storage_hm3, **conditions.storage_hm3}
    hydros = case.system.hydros
    volumes = np.array([storage.get(hydro.id, 0.0) for hydro in hydros], dtype=np.float64)
    if case.format_version != "0.19":
        return volumes
    low = np.array([hydro.reservoir.min_storage_hm3 for hydro in hydros])
    high = np.array([hydro.reservoir.max_storage_hm3 for hydro in hydros])
    first = case.horizon.stages[0].id
    is_there = np.array([hydro.filling is None and (hydro.entry_stage_id or first) <= first for hydro in hydros], bool)
    return np.where(is_there, np.clip(volumes, low, high), volumes)

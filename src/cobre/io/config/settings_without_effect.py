"""Warnings of settings in config.json that are part of the format but have no effect here."""

from collections.abc import Iterator
from dataclasses import fields

from cobre.core.config import NEVER_READ, CutSelectionConfig
from cobre.io.config.method_records import CutSelectionRecord, DynamicRecord, TrainingSolverRecord, warn_of_profile
from cobre.io.config.records import (
    ByNode,
    CheckpointingRecord,
    ConfigFile,
    SimulationRecord,
    TrainingRecord,
)
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import Layer, Problems

DYNAMIC_RULES = tuple(item.name for item in fields(DynamicRecord) if item.name in NEVER_READ["cut_selection"])
OF_A_WINDOW = ("seed_window", "start_iteration")  # effective only with candidate_recency

Finding = tuple[str, str]


def warn_of_settings_without_effect(file: ConfigFile, problems: Problems) -> None:
    """Warn of each of them, with its key and the reason."""
    for field, message in _findings(file):
        problems.warn(Layer.SCHEMA, CONFIG_FILE, "", field, f"has no effect: {message}")
    warn_of_profile(file.simulation.solver, "simulation.solver", problems)


def _findings(file: ConfigFile) -> Iterator[Finding]:
    if file.upper_bound_evaluation.enabled:
        message = "the upper bound is the mean over forward passes and, with an interval, over simulations"
        yield "upper_bound_evaluation", message
    yield from _training(file.training)
    yield from _cut_selection(file.training.cut_selection)
    yield from _simulation(file.simulation)
    yield from _checkpointing(file.policy.checkpointing)


def _training(record: TrainingRecord) -> Iterator[Finding]:
    if isinstance(record.parallelism.backward_scheduler, ByNode):
        yield "training.parallelism.backward_scheduler", "how work is split does not affect results"
    if record.solver.retry_time_budget_seconds != TrainingSolverRecord().retry_time_budget_seconds:
        message = "a limit in seconds would make results depend on the machine; see retry_max_attempts"
        yield "training.solver.retry_time_budget_seconds", message


def _cut_selection(record: CutSelectionRecord) -> Iterator[Finding]:
    section = "training.cut_selection"
    if record.row_activity_tolerance is not None:
        message = "whether a cut is active is decided by its value at visited states, not by its dual"
        yield f"{section}.row_activity_tolerance", message
    chosen = record.selection
    if not isinstance(chosen, DynamicRecord):
        return
    default = DynamicRecord("dynamic")
    message = "cuts are added to an LP when they are violated, by fixed rules; the optimum is that of all cuts"
    for name in DYNAMIC_RULES:
        if getattr(chosen, name) not in (getattr(default, name), getattr(CutSelectionConfig(), name)):
            yield f"{section}.selection.{name}", message
    for name in OF_A_WINDOW if chosen.candidate_recency is None else ():
        if getattr(chosen, name) != getattr(default, name):
            yield f"{section}.selection.{name}", message


def _simulation(record: SimulationRecord) -> Iterator[Finding]:
    if record.io_channel_capacity != SimulationRecord().io_channel_capacity:
        message = "results are written while scenarios are simulated, without a queue whose capacity could be set"
        yield "simulation.io_channel_capacity", message
    if record.scenario_source is not None and record.scenario_source.openings is not None:
        yield "simulation.scenario_source.openings", "simulations use the openings of training"


def _checkpointing(record: CheckpointingRecord) -> Iterator[Finding]:
    if record.compress:
        yield "policy.checkpointing.compress", "checkpoints are not compressed, which is faster"
    if record.store_basis is False:
        message = "bases are always stored, because a resumed run must give the same bits"
        yield "policy.checkpointing.store_basis", message

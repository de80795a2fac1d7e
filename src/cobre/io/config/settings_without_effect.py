"""Warnings of settings in config.json that are part of the format but have no effect here."""

from collections.abc import Iterator

from cobre.core.config import (
    TOLERANCES,
    ByNode,
    CheckpointingConfig,
    Config,
    CutSelectionConfig,
    DynamicSelection,
    SimulationConfig,
    SolverConfig,
    SolverProfile,
    TrainingConfig,
)
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.finding import Findings, Layer, warning_code

FIXED_RULES = ("max_added_per_round", "violation_tolerance")  # of the cut loop inside an LP
WINDOW_RULES = ("seed_window", "start_iteration")  # effective only with candidate_recency
CUT_LOOP_TOLERANCE = 1e-10  # the fixed violation tolerance, which other programs write as their default

NO_EFFECT = warning_code("setting-without-effect", Layer.SCHEMA, "has no effect: {reason}")

Setting = tuple[str, str]  # its key, and why it has no effect


def warn_of_settings_without_effect(config: Config, findings: Findings) -> None:
    """Warn of each setting that is given and has no effect, with its key and the reason."""
    for field, reason in _settings(config):
        findings.add(NO_EFFECT, CONFIG_FILE, (), field, reason=reason)


def _settings(config: Config) -> Iterator[Setting]:
    if config.upper_bound_evaluation.enabled:
        message = "the upper bound is the mean over forward passes and, with an interval, over simulations"
        yield "upper_bound_evaluation", message
    yield from _training(config.training)
    yield from _cut_selection(config.training.cut_selection)
    yield from _simulation(config.simulation)
    yield from _checkpointing(config.policy.checkpointing)
    yield from _profile(config.simulation.solver, "simulation.solver")
    yield from _profile(config.training.solver.forward, "training.solver.forward", TOLERANCES)
    yield from _profile(config.training.solver.backward, "training.solver.backward", TOLERANCES)


def _training(config: TrainingConfig) -> Iterator[Setting]:
    if isinstance(config.parallelism.backward_scheduler, ByNode):
        yield "training.parallelism.backward_scheduler", "how work is split does not affect results"
    if config.solver.retry_time_budget_seconds != SolverConfig().retry_time_budget_seconds:
        message = "a limit in seconds would make results depend on the machine; see retry_max_attempts"
        yield "training.solver.retry_time_budget_seconds", message


def _cut_selection(config: CutSelectionConfig) -> Iterator[Setting]:
    section = "training.cut_selection"
    if config.row_activity_tolerance is not None:
        message = "whether a cut is active is decided by its value at visited states, not by its dual"
        yield f"{section}.row_activity_tolerance", message
    chosen = config.selection
    if not isinstance(chosen, DynamicSelection):
        return
    message = "cuts are added to an LP when they are violated, by fixed rules; the optimum is that of all cuts"
    for name in (*FIXED_RULES, *(WINDOW_RULES if chosen.candidate_recency is None else ())):
        value = getattr(chosen, name)
        if value not in (getattr(DynamicSelection(), name), CUT_LOOP_TOLERANCE):
            yield f"{section}.selection.{name}", message


def _simulation(config: SimulationConfig) -> Iterator[Setting]:
    if config.io_channel_capacity != SimulationConfig().io_channel_capacity:
        message = "results are written while scenarios are simulated, without a queue whose capacity could be set"
        yield "simulation.io_channel_capacity", message
    if config.scenario_source is not None and config.scenario_source.has_openings_file:
        yield "simulation.scenario_source.openings", "simulations use the openings of training"


def _checkpointing(config: CheckpointingConfig) -> Iterator[Setting]:
    if config.compress:
        yield "policy.checkpointing.compress", "checkpoints are not compressed, which is faster"
    if config.store_basis is False:
        message = "bases are always stored, because a resumed run must give the same bits"
        yield "policy.checkpointing.store_basis", message


def _profile(profile: SolverProfile | None, section: str, effective: tuple[str, ...] = ()) -> Iterator[Setting]:
    for name in SolverProfile.__dataclass_fields__:
        if profile is not None and getattr(profile, name) is not None and name not in effective:
            yield f"{section}.{name}", "LPs are solved with fixed settings, so that results are the same everywhere"

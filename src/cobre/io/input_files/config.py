"""config.json: decoded into `cobre.core.config.Config`, with overrides, and with the checks that need no other file."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import create_model

from cobre.core.config import (
    TOLERANCES,
    ByNode,
    CheckpointingConfig,
    Config,
    CutSelectionConfig,
    DynamicSelection,
    Level1Selection,
    NonNegativityConfig,
    ScenarioSource,
    SimulationConfig,
    SolverConfig,
    SolverProfile,
    TrainingConfig,
    YearRange,
)
from cobre.core.file_names import CONFIG_FILE
from cobre.core.stopping import IterationLimit
from cobre.io.decoding.format_version import (
    FORMAT_018,
    RecognisedFormat,
    drop_errors_of_other_format,
    refuse_other_format,
)
from cobre.io.decoding.json_documents import Document, rewritten
from cobre.io.decoding.json_records import JsonFile, decode
from cobre.io.findings import Findings, Layer, error_code, warning_code
from cobre.io.input_files.config_overrides import name_overrides, with_overrides


def _sections() -> dict[str, Any]:
    """Return the fields of the file: the sections of `Config`, as the decoder declares fields."""
    hints = get_type_hints(Config, include_extras=True)
    return {item.name: (hints[item.name], ... if item.default is MISSING else item.default) for item in fields(Config)}


ConfigFile = create_model("ConfigFile", __base__=JsonFile, __doc__="All of config.json.", **_sections())

NO_ITERATION_LIMIT = error_code(
    "no-iteration-limit",
    Layer.SCHEMA,
    "there is no rule of type iteration_limit",
    remedy='add {{"type": "iteration_limit", "limit": N}}',
)

CAP_OF_DYNAMIC = error_code(
    "cap-of-dynamic-selection",
    Layer.MEANING,
    "cannot be combined with the method dynamic, which takes its cuts from all active ones",
    remedy="remove it, or use the method level1",
)

LOOKBACK_TOO_SHORT = error_code(
    "lookback-too-short",
    Layer.MEANING,
    "is {value}, below check_frequency, which is {frequency}",
    expected="at least check_frequency",
)

STATE_WINDOW_TWICE = error_code(
    "state-window-twice",
    Layer.MEANING,
    "cannot be combined with training.cut_selection.state_window, which means the same",
    remedy="keep one of them",
)

YEARS_REVERSED = error_code(
    "years-reversed", Layer.MEANING, "goes from {value} to {last}", expected="an earlier `from`"
)

TOLERANCES_DIFFER = warning_code(
    "tolerances-differ", Layer.SCHEMA, "differs between forward and backward; {value} is used for both"
)


def read_config(
    document: Document | None,
    overrides: Mapping[str, object] | None,
    findings: Findings,
    case_format: RecognisedFormat = FORMAT_018,
) -> Config | None:
    """Return the configuration, with overrides merged in before it is checked.

    Returns None after errors, which are added to `findings`. case_format: decides about defaults.
    """
    num_known = len(findings.errors)
    if document is not None and overrides:
        _check_replaced_rules(document, overrides, findings)
    start = len(findings)
    if document is not None and overrides:
        document = rewritten(document, with_overrides(document.content, overrides, findings))
    refuse_other_format(case_format, document, findings)
    config = _decoded(document, findings)
    drop_errors_of_other_format(case_format, findings, start)
    if config is not None:
        warn_of_settings_without_effect(config, findings)
        _check(config, case_format, findings)
    name_overrides(overrides or {}, findings, start)
    if config is None or len(findings.errors) > num_known:
        return None
    return _with_defaults_of(case_format, config)


def with_paths_from(folder: Path, config: Config) -> Config:
    """Return the configuration with paths relative to the case made absolute."""
    boundary_policy = config.policy.boundary
    if boundary_policy is None:
        return config
    located = replace(boundary_policy, path=str((folder / boundary_policy.path).resolve()))
    return replace(config, policy=replace(config.policy, boundary=located))


def _decoded(document: Document | None, findings: Findings) -> Config | None:
    file = decode(document, ConfigFile, findings)
    return None if file is None else Config(**{item.name: getattr(file, item.name) for item in fields(Config)})


def _check_replaced_rules(document: Document, overrides: Mapping[str, object], findings: Findings) -> None:
    """Also check the stopping rules that an override replaces: the next run may use them."""
    rules = "training.stopping_rules"
    training = document.content.get("training") if isinstance(document.content, dict) else None
    if rules not in overrides or not isinstance(training, dict) or "stopping_rules" not in training:
        return
    rule_findings = Findings()
    others = {name: value for name, value in overrides.items() if name != rules}
    config = _decoded(rewritten(document, with_overrides(document.content, others, rule_findings)), rule_findings)
    if config is not None:
        _check_stopping_rules(config, rule_findings)
    findings.extend(error for error in rule_findings.errors if "stopping_rules" in f"{error.entity} {error.field}")


def _with_defaults_of(case_format: RecognisedFormat, config: Config) -> Config:
    """Return the configuration with the defaults that depend on the format."""
    modeling = config.modeling
    if modeling.inflow_non_negativity.method is not None:
        return config
    method = "truncation_with_penalty" if case_format.version == "0.19" else modeling.non_negativity_method
    return replace(config, modeling=replace(modeling, inflow_non_negativity=NonNegativityConfig(method)))


# Checks of settings that depend on each other.


def _check(config: Config, case_format: RecognisedFormat, findings: Findings) -> None:
    training, simulation = config.training, config.simulation
    _check_stopping_rules(config, findings)
    _check_cut_selection(training.cut_selection, case_format, findings)
    _check_years(training.scenario_source, "training", findings)
    _check_tolerances(training.solver, findings)
    if simulation.scenario_source is not None:
        _check_years(simulation.scenario_source, "simulation", findings)


def _check_stopping_rules(config: Config, findings: Findings) -> None:
    if not any(isinstance(rule, IterationLimit) for rule in config.training.stopping_rules):
        findings.add(NO_ITERATION_LIMIT, CONFIG_FILE, (), "training.stopping_rules")


def _check_cut_selection(config: CutSelectionConfig, case_format: RecognisedFormat, findings: Findings) -> None:
    selection = config.selection
    if (
        case_format.version == "0.19"
        and isinstance(selection, DynamicSelection)
        and config.max_active_per_stage is not None
    ):
        field = "training.cut_selection.max_active_per_stage"
        findings.add(CAP_OF_DYNAMIC, CONFIG_FILE, (), field, value=config.max_active_per_stage)
    if not isinstance(selection, Level1Selection) or selection.lookback_iterations is None:
        return
    field = "training.cut_selection.selection.lookback_iterations"
    if selection.lookback_iterations < selection.check_frequency:
        facts = {"value": selection.lookback_iterations, "frequency": selection.check_frequency}
        findings.add(LOOKBACK_TOO_SHORT, CONFIG_FILE, (), field, **facts)
    if config.state_window is not None:
        findings.add(STATE_WINDOW_TWICE, CONFIG_FILE, (), field, value=selection.lookback_iterations)


def _check_years(source: ScenarioSource, section: str, findings: Findings) -> None:
    years = source.historical_years
    if isinstance(years, YearRange) and years.from_ > years.to:
        field = f"{section}.scenario_source.historical_years"
        findings.add(YEARS_REVERSED, CONFIG_FILE, (), field, value=years.from_, last=years.to)


def _check_tolerances(solver: SolverConfig, findings: Findings) -> None:
    """Warn of tolerances that differ: one is used for both phases, so that an LP has the same bits in each."""
    for name in TOLERANCES:
        values = solver.tolerances(name)
        if len(values) > 1 and values[0] != values[1]:
            findings.add(TOLERANCES_DIFFER, CONFIG_FILE, (), f"training.solver.*.{name}", value=values[0])


# Settings that are part of the format but have no effect here.

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
    selection = config.selection
    if not isinstance(selection, DynamicSelection):
        return
    message = "cuts are added to an LP when they are violated, by fixed rules; the optimum is that of all cuts"
    for name in (*FIXED_RULES, *(WINDOW_RULES if selection.candidate_recency is None else ())):
        value = getattr(selection, name)
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

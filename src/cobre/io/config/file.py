"""config.json: decoding, overrides, and conversion to the configuration of the program."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cobre.core.config import (
    STOPPING_RULES,
    CheckpointingConfig,
    Config,
    CutSelectionConfig,
    EstimationConfig,
    IterationLimit,
    ModelingConfig,
    PolicyConfig,
    ScenarioSource,
    SimulationConfig,
    StoppingRuleConfig,
    TrainingConfig,
)
from cobre.io.config.method_records import CutSelectionRecord, DynamicRecord, Level1Record, shared_fields, solver_config
from cobre.io.config.overrides import name_overrides, with_overrides
from cobre.io.config.records import (
    ConfigFile,
    Enumerated,
    ModelingRecord,
    PolicyRecord,
    SampledSimulation,
    ScenarioSourceRecord,
    SimulationRecord,
    TrainingRecord,
    YearRange,
)
from cobre.io.config.settings_without_effect import warn_of_settings_without_effect
from cobre.io.decoding.format_version import FORMAT_018, FormatSeen, fit_messages, refuse_other_format
from cobre.io.decoding.json_documents import Document, rewritten
from cobre.io.decoding.json_files import decode
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import Layer, Problems


def read_config(
    document: Document | None,
    overrides: Mapping[str, object] | None,
    problems: Problems,
    seen: FormatSeen = FORMAT_018,
) -> Config | None:
    """The configuration, with overrides merged in before it is checked; None after errors, added to `problems`.

    seen: the format of the case, which decides about defaults.
    """
    known = len(problems.errors)
    if document is not None and overrides:
        _check_replaced_rules(document, overrides, problems)
        document = rewritten(document, with_overrides(document.content, overrides, problems))
    start = len(problems)
    refuse_other_format(seen, document, problems)
    file = decode(document, ConfigFile, problems)
    fit_messages(seen, problems, start)
    if file is None:
        name_overrides(overrides or {}, problems, start)
        return None
    warn_of_settings_without_effect(file, problems)
    training = _training(file.training, problems, seen)
    simulation = _simulation(file.simulation, problems)
    name_overrides(overrides or {}, problems, start)
    if len(problems.errors) > known:
        return None
    return Config(
        training=training,
        simulation=simulation,
        modeling=_modeling(file.modeling, seen),
        estimation=EstimationConfig(**shared_fields(file.estimation, EstimationConfig)),
        policy=_policy(file.policy),
        exports=file.exports,
    )


def _check_replaced_rules(document: Document, overrides: Mapping[str, object], problems: Problems) -> None:
    """Check the stopping rules that an override replaces, too: the next run may use them."""
    rules = "training.stopping_rules"
    training = document.content.get("training") if isinstance(document.content, dict) else None
    if rules not in overrides or not isinstance(training, dict) or "stopping_rules" not in training:
        return
    found = Problems()
    others = {name: value for name, value in overrides.items() if name != rules}
    file = decode(rewritten(document, with_overrides(document.content, others, found)), ConfigFile, found)
    if file is not None:
        _stopping_rules(file.training.stopping_rules, found)
    for problem in found.errors:
        if "stopping_rules" in f"{problem.entity} {problem.field}":
            problems.error(problem.layer, problem.file, problem.entity, problem.field, problem.message, problem.remedy)


def with_paths_from(folder: Path, config: Config) -> Config:
    """The configuration with paths relative to the case made absolute."""
    boundary_policy = config.policy.boundary
    if boundary_policy is None:
        return config
    located = replace(boundary_policy, path=str((folder / boundary_policy.path).resolve()))
    return replace(config, policy=replace(config.policy, boundary=located))


def _training(record: TrainingRecord, problems: Problems, seen: FormatSeen) -> TrainingConfig:
    special: dict[str, Any] = {
        "forward_passes": 1 if isinstance(record.selection, Enumerated) else record.selection.forward_passes,
        "is_enumerated": isinstance(record.selection, Enumerated),
        "risk_weighted_share": 0.0
        if isinstance(record.selection, Enumerated)
        else record.selection.risk_weighted_share,
        "stopping_rules": _stopping_rules(record.stopping_rules, problems),
        "cut_selection": _cut_selection(record.cut_selection, problems, seen),
        "scenario_source": _scenario_source(record.scenario_source, "training", problems) or ScenarioSource(),
        "solver": solver_config(record.solver, problems),
    }
    if record.tree_seed is not None:
        special["tree_seed"] = abs(record.tree_seed)
    return TrainingConfig(**shared_fields(record, TrainingConfig) | special)


def _stopping_rules(records: tuple[Any, ...], problems: Problems) -> tuple[StoppingRuleConfig, ...]:
    rules = tuple(_stopping_rule(record) for record in records)
    if not any(isinstance(rule, IterationLimit) for rule in rules):
        message = "there is no rule of type iteration_limit"
        problems.error(
            Layer.SCHEMA,
            CONFIG_FILE,
            "",
            "training.stopping_rules",
            message,
            'add {"type": "iteration_limit", "limit": N}',
        )
    return rules


def _stopping_rule(record: Any) -> StoppingRuleConfig:
    rule = STOPPING_RULES[record.type]
    return rule(**shared_fields(record, rule))


def _cut_selection(record: CutSelectionRecord, problems: Problems, seen: FormatSeen) -> CutSelectionConfig:
    chosen = {} if record.selection is None else shared_fields(record.selection, CutSelectionConfig)
    chosen |= shared_fields(record, CutSelectionConfig)
    if seen.version == "0.19":
        chosen["rules"] = "0.19"
        if isinstance(record.selection, DynamicRecord) and record.max_active_per_stage is not None:
            field = "training.cut_selection.max_active_per_stage"
            message = "cannot be combined with the method dynamic, which takes its cuts from all active ones"
            problems.error(Layer.MEANING, CONFIG_FILE, "", field, message, "remove it, or use the method level1")
    if isinstance(record.selection, Level1Record) and record.selection.lookback_iterations is not None:
        _check_lookback(record, record.selection, problems)
        chosen["state_window"] = record.selection.lookback_iterations
    if seen.version == "0.19" and isinstance(record.selection, Level1Record):
        chosen["tie_tolerance"] = 0.0
    return CutSelectionConfig(**chosen)


def _check_lookback(record: CutSelectionRecord, chosen: Level1Record, problems: Problems) -> None:
    field = "training.cut_selection.selection.lookback_iterations"
    window = chosen.lookback_iterations or 0
    if window < chosen.check_frequency:
        message = f"is {window}, below check_frequency, which is {chosen.check_frequency}"
        problems.error(Layer.MEANING, CONFIG_FILE, "", field, message, "at least check_frequency")
    if record.state_window is not None:
        message = "cannot be combined with training.cut_selection.state_window, which means the same"
        problems.error(Layer.MEANING, CONFIG_FILE, "", field, message, "keep one of them")


def _scenario_source(record: ScenarioSourceRecord | None, section: str, problems: Problems) -> ScenarioSource | None:
    if record is None:
        return None
    special: dict[str, Any] = {
        "inflow": record.inflow.scheme if record.inflow else "in_sample",
        "load": record.load.scheme if record.load else "in_sample",
        "ncs": record.ncs.scheme if record.ncs else "in_sample",
        "historical_years": _years(record.historical_years, section, problems),
        "openings": record.openings.source if record.openings else "generated",
    }
    return ScenarioSource(**shared_fields(record, ScenarioSource) | special)


def _years(years: tuple[int, ...] | YearRange | None, section: str, problems: Problems) -> tuple[int, ...] | None:
    if not isinstance(years, YearRange):
        return years
    if years.from_ > years.to:
        field = f"{section}.scenario_source.historical_years"
        problems.error(
            Layer.MEANING, CONFIG_FILE, "", field, f"goes from {years.from_} to {years.to}", "an earlier `from`"
        )
    return tuple(range(years.from_, years.to + 1))


def _simulation(record: SimulationRecord, problems: Problems) -> SimulationConfig:
    special: dict[str, Any] = {
        "scenario_source": _scenario_source(record.scenario_source, "simulation", problems),
        "is_enumerated": isinstance(record.selection, Enumerated),
    }
    if isinstance(record.selection, SampledSimulation):
        special["num_scenarios"] = record.selection.num_scenarios
    return SimulationConfig(**shared_fields(record, SimulationConfig) | special)


def _modeling(record: ModelingRecord, seen: FormatSeen) -> ModelingConfig:
    default = ModelingConfig().inflow_non_negativity if seen.version == "0.18" else "truncation_with_penalty"
    method = record.inflow_non_negativity.method or default
    return ModelingConfig(**shared_fields(record, ModelingConfig), inflow_non_negativity=method)


def _policy(record: PolicyRecord) -> PolicyConfig:
    checkpointing = CheckpointingConfig(**shared_fields(record.checkpointing, CheckpointingConfig))
    special: dict[str, Any] = {"boundary": record.boundary, "checkpointing": checkpointing}
    return PolicyConfig(**shared_fields(record, PolicyConfig) | special)

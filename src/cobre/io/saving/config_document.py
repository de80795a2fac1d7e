"""config.json from the configuration of the program."""

from typing import Any

from cobre.core.case import FormatVersion
from cobre.core.config import (
    STOPPING_RULES,
    Config,
    CutSelectionConfig,
    Gap,
    PolicyConfig,
    ScenarioSource,
    SimulationConfig,
    SolverConfig,
    StoppingRuleConfig,
    TrainingConfig,
)
from cobre.io.config.method_records import CutSelectionRecord, DominationRecord, DynamicRecord, Level1Record
from cobre.io.config.records import SimulationRecord, TrainingRecord
from cobre.io.config.shared_fields import shared_fields
from cobre.io.saving.plain_values import plain

_RULE_TYPES = {rule: name for name, rule in STOPPING_RULES.items()}
ENUMERATED = {"method": "enumerated"}
_SELECTIONS: dict[str, type[Level1Record | DominationRecord | DynamicRecord]] = {
    "level1": Level1Record,
    "lml1": Level1Record,
    "domination": DominationRecord,
    "dynamic": DynamicRecord,
}


def config_document(config: Config, version: FormatVersion = "0.18") -> dict[str, Any]:
    """The content of config.json for a configuration, in a format."""
    modeling = config.modeling
    return {
        "training": _training(config.training, version),
        "simulation": _simulation(config.simulation, version),
        "modeling": plain(modeling) | {"inflow_non_negativity": {"method": modeling.inflow_non_negativity}},
        "estimation": plain(config.estimation),
        "policy": _policy(config.policy),
        "exports": plain(config.exports),
    }


def _training(training: TrainingConfig, version: FormatVersion) -> dict[str, Any]:
    return shared_fields(training, TrainingRecord) | {
        "selection": ENUMERATED
        if training.is_enumerated
        else {"method": "sampled", "forward_passes": training.forward_passes}
        | ({"risk_weighted_share": training.risk_weighted_share} if training.risk_weighted_share else {}),
        "stopping_rules": [_stopping_rule(rule) for rule in training.stopping_rules],
        "cut_selection": _cut_selection(training.cut_selection, version),
        "scenario_source": _scenario_source(training.scenario_source),
        "solver": _solver(training.solver),
    }


def _stopping_rule(rule: StoppingRuleConfig) -> dict[str, Any]:
    content = {"type": _RULE_TYPES[type(rule)], **plain(rule)}
    if isinstance(rule, Gap):  # other programs refuse these two, which they do not know
        for name in ("confidence", "patience"):
            if content[name] == getattr(Gap(), name):
                del content[name]
    return content


def _cut_selection(chosen: CutSelectionConfig, version: FormatVersion) -> dict[str, Any]:
    """The method with its own fields only: the format allows no others."""
    limits = shared_fields(chosen, CutSelectionRecord)
    if chosen.method is None:
        return limits
    selection = shared_fields(chosen, _SELECTIONS[chosen.method])
    if chosen.violation_tolerance == CutSelectionConfig().violation_tolerance:
        selection.pop("violation_tolerance", None)
    if version == "0.19" and chosen.method == "level1":
        del selection["tie_tolerance"]
        if window := limits.pop("state_window", None):
            selection["lookback_iterations"] = window
    return {"selection": selection} | limits


def _scenario_source(source: ScenarioSource) -> dict[str, Any]:
    document: dict[str, Any] = plain(source)
    return document | {
        "inflow": {"scheme": source.inflow},
        "load": {"scheme": source.load},
        "ncs": {"scheme": source.ncs},
        "openings": {"source": source.openings},
    }


def _solver(solver: SolverConfig) -> dict[str, Any]:
    """The section `solver`; tolerances apply to forward and backward pass alike."""
    document: dict[str, Any] = plain(solver)
    tolerances = {name: document.pop(name) for name in list(document) if name.endswith("_tolerance")}
    return document | ({"forward": tolerances, "backward": tolerances} if tolerances else {})


def _policy(policy: PolicyConfig) -> dict[str, Any]:
    """The section `policy` without settings that have no effect, which would only cause warnings."""
    document: dict[str, Any] = plain(policy)
    for name in ("store_basis", "compress"):
        if not document["checkpointing"][name]:
            del document["checkpointing"][name]
    return document


def _simulation(simulation: SimulationConfig, version: FormatVersion) -> dict[str, Any]:
    document: dict[str, Any] = shared_fields(simulation, SimulationRecord) | {
        "selection": ENUMERATED
        if simulation.is_enumerated
        else {"method": "sampled", "num_scenarios": simulation.num_scenarios},
    }
    if version == "0.18" and simulation.cut_set == SimulationConfig().cut_set:
        del document["cut_set"]  # which that format does not have
    if simulation.scenario_source is not None:
        document["scenario_source"] = _scenario_source(simulation.scenario_source)
        if simulation.scenario_source.openings == "generated":
            del document["scenario_source"]["openings"]
    return document

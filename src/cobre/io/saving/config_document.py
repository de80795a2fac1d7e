"""config.json from what the program uses."""

from typing import Any

from cobre.core.config import (
    BoundStalling,
    Config,
    CutSelectionConfig,
    Gap,
    IterationLimit,
    PolicyConfig,
    ScenarioSource,
    SimulationConfig,
    SolverConfig,
    StoppingRuleConfig,
    TimeLimit,
    TrainingConfig,
    UpperBoundGap,
)
from cobre.io.config.records import DominationRecord, DynamicRecord, Level1Record
from cobre.io.saving.plain_values import plain

_RULES: dict[type, str] = {
    IterationLimit: "iteration_limit",
    TimeLimit: "time_limit",
    BoundStalling: "bound_stalling",
    Gap: "gap",
    UpperBoundGap: "upper_bound",
}
ENUMERATED = {"method": "enumerated"}
_SELECTIONS: dict[str, type[Level1Record | DominationRecord | DynamicRecord]] = {
    "level1": Level1Record,
    "lml1": Level1Record,
    "domination": DominationRecord,
    "dynamic": DynamicRecord,
}


def config_document(config: Config) -> dict[str, Any]:
    """All of config.json."""
    modeling = config.modeling
    return {
        "training": _training(config.training),
        "simulation": _simulation(config.simulation),
        "modeling": {
            "inflow_non_negativity": {"method": modeling.inflow_non_negativity},
            "cost_scale_factor": modeling.cost_scale_factor,
        },
        "estimation": plain(config.estimation),
        "policy": _policy(config.policy),
        "exports": plain(config.exports),
    }


def _training(training: TrainingConfig) -> dict[str, Any]:
    return {
        "enabled": training.enabled,
        "tree_seed": training.tree_seed,
        "selection": ENUMERATED
        if training.is_enumerated
        else {"method": "sampled", "forward_passes": training.forward_passes},
        "stopping_rules": [_stopping_rule(rule) for rule in training.stopping_rules],
        "stopping_mode": training.stopping_mode,
        "cut_selection": _cut_selection(training.cut_selection),
        "scenario_source": _scenario_source(training.scenario_source),
        "solver": _solver(training.solver),
    }


def _stopping_rule(rule: StoppingRuleConfig) -> dict[str, Any]:
    return {"type": _RULES.get(type(rule), "simulation"), **plain(rule)}


def _cut_selection(chosen: CutSelectionConfig) -> dict[str, Any]:
    """Each method with its own fields alone: files may have no others."""
    given = plain(chosen)
    limits = {name: given[name] for name in ("max_active_per_stage", "row_activity_tolerance") if name in given}
    if chosen.method is None:
        return limits
    own = _SELECTIONS[chosen.method].__dataclass_fields__
    return {"selection": {name: value for name, value in given.items() if name in own}} | limits


def _scenario_source(source: ScenarioSource) -> dict[str, Any]:
    document: dict[str, Any] = {
        "inflow": {"scheme": source.inflow},
        "load": {"scheme": source.load},
        "ncs": {"scheme": source.ncs},
        "openings": {"source": source.openings},
    }
    if source.seed is not None:
        document["seed"] = source.seed
    if source.historical_years is not None:
        document["historical_years"] = list(source.historical_years)
    return document


def _solver(solver: SolverConfig) -> dict[str, Any]:
    """Tolerances hold for both passes."""
    document: dict[str, Any] = plain(solver)
    tolerances = {name: document.pop(name) for name in list(document) if name.endswith("_tolerance")}
    return document | ({"forward": tolerances, "backward": tolerances} if tolerances else {})


def _policy(policy: PolicyConfig) -> dict[str, Any]:
    """Without the settings that have no effect: whoever reads the file would be warned of what nobody asked for."""
    document: dict[str, Any] = plain(policy)
    for name in ("store_basis", "compress"):
        if not document["checkpointing"][name]:
            del document["checkpointing"][name]
    return document


def _simulation(simulation: SimulationConfig) -> dict[str, Any]:
    document: dict[str, Any] = {
        "enabled": simulation.enabled,
        "selection": ENUMERATED
        if simulation.is_enumerated
        else {"method": "sampled", "num_scenarios": simulation.num_scenarios},
    }
    if simulation.scenario_source is not None:
        document["scenario_source"] = _scenario_source(simulation.scenario_source)
        if simulation.scenario_source.openings == "generated":
            del document["scenario_source"]["openings"]
    return document

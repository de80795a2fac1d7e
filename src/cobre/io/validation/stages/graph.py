"""The policy graph: a chain of stages, a tree, or a graph of nodes whose paths meet again."""

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

from cobre.core.case import Case, Table
from cobre.core.state_names import STORAGE, kind_of, owner_of
from cobre.core.stopping import Gap, SimulationBased
from cobre.core.temporal import Node, PolicyGraph, PreStudyStage, Stage
from cobre.io.file_names import CONFIG_FILE
from cobre.io.input_files.stages_file import FILE
from cobre.io.policies.policy_file import PolicyFileError, PolicyMetadata, find_policy_file, read_policy
from cobre.io.policies.policy_source import PolicySource, can_store, new_ids, source_of
from cobre.io.validation.layer_findings import Findings, Rule, listed, with_ids
from cobre.io.validation.scenarios.noise import LIBRARIES

PROBABILITY_TOLERANCE = 1e-6

NODES = "policy_graph.nodes"


def transitions_of_stages(case: Case, findings: Findings) -> None:
    """Without nodes, transitions lead from each stage to the next, with probability 1."""
    graph = case.horizon.policy_graph
    if graph.nodes:
        return
    for edge in graph.transitions:
        if edge.target_id != edge.source_id + 1:
            entity = f"transition {edge.source_id} -> {edge.target_id}"
            message = "does not lead to the next stage; without nodes the graph is a chain of stages"
            findings.error(FILE, entity, "target_id", message, f"{edge.source_id + 1}, or nodes in {NODES}")


def probabilities(case: Case, findings: Findings) -> None:
    """The probabilities of the transitions from a stage or node sum to 1."""
    graph = case.horizon.policy_graph
    word = "node" if graph.nodes else "stage"
    outgoing: dict[int, float] = {}
    for edge in graph.transitions:
        outgoing[edge.source_id] = outgoing.get(edge.source_id, 0.0) + edge.probability
        if not 0 <= edge.probability <= 1:
            entity = f"transition {edge.source_id} -> {edge.target_id}"
            findings.error(FILE, entity, "probability", f"is {edge.probability:g}", "between 0 and 1")
    for source_id, total in outgoing.items():
        if not math.isclose(total, 1.0, abs_tol=PROBABILITY_TOLERANCE):
            message = f"the probabilities of leaving {word} {source_id} sum to {total:g}"
            findings.error(FILE, f"{word} {source_id}", "policy_graph.transitions.probability", message, "a sum of 1")


def nodes_and_edges(case: Case, findings: Findings) -> None:
    """Nodes belong to stages of the study, and edges lead from a stage to the next."""
    graph = case.horizon.policy_graph
    stages = {stage.id: number for number, stage in enumerate(case.horizon.stages)}
    by_id = {node.id: node for node in graph.nodes}
    for node in graph.nodes:
        if node.stage_id not in stages:
            findings.error(
                FILE, f"node {node.id}", "stage_id", f"there is no stage {node.stage_id}", "a stage of the study"
            )
    for edge in graph.transitions if graph.nodes else ():
        entity = f"transition {edge.source_id} -> {edge.target_id}"
        unknown = [end for end in (edge.source_id, edge.target_id) if end not in by_id]
        if unknown:
            findings.error(FILE, entity, "", f"there is no node {listed(unknown)}", "ids of nodes")
            continue
        before, after = (stages.get(by_id[end].stage_id, -1) for end in (edge.source_id, edge.target_id))
        if after != before + 1:
            findings.error(FILE, entity, "", "does not lead from a stage to the next", "nodes of neighbouring stages")
        if edge.annual_discount_rate_override is not None:
            message = "a transition between nodes has no rate of its own"
            findings.error(FILE, entity, "annual_discount_rate_override", message, "that of the stage")
    for pair, count in Counter((edge.source_id, edge.target_id) for edge in graph.transitions).items():
        if count > 1:
            findings.error(FILE, f"transition {pair[0]} -> {pair[1]}", "", f"appears {count} times", "once")


def paths_from_root_to_leaves(case: Case, findings: Findings) -> None:
    """There is one root; every other node has a predecessor; all paths end at the last stage."""
    graph = case.horizon.policy_graph
    if not graph.nodes or not case.horizon.stages:
        return
    first, last = case.horizon.stages[0].id, case.horizon.stages[-1].id
    roots = [node.id for node in graph.nodes if node.stage_id == first]
    if len(roots) != 1:
        message = f"stage {first} has {len(roots)} nodes ({listed(roots) or 'none'})"
        findings.error(FILE, "", NODES, message, "one root node")
    reached = {edge.target_id for edge in graph.transitions}
    left = {edge.source_id for edge in graph.transitions}
    orphans = [node.id for node in graph.nodes if node.stage_id != first and node.id not in reached]
    if orphans:
        findings.error(FILE, f"{with_ids('node', orphans)}", NODES, "no transition leads there", "a transition to each")
    ends = [node.id for node in graph.nodes if node.stage_id != last and node.id not in left]
    if ends:
        findings.error(
            FILE, f"{with_ids('node', ends)}", NODES, "paths end before the last stage", "a transition from each"
        )


def enumerated_trees(case: Case, findings: Findings) -> None:
    """Enumerated selection needs a tree whose nodes have one parent and one realisation each."""
    config, graph = case.config, case.horizon.policy_graph
    if not (config.training.is_enumerated or config.simulation.is_enumerated):
        _refuse_pinned_nodes(graph, findings)
        return
    met = Counter(edge.target_id for edge in graph.transitions) if graph.nodes else Counter()
    joins = [node for node, count in met.items() if count > 1]
    if joins:
        message = f"more than one parent of {with_ids('node', joins)}, but selection is enumerated"
        findings.error(FILE, "", NODES, message, "a tree, or sampled selection")
    if config.simulation.enabled and config.simulation.is_enumerated and not config.training.is_enumerated:
        message = "is enumerated, but training is sampled: paths of a tree need a policy of the tree"
        findings.error(CONFIG_FILE, "", "simulation.selection", message, "training.selection enumerated, too")
    if config.training.scenario_source.has_openings_file:
        message = "openings from a file cannot be combined with enumerated selection"
        findings.error(CONFIG_FILE, "", "training.scenario_source.openings", message, "generated")
    _check_realisations(case, graph, findings)


def _refuse_pinned_nodes(graph: PolicyGraph, findings: Findings) -> None:
    pinned = [node.id for node in graph.nodes if node.scenario_id is not None]
    if pinned:
        message = f"is given for {with_ids('node', pinned)}, but selection is sampled"
        findings.error(FILE, "", f"{NODES}.scenario_id", message, "enumerated selection, or no scenario_id")


def _check_realisations(case: Case, graph: PolicyGraph, findings: Findings) -> None:
    source = case.config.training.scenario_source
    external = [library for library in LIBRARIES if source.scheme(library.scheme) == "external"]
    for node in graph.nodes:
        if external:
            _check_pointer(node, [getattr(case.scenarios, library.table) for library in external], findings)
        elif node.scenario_id is not None:
            message = "is given, but no class has external scenarios"
            findings.error(FILE, f"node {node.id}", "scenario_id", message, "leave it out, or scheme external")
    several = [stage.id for stage in case.horizon.stages if (stage.num_openings or 1) > 1]
    if several and not (external and graph.nodes):
        message = f"is above 1 in {with_ids('stage', several)}, but selection is enumerated"
        findings.error(FILE, "", "stages.num_openings", message, "1: a node for each realisation")


def _check_pointer(node: Node, tables: list[Table | None], findings: Findings) -> None:
    if node.scenario_id is None:
        message = "is missing: its stage has external scenarios"
        findings.error(FILE, f"node {node.id}", "scenario_id", message, "the id of the scenario at this node")
        return
    for table in tables:
        known = set() if table is None else set(table["scenario_id"][table["stage_id"] == node.stage_id].tolist())
        if node.scenario_id not in known:
            message = f"is {node.scenario_id}, but stage {node.stage_id} has {with_ids('scenario', sorted(known))}"
            findings.error(FILE, f"node {node.id}", "scenario_id", message, "one of them")


def gap_rules(case: Case, findings: Findings) -> None:
    """The rule `gap` needs paths that tell what the policy costs, and a tolerance."""
    training = case.config.training
    rules = [rule for rule in training.stopping_rules if isinstance(rule, Gap)]
    if rules and not training.is_enumerated and not training.risk_weighted_share:
        remedy = "training.selection.risk_weighted_share 1, another rule, or selection enumerated"
        if case.is_risk_averse:
            message = "the rule `gap` needs paths drawn by the weights of the risk measure"
            findings.error(CONFIG_FILE, "", "training.stopping_rules", message, remedy)
        elif not training.scenario_source.is_in_sample:
            message = "the rule `gap` needs paths drawn from the openings, but scenario_source names another scheme"
            findings.error(CONFIG_FILE, "", "training.stopping_rules", message, remedy)
    if any(rule.tolerance is None and rule.relative_tolerance is None for rule in rules):
        message = "the rule `gap` has no tolerance"
        findings.error(
            CONFIG_FILE, "", "training.stopping_rules", message, "tolerance in $, or relative_tolerance in %"
        )


RULES: tuple[Rule, ...] = (
    transitions_of_stages,
    probabilities,
    nodes_and_edges,
    paths_from_root_to_leaves,
    enumerated_trees,
    gap_rules,
)


# The horizon: dates, transitions, rates, risk.


def dates_in_order(case: Case, findings: Findings) -> None:
    """Stages end after they start, and follow one another."""
    stages: list[Stage | PreStudyStage] = [*case.horizon.pre_study_stages, *case.horizon.stages]
    for stage in stages:
        if stage.end_date <= stage.start_date:
            message = f"is {stage.end_date}, not after start_date, which is {stage.start_date}"
            findings.error(FILE, f"stage {stage.id}", "end_date", message, "the first day after the stage")
    for before, after in pairwise(case.horizon.stages):
        _check_succession(before, after, findings)


def _check_succession(before: Stage, after: Stage, findings: Findings) -> None:
    entity = f"stage {after.id}"
    if after.end_date <= before.end_date:
        message = f"is {after.end_date}, but stage {before.id} ends on {before.end_date}"
        findings.error(FILE, entity, "end_date", message, "stages in order of time")
    elif after.start_date < before.end_date:
        message = (
            f"is {after.start_date}, but stage {before.id} ends on {before.end_date}: days that both stages have count "
            "twice"
        )
        findings.warn(FILE, entity, "start_date", message)
    elif after.start_date > before.end_date:
        message = (
            f"is {after.start_date}, but stage {before.id} ends on {before.end_date}: days between them are not studied"
        )
        findings.warn(FILE, entity, "start_date", message)


def pre_study_stages_before_the_study(case: Case, findings: Findings) -> None:
    """Pre-study stages end before the study starts."""
    if not case.horizon.stages:
        return
    start = case.horizon.stages[0].start_date
    for stage in case.horizon.pre_study_stages:
        if stage.end_date > start:
            message = f"is {stage.end_date}, after the study starts on {start}"
            findings.error(FILE, f"pre-study stage {stage.id}", "end_date", message, f"{start} or earlier")


def discount_rates(case: Case, findings: Findings) -> None:
    """Annual discount rates must not be negative."""
    graph = case.horizon.policy_graph
    findings.demand_not_negative(graph.annual_discount_rate, FILE, "", "policy_graph.annual_discount_rate")
    for edge in graph.transitions:
        if edge.annual_discount_rate_override is not None:
            entity = f"transition {edge.source_id} -> {edge.target_id}"
            rate = edge.annual_discount_rate_override
            findings.demand_not_negative(rate, FILE, entity, "annual_discount_rate_override")
    for stage in case.horizon.stages:
        if stage.annual_discount_rate_override is not None:
            rate = stage.annual_discount_rate_override
            findings.demand_not_negative(rate, FILE, f"stage {stage.id}", "annual_discount_rate_override")


def risk_measures(case: Case, findings: Findings) -> None:
    """CVaR: alpha above 0 and at most 1, lambda from 0 to 1."""
    for stage in case.horizon.stages:
        if stage.risk is None:
            continue
        if not 0 < stage.risk.alpha <= 1:
            message = f"is {stage.risk.alpha:g}"
            findings.error(FILE, f"stage {stage.id}", "risk_measure.cvar.alpha", message, "above 0 and at most 1")
        if not 0 <= stage.risk.lambda_ <= 1:
            message = f"is {stage.risk.lambda_:g}"
            findings.error(FILE, f"stage {stage.id}", "risk_measure.cvar.lambda", message, "between 0 and 1")


def sizes_of_sobol_sets(case: Case, findings: Findings) -> None:
    """Warn of Sobol sets whose size is not a power of 2."""
    for stage in case.horizon.stages:
        count = stage.num_openings or 0
        if stage.sampling_method == "qmc_sobol" and count & (count - 1):
            message = f"is {count}: Sobol points are balanced only when their number is a power of 2"
            findings.warn(FILE, f"stage {stage.id}", "num_openings", message)


HORIZON_RULES: tuple[Rule, ...] = (
    dates_in_order,
    pre_study_stages_before_the_study,
    discount_rates,
    risk_measures,
    sizes_of_sobol_sets,
)


# The boundary policy of a case: its file can be read, and its cuts are for the last day and the plants of the case.


POLICY_FIELD = "policy.boundary.path"


def boundary_policy(case: Case, findings: Findings) -> None:
    """The boundary policy has cuts for the day on which the study ends, with a storage state for each of its plants."""
    configured = case.config.policy.boundary
    if configured is None:
        return
    file = find_policy_file(Path(configured.path))
    try:
        metadata = read_policy(file).metadata
    except PolicyFileError as error:
        findings.error(
            CONFIG_FILE, "", POLICY_FIELD, str(error), "the policy file of another study, its folder, or its output"
        )
        return
    day = case.horizon.stages[-1].end_date
    if metadata.stage_that_ends_on(day) is None:
        message = f"has no cost-to-go on {day}, where this study ends"
        findings.error(
            CONFIG_FILE, "", POLICY_FIELD, message, f"its stages end on {', '.join(metadata.stage_end_dates)}"
        )
    _check_plants(case, metadata, source_of(file), findings)


def _check_plants(case: Case, metadata: PolicyMetadata, source: PolicySource | None, findings: Findings) -> None:
    """Name the reservoirs that the policy does not value; of a plant with one volume nothing depends on it."""
    priced = {owner_of(name) for name in metadata.state_names if kind_of(name) == STORAGE}
    numbers = None if source is None else new_ids(source.hydros, case.system.hydros)
    if numbers is not None:
        priced = {str(new) for old, new in numbers.items() if str(old) in priced}
    for hydro in case.system.hydros:
        if str(hydro.id) not in priced and can_store(hydro):
            message = f"does not price the water of hydro {hydro.id} ({hydro.name})"
            findings.error(CONFIG_FILE, "", POLICY_FIELD, message, "the policy of a study with the same plants")


POLICY_RULES: tuple[Rule, ...] = (boundary_policy,)


# Checks that the stopping rules suit the study.


STOPPING_FIELD = "training.stopping_rules"


def simulation_rule(case: Case, findings: Findings) -> None:
    """The rule `simulation` compares a mean with the lower bound: both must be expectations over the same noise."""
    config = case.config.training
    if not any(isinstance(rule, SimulationBased) for rule in config.stopping_rules):
        return
    averse = [stage.id for stage in case.horizon.stages if stage.risk is not None and not stage.risk.is_expectation]
    if averse:
        where = with_ids("stage", averse)
        message = f"the rule `simulation` compares means, but the risk measure is not the expectation in {where}"
        findings.error(
            CONFIG_FILE,
            "",
            STOPPING_FIELD,
            message,
            "upper_bound or bound_stalling, which are valid for any risk measure",
        )
    source = config.scenario_source
    others = [name for name in ("inflow", "load", "ncs") if source.scheme(name) != "in_sample"]
    if others:
        message = (
            f"the rule `simulation` simulates {' and '.join(others)} of other scenarios than the openings, "
            "to which the lower bound refers: it may stop too early or never"
        )
        findings.warn(CONFIG_FILE, "", STOPPING_FIELD, message, "bound_stalling, or in_sample forward passes")


STOPPING_RULES: tuple[Rule, ...] = (simulation_rule,)

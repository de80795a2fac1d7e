"""The policy graph of stages.json: a chain of stages, a tree, or a graph of nodes whose paths meet again."""

import math
from collections import Counter

from cobre.core.case import Case, Table
from cobre.core.file_names import CONFIG_FILE, STAGES_FILE
from cobre.core.temporal import Node, PolicyGraph
from cobre.io.findings import Findings, IdList, Layer, Subject, about, error_code, several, stages
from cobre.io.validation.rules import SCENARIOS, Rule, rule

PROBABILITY_TOLERANCE = 1e-6
NODES = "policy_graph.nodes"

# Tables of external scenarios by the class of `scenario_source` in config.json.
LIBRARY_TABLES = {
    "inflow": "external_inflow_scenarios",
    "load": "external_load_scenarios",
    "ncs": "external_ncs_scenarios",
}

NOT_THE_NEXT_STAGE = error_code(
    "transition-skips-stages",
    Layer.MEANING,
    "does not lead to the next stage; without nodes the graph is a chain of stages",
    expected=f"{{next}}, or nodes in {NODES}",
)

PROBABILITY = error_code("transition-probability", Layer.MEANING, "is {value:g}", expected="between 0 and 1")

PROBABILITY_SUM = error_code(
    "probabilities-do-not-sum-to-one",
    Layer.MEANING,
    "the probabilities of leaving {kind} {source} sum to {value:g}",
    expected="a sum of 1",
)

NODE_WITHOUT_STAGE = error_code(
    "node-of-unknown-stage", Layer.MEANING, "there is no stage {value}", expected="a stage of the study"
)

UNKNOWN_NODE = error_code(
    "transition-of-unknown-node", Layer.MEANING, "there is no node {value}", expected="ids of nodes"
)

NODES_NOT_NEIGHBOURS = error_code(
    "transition-between-distant-nodes",
    Layer.MEANING,
    "does not lead from a stage to the next",
    expected="nodes of neighbouring stages",
)

RATE_OF_NODES = error_code(
    "rate-between-nodes",
    Layer.MEANING,
    "a transition between nodes has no rate of its own",
    expected="that of the stage",
)

TRANSITION_TWICE = error_code("transition-twice", Layer.MEANING, "appears {value} times", expected="once")
ROOTS = error_code("not-one-root", Layer.MEANING, "stage {stage} has {value} nodes ({nodes})", expected="one root node")

UNREACHED_NODES = error_code(
    "nodes-not-reached", Layer.MEANING, "no transition leads there", expected="a transition to each"
)

EARLY_ENDS = error_code(
    "paths-end-early", Layer.MEANING, "paths end before the last stage", expected="a transition from each"
)

SEVERAL_PARENTS = error_code(
    "node-with-several-parents",
    Layer.MEANING,
    "more than one parent of {value}, but selection is enumerated",
    expected="a tree, or sampled selection",
)

SIMULATION_ENUMERATED = error_code(
    "simulation-enumerated-alone",
    Layer.MEANING,
    "is enumerated, but training is sampled: paths of a tree need a policy of the tree",
    expected="training.selection enumerated, too",
)

OPENINGS_OF_A_TREE = error_code(
    "openings-file-with-tree",
    Layer.MEANING,
    "openings from a file cannot be combined with enumerated selection",
    expected="generated",
)

PINNED_NODES = error_code(
    "scenario-of-sampled-node",
    Layer.MEANING,
    "is given for {value}, but selection is sampled",
    expected="enumerated selection, or no scenario_id",
)

NO_EXTERNAL_SCENARIOS = error_code(
    "scenario-without-library",
    Layer.MEANING,
    "is given, but no class has external scenarios",
    remedy="leave it out, or use the scheme external",
)

OPENINGS_OF_A_NODE = error_code(
    "several-openings-in-tree",
    Layer.MEANING,
    "is above 1 in {value}, but selection is enumerated",
    expected="1: a node for each realisation",
)

SCENARIO_MISSING = error_code(
    "scenario-of-node-missing",
    Layer.MEANING,
    "is missing: its stage has external scenarios",
    expected="the id of the scenario at this node",
)

UNKNOWN_SCENARIO = error_code(
    "scenario-of-node-unknown", Layer.MEANING, "is {value}, but stage {stage} has {known}", expected="one of them"
)


@rule(STAGES_FILE)
def transitions_of_stages(case: Case, findings: Findings) -> None:
    """Require transitions from each stage to the next, if the graph has no nodes."""
    graph = case.horizon.policy_graph
    for edge in graph.transitions if not graph.nodes else ():
        if edge.target_id != edge.source_id + 1:
            subject, after = _transition(edge.source_id, edge.target_id), edge.source_id + 1
            findings.add(NOT_THE_NEXT_STAGE, STAGES_FILE, subject, "target_id", value=edge.target_id, next=after)


@rule(STAGES_FILE)
def probabilities(case: Case, findings: Findings) -> None:
    """Require probabilities of the transitions from a stage or node that sum to 1."""
    graph = case.horizon.policy_graph
    kind = "node" if graph.nodes else "stage"
    outgoing: dict[int, float] = {}
    for edge in graph.transitions:
        outgoing[edge.source_id] = outgoing.get(edge.source_id, 0.0) + edge.probability
        if not 0 <= edge.probability <= 1:
            subject = _transition(edge.source_id, edge.target_id)
            findings.add(PROBABILITY, STAGES_FILE, subject, "probability", value=edge.probability)
    for source_id, total in outgoing.items():
        if not math.isclose(total, 1.0, abs_tol=PROBABILITY_TOLERANCE):
            field, facts = "policy_graph.transitions.probability", {"kind": kind, "source": source_id, "value": total}
            findings.add(PROBABILITY_SUM, STAGES_FILE, about(kind, source_id), field, **facts)


@rule(STAGES_FILE)
def nodes_and_edges(case: Case, findings: Findings) -> None:
    """Require nodes of stages of the study, and edges from a stage to the next."""
    graph = case.horizon.policy_graph
    numbers = {stage.id: number for number, stage in enumerate(case.horizon.stages)}
    by_id = {node.id: node for node in graph.nodes}
    for node in graph.nodes:
        if node.stage_id not in numbers:
            findings.add(NODE_WITHOUT_STAGE, STAGES_FILE, about("node", node.id), "stage_id", value=node.stage_id)
    for edge in graph.transitions if graph.nodes else ():
        subject = _transition(edge.source_id, edge.target_id)
        unknown = [end for end in (edge.source_id, edge.target_id) if end not in by_id]
        if unknown:
            findings.add(UNKNOWN_NODE, STAGES_FILE, subject, value=IdList(unknown))
            continue
        before, after = (numbers.get(by_id[end].stage_id, -1) for end in (edge.source_id, edge.target_id))
        if after != before + 1:
            findings.add(NODES_NOT_NEIGHBOURS, STAGES_FILE, subject)
        if edge.annual_discount_rate_override is not None:
            findings.add(RATE_OF_NODES, STAGES_FILE, subject, "annual_discount_rate_override")
    for pair, count in Counter((edge.source_id, edge.target_id) for edge in graph.transitions).items():
        if count > 1:
            findings.add(TRANSITION_TWICE, STAGES_FILE, _transition(*pair), value=count)


def _transition(source_id: int, target_id: int) -> Subject:
    return about("transition", f"{source_id} -> {target_id}")


@rule(STAGES_FILE)
def paths_from_root_to_leaves(case: Case, findings: Findings) -> None:
    """Require one root, a predecessor of every other node, and paths that end at the last stage."""
    graph = case.horizon.policy_graph
    if not graph.nodes:
        return
    first, last = case.horizon.stages[0].id, case.horizon.stages[-1].id
    roots = [node.id for node in graph.nodes if node.stage_id == first]
    if len(roots) != 1:
        findings.add(ROOTS, STAGES_FILE, (), NODES, stage=first, value=len(roots), nodes=IdList(roots))
    reached = {edge.target_id for edge in graph.transitions}
    left = {edge.source_id for edge in graph.transitions}
    orphans = [node.id for node in graph.nodes if node.stage_id != first and node.id not in reached]
    ends = [node.id for node in graph.nodes if node.stage_id != last and node.id not in left]
    for code, nodes in ((UNREACHED_NODES, orphans), (EARLY_ENDS, ends)):
        if nodes:
            subject = several("node", nodes)
            findings.add(code, STAGES_FILE, subject, NODES, value=IdList(nodes))


@rule(STAGES_FILE, CONFIG_FILE, *(SCENARIOS[name] for name in LIBRARY_TABLES.values()))
def enumerated_trees(case: Case, findings: Findings) -> None:
    """Require a tree whose nodes have one parent and one realisation each, if selection is enumerated."""
    config, graph = case.config, case.horizon.policy_graph
    if not (config.training.is_enumerated or config.simulation.is_enumerated):
        pinned = [node.id for node in graph.nodes if node.scenario_id is not None]
        if pinned:
            findings.add(PINNED_NODES, STAGES_FILE, (), f"{NODES}.scenario_id", value=IdList(pinned, "node"))
        return
    predecessors = Counter(edge.target_id for edge in graph.transitions) if graph.nodes else Counter()
    joins = [node for node, count in predecessors.items() if count > 1]
    if joins:
        findings.add(SEVERAL_PARENTS, STAGES_FILE, (), NODES, value=IdList(joins, "node"))
    if config.simulation.enabled and config.simulation.is_enumerated and not config.training.is_enumerated:
        findings.add(SIMULATION_ENUMERATED, CONFIG_FILE, (), "simulation.selection")
    if config.training.scenario_source.has_openings_file:
        findings.add(OPENINGS_OF_A_TREE, CONFIG_FILE, (), "training.scenario_source.openings")
    _check_realisations(case, graph, findings)


def _check_realisations(case: Case, graph: PolicyGraph, findings: Findings) -> None:
    source = case.config.training.scenario_source
    external = [table for scheme, table in LIBRARY_TABLES.items() if source.scheme(scheme) == "external"]
    for node in graph.nodes:
        if external:
            _check_pointer(node, [getattr(case.scenarios, table) for table in external], findings)
        elif node.scenario_id is not None:
            findings.add(
                NO_EXTERNAL_SCENARIOS, STAGES_FILE, about("node", node.id), "scenario_id", value=node.scenario_id
            )
    stages_with_openings = [stage.id for stage in case.horizon.stages if (stage.num_openings or 1) > 1]
    if stages_with_openings and not (external and graph.nodes):
        findings.add(OPENINGS_OF_A_NODE, STAGES_FILE, (), "stages.num_openings", value=stages(stages_with_openings))


def _check_pointer(node: Node, tables: list[Table | None], findings: Findings) -> None:
    subject = about("node", node.id)
    if node.scenario_id is None:
        findings.add(SCENARIO_MISSING, STAGES_FILE, subject, "scenario_id")
        return
    for table in tables:
        scenario_ids = (
            set() if table is None else set(table["scenario_id"][table["stage_id"] == node.stage_id].tolist())
        )
        if node.scenario_id not in scenario_ids:
            facts = {"value": node.scenario_id, "stage": node.stage_id, "known": IdList(scenario_ids, "scenario")}
            findings.add(UNKNOWN_SCENARIO, STAGES_FILE, subject, "scenario_id", **facts)


RULES: tuple[Rule, ...] = (
    transitions_of_stages,
    probabilities,
    nodes_and_edges,
    paths_from_root_to_leaves,
    enumerated_trees,
)

"""config.json compared with the rest of the case: stopping rules, the boundary policy, sources of scenarios."""

from pathlib import Path

from cobre.core.arrays import distinct_values
from cobre.core.case import Case
from cobre.core.config import NOISE_CLASSES, ScenarioSource
from cobre.core.file_names import CONFIG_FILE, HYDROS_FILE, STAGES_FILE
from cobre.core.state_names import STORAGE, kind_of, owner_of
from cobre.core.stopping import Gap, SimulationBased
from cobre.io.findings import Findings, IdList, Layer, about, error_code, stages, warning_code
from cobre.io.policies.policy_file import PolicyFileError, PolicyMetadata, find_policy_file, read_policy
from cobre.io.policies.policy_source import PolicySource, can_store, new_ids, source_of
from cobre.io.validation.rules import SCENARIOS, Rule, rule

STOPPING_FIELD = "training.stopping_rules"
POLICY_FIELD = "policy.boundary.path"
NEEDS_SEED = ("out_of_sample", "external")
HISTORY = SCENARIOS["inflow_history"]
_PATHS_OF_GAP = "training.selection.risk_weighted_share 1, another rule, or selection enumerated"

GAP_NEEDS_RISK_WEIGHTS = error_code(
    "gap-without-risk-weighted-paths",
    Layer.MEANING,
    "the rule `gap` needs paths drawn by the weights of the risk measure",
    expected=_PATHS_OF_GAP,
)

GAP_NEEDS_OPENINGS = error_code(
    "gap-with-other-scenarios",
    Layer.MEANING,
    "the rule `gap` needs paths drawn from the openings, but scenario_source names another scheme",
    expected=_PATHS_OF_GAP,
)

GAP_WITHOUT_TOLERANCE = error_code(
    "gap-without-tolerance",
    Layer.MEANING,
    "the rule `gap` has no tolerance",
    expected="tolerance in $, or relative_tolerance in %",
)

MEANS_WITH_RISK = error_code(
    "simulation-rule-with-risk",
    Layer.MEANING,
    "the rule `simulation` compares means, but the risk measure is not the expectation in {value}",
    expected="upper_bound or bound_stalling, which are valid for any risk measure",
)

MEANS_OF_OTHER_SCENARIOS = warning_code(
    "simulation-rule-with-other-scenarios",
    Layer.MEANING,
    "the rule `simulation` simulates {value} of other scenarios than the openings, to which the lower bound refers: "
    "it may stop too early or never",
    expected="bound_stalling, or in_sample forward passes",
)

UNREADABLE_BOUNDARY = error_code(
    "boundary-policy-unreadable",
    Layer.MEANING,
    "{value}",
    expected="the policy file of another study, its folder, or its output",
)

BOUNDARY_OF_OTHER_DAY = error_code(
    "boundary-policy-of-other-dates",
    Layer.MEANING,
    "has no cost-to-go on {value}, where this study ends",
    remedy="its stages end on {ends}",
)

PLANT_WITHOUT_PRICE = error_code(
    "boundary-policy-without-plant",
    Layer.MEANING,
    "does not price the water of hydro {value} ({name})",
    expected="the policy of a study with the same plants",
)

NO_SEED = error_code(
    "seed-missing",
    Layer.MEANING,
    "is missing, but the scheme of {classes} draws scenarios of its own",
    expected="a whole number",
)

NO_HISTORY = error_code(
    "history-missing", Layer.MEANING, "is historical, but there is no history", remedy=f"add {HISTORY}"
)

NO_RESIDUALS = error_code(
    "history-of-residuals-missing",
    Layer.MEANING,
    "is historical_residuals in {value}, but there is no history",
    remedy=f"add {HISTORY}",
)

UNKNOWN_YEARS = error_code(
    "years-not-in-history",
    Layer.MEANING,
    "the history has no year {value}",
    expected="years from {first} to {last}",
)

YEARS_WITHOUT_EFFECT = warning_code(
    "historical-years-without-effect",
    Layer.MEANING,
    "has no effect: the scheme of inflow is not historical",
)

SELECTIVE_SAMPLING = error_code(
    "sampling-method-not-supported",
    Layer.MEANING,
    "openings cannot be drawn by the method `{value}`",
    expected="saa, for example",
)


# Stopping rules that suit the study.


@rule(CONFIG_FILE, STAGES_FILE)
def gap_rules(case: Case, findings: Findings) -> None:
    """Require paths that tell what the policy costs, and a tolerance, for the rule `gap`."""
    training = case.config.training
    rules = [each for each in training.stopping_rules if isinstance(each, Gap)]
    if rules and not training.is_enumerated and not training.risk_weighted_share:
        if case.is_risk_averse:
            findings.add(GAP_NEEDS_RISK_WEIGHTS, CONFIG_FILE, (), STOPPING_FIELD)
        elif not training.scenario_source.is_in_sample:
            findings.add(GAP_NEEDS_OPENINGS, CONFIG_FILE, (), STOPPING_FIELD)
    if any(each.tolerance is None and each.relative_tolerance is None for each in rules):
        findings.add(GAP_WITHOUT_TOLERANCE, CONFIG_FILE, (), STOPPING_FIELD)


@rule(CONFIG_FILE, STAGES_FILE)
def simulation_rule(case: Case, findings: Findings) -> None:
    """Require that the mean and the lower bound of the rule `simulation` are expectations over the same noise."""
    config = case.config.training
    if not any(isinstance(each, SimulationBased) for each in config.stopping_rules):
        return
    averse = [stage.id for stage in case.horizon.stages if stage.risk is not None and not stage.risk.is_expectation]
    if averse:
        findings.add(MEANS_WITH_RISK, CONFIG_FILE, (), STOPPING_FIELD, value=stages(averse))
    others = [name for name in NOISE_CLASSES if config.scenario_source.scheme(name) != "in_sample"]
    if others:
        findings.add(MEANS_OF_OTHER_SCENARIOS, CONFIG_FILE, (), STOPPING_FIELD, value=" and ".join(others))


# The boundary policy: its file can be read, and its cuts are for the last day and the plants of the case.


@rule(CONFIG_FILE, STAGES_FILE, HYDROS_FILE)
def boundary_policy(case: Case, findings: Findings) -> None:
    """Require cuts for the day on which the study ends, with a storage state for each of its plants."""
    configured = case.config.policy.boundary
    if configured is None:
        return
    file = find_policy_file(Path(configured.path))
    try:
        metadata = read_policy(file).metadata
    except PolicyFileError as error:
        findings.add(UNREADABLE_BOUNDARY, CONFIG_FILE, (), POLICY_FIELD, value=str(error))
        return
    day = case.horizon.stages[-1].end_date
    if metadata.stage_that_ends_on(day) is None:
        ends = ", ".join(metadata.stage_end_dates)
        findings.add(BOUNDARY_OF_OTHER_DAY, CONFIG_FILE, (), POLICY_FIELD, value=day, ends=ends)
    _check_plants(case, metadata, source_of(file), findings)


def _check_plants(case: Case, metadata: PolicyMetadata, source: PolicySource | None, findings: Findings) -> None:
    """Name the reservoirs that the policy does not value; of a plant with one volume nothing depends on it."""
    priced = {owner_of(name) for name in metadata.state_names if kind_of(name) == STORAGE}
    numbers = None if source is None else new_ids(source.hydros, case.system.hydros)
    if numbers is not None:
        priced = {str(new) for old, new in numbers.items() if str(old) in priced}
    for hydro in case.system.hydros:
        if str(hydro.id) not in priced and can_store(hydro):
            findings.add(PLANT_WITHOUT_PRICE, CONFIG_FILE, (), POLICY_FIELD, value=hydro.id, name=hydro.name)


# Sources of scenarios: seeds, years and histories that the schemes need.


def scenario_sources(case: Case) -> dict[str, ScenarioSource]:
    """Return the scenario sources in use, by their section of config.json."""
    sources = {"training.scenario_source": case.config.training.scenario_source}
    if case.config.simulation.enabled and case.config.simulation.scenario_source is not None:
        sources["simulation.scenario_source"] = case.config.simulation.scenario_source
    return sources


@rule(CONFIG_FILE)
def seeds(case: Case, findings: Findings) -> None:
    """Require a seed for the schemes out_of_sample and external."""
    for section, source in scenario_sources(case).items():
        random_classes = [name for name in NOISE_CLASSES if source.scheme(name) in NEEDS_SEED]
        if random_classes and source.seed is None:
            findings.add(NO_SEED, CONFIG_FILE, (), f"{section}.seed", classes=", ".join(random_classes))


@rule(CONFIG_FILE, HISTORY)
def histories(case: Case, findings: Findings) -> None:
    """Require a history with the chosen years for the historical scheme."""
    years = _years_of_history(case)
    for section, source in scenario_sources(case).items():
        if source.inflow.scheme == "historical" and not years:
            findings.add(NO_HISTORY, CONFIG_FILE, (), f"{section}.inflow.scheme")
        elif source.inflow.scheme == "historical":
            missing = set(source.years or ()) - years
            if missing:
                facts = {"value": IdList(missing), "first": min(years), "last": max(years)}
                findings.add(UNKNOWN_YEARS, CONFIG_FILE, (), f"{section}.historical_years", **facts)
        elif source.historical_years is not None:
            findings.add(YEARS_WITHOUT_EFFECT, CONFIG_FILE, (), f"{section}.historical_years")


def _years_of_history(case: Case) -> set[int]:
    table = case.scenarios.inflow_history
    if table is None:
        return set()
    return {int(year) + 1970 for year in distinct_values(table["start_date"].astype("datetime64[Y]").astype(int))}


@rule(STAGES_FILE, HISTORY)
def historical_residuals(case: Case, findings: Findings) -> None:
    """Require a history of inflows for openings from historical residuals."""
    asking = [stage.id for stage in case.horizon.stages if stage.sampling_method == "historical_residuals"]
    if asking and not _years_of_history(case):
        findings.add(NO_RESIDUALS, STAGES_FILE, (), "sampling_method", value=stages(asking))


@rule(CONFIG_FILE, STAGES_FILE)
def sampling_methods(case: Case, findings: Findings) -> None:
    """Refuse methods of drawing openings that are not supported."""
    if case.config.training.scenario_source.has_openings_file:
        return
    for stage in case.horizon.stages:
        if stage.sampling_method == "selective":
            subject = about("stage", stage.id)
            findings.add(SELECTIVE_SAMPLING, STAGES_FILE, subject, "sampling_method", value=stage.sampling_method)


RULES: tuple[Rule, ...] = (
    sampling_methods,
    gap_rules,
    seeds,
    histories,
    historical_residuals,
    simulation_rule,
    boundary_policy,
)

"""Check noise: correlations, the sampling of scenarios, and the sizes of scenario files."""

from collections.abc import Callable, Sequence

import numpy as np

from cobre.core.case import Case, CorrelationGroup, Table
from cobre.core.config import ScenarioSource
from cobre.core.temporal import Stage
from cobre.io.file_names import CONFIG_FILE
from cobre.io.input_files.correlation_file import FILE
from cobre.io.input_files.stages_file import FILE as STAGES_FILE
from cobre.io.input_files.table_formats import SCENARIO_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, listed, with_ids
from cobre.records import dataclass

# Correlation: matrices that are correlation matrices.


SYMMETRY_TOLERANCE = 1e-10


def matrices(case: Case, findings: Findings) -> None:
    """Matrices are square and symmetric, with ones on the diagonal and entries from -1 to 1."""
    correlation = case.scenarios.correlation
    if correlation is None:
        return
    for profile, groups in correlation.profiles.items():
        for group in groups:
            found = _wrong(group)
            if found:
                findings.error(FILE, f"profile {profile}, group {group.name}", "matrix", *found)


def _wrong(group: CorrelationGroup) -> tuple[str, str] | None:
    matrix, size = group.matrix, len(group.entities)
    if matrix.shape != (size, size):
        return f"has the shape {matrix.shape}, for {size} entities", f"{size} rows of {size} numbers"
    asymmetry = np.abs(matrix - matrix.T)
    if asymmetry.size and asymmetry.max() > SYMMETRY_TOLERANCE:
        row, column = np.unravel_index(int(asymmetry.argmax()), matrix.shape)
        return f"is not symmetric at row {row}, column {column}", "the same number on both sides of the diagonal"
    if not np.allclose(np.diag(matrix), 1.0, rtol=0.0, atol=SYMMETRY_TOLERANCE):
        return "has diagonal entries other than 1", "1 on the diagonal"
    if np.abs(matrix).max(initial=0.0) > 1.0 + SYMMETRY_TOLERANCE:
        return f"has an entry of {matrix.flat[int(np.abs(matrix).argmax())]:g}", "entries between -1 and 1"
    return None


def one_class_in_a_group(case: Case, findings: Findings) -> None:
    """Inflows, loads and sources are not correlated with one another."""
    correlation = case.scenarios.correlation
    for profile, groups in correlation.profiles.items() if correlation else ():
        for group in groups:
            classes = sorted({kind for kind, _ in group.entities})
            if len(classes) > 1:
                message = f"has entities of the classes {', '.join(classes)}"
                entity = f"profile {profile}, group {group.name}"
                findings.error(FILE, entity, "entities", message, "one class in a group")


def one_group_for_an_entity(case: Case, findings: Findings) -> None:
    """An entity appears at most once in a profile."""
    correlation = case.scenarios.correlation
    for profile, groups in correlation.profiles.items() if correlation else ():
        seen: set[tuple[str, int]] = set()
        for group in groups:
            for entity in group.entities:
                if entity in seen:
                    message = f"{entity[0]} {entity[1]} appears more than once in the profile"
                    findings.error(FILE, f"profile {profile}, group {group.name}", "entities", message, "once")
                seen.add(entity)


def a_profile_for_each_stage(case: Case, findings: Findings) -> None:
    """Stages that the schedule leaves out use the profile `default`, or the only one there is."""
    correlation = case.scenarios.correlation
    if correlation is None:
        return
    if not correlation.profiles:
        findings.error(FILE, "", "profiles", "there is none", "at least one profile, called default")
    elif "default" not in correlation.profiles:
        left_out = [stage.id for stage in case.horizon.stages if stage.id not in correlation.schedule]
        if left_out and len(correlation.profiles) > 1:
            message = f"stage {left_out[0]} has none, and no profile is called default"
            findings.error(FILE, "", "schedule", message, "a profile for each stage, or one called default")


CORRELATION_RULES: tuple[Rule, ...] = (
    matrices,
    one_class_in_a_group,
    one_group_for_an_entity,
    a_profile_for_each_stage,
)


# The layout of the noise vector: hydros, buses with random load, sources with statistics.


def random_buses(case: Case) -> tuple[int, ...]:
    """Ids of buses whose load has a standard deviation in some stage of the study, in canonical order."""
    table = case.scenarios.load_seasonal_stats
    if table is None:
        return ()
    is_studied = np.isin(table["stage_id"], [stage.id for stage in case.horizon.stages])
    random = set(np.unique(table["bus_id"][is_studied & (table["std_mw"] > 0)]).tolist())
    return tuple(bus.id for bus in case.system.buses if bus.id in random)


def random_sources(case: Case) -> tuple[int, ...]:
    """Ids of sources that have statistics, in canonical order."""
    table = case.scenarios.non_controllable_stats
    if table is None:
        return ()
    random = set(np.unique(table["ncs_id"]).tolist())
    return tuple(source.id for source in case.system.non_controllable_sources if source.id in random)


def noise_dimension(case: Case) -> int:
    """Numbers in one opening of one stage."""
    return len(case.system.hydros) + len(random_buses(case)) + len(random_sources(case))


# Openings from a file and external scenarios must be complete.


OPENINGS_FILE = SCENARIO_TABLES["noise_openings"].file


def scenario_sources(case: Case) -> dict[str, ScenarioSource]:
    """The scenario sources in use, by their section of config.json."""
    sources = {"training.scenario_source": case.config.training.scenario_source}
    if case.config.simulation.enabled and case.config.simulation.scenario_source is not None:
        sources["simulation.scenario_source"] = case.config.simulation.scenario_source
    return sources


def openings_from_a_file(case: Case, findings: Findings) -> None:
    """One number for each stage, opening and entry of the noise vector."""
    is_wanted = case.config.training.scenario_source.has_openings_file
    table = case.scenarios.noise_openings
    if not is_wanted:
        if table is not None:
            message = "is not used: training.scenario_source.openings in config.json does not ask for it"
            findings.warn(OPENINGS_FILE, "", "", message, 'set it to {"source": "file"}')
        return
    if table is None:
        message = "openings are read from a file, but there is none"
        findings.error(CONFIG_FILE, "", "training.scenario_source.openings", message, f"add {OPENINGS_FILE}")
        return
    dimension = noise_dimension(case)
    for stage in case.horizon.stages:
        _check_openings_of(stage, table, dimension, findings)


def _check_openings_of(stage: Stage, table: Table, dimension: int, findings: Findings) -> None:
    rows = table["stage_id"] == stage.id
    wanted = {"opening_index": stage.num_openings or 0, "entity_index": dimension}
    found = {column: np.unique(table[column][rows]) for column in wanted}
    is_right = {column: np.array_equal(found[column], np.arange(count)) for column, count in wanted.items()}
    for column, count in wanted.items():
        if not is_right[column]:
            message = f"there are {found[column].size} different ones, and {count} are needed"
            findings.error(OPENINGS_FILE, f"stage {stage.id}", column, message, f"0 to {count - 1}, each of them")
    if all(is_right.values()) and np.count_nonzero(rows) != dimension * wanted["opening_index"]:
        message = f"there are {np.count_nonzero(rows)} rows"
        remedy = f"{dimension * wanted['opening_index']}: each opening with each entry of the noise vector"
        findings.error(OPENINGS_FILE, f"stage {stage.id}", "", message, remedy)


@dataclass(frozen=True, slots=True)
class _Library:
    """External scenarios of one class, and the entities that they must contain."""

    scheme: str
    table: str
    column: str
    members: Callable[[Case], Sequence[int]]


def _hydros(case: Case) -> Sequence[int]:
    return [hydro.id for hydro in case.system.hydros]


LIBRARIES = (
    _Library("inflow", "external_inflow_scenarios", "hydro_id", _hydros),
    _Library("load", "external_load_scenarios", "bus_id", random_buses),
    _Library("ncs", "external_ncs_scenarios", "ncs_id", random_sources),
)


def external_scenarios(case: Case, findings: Findings) -> None:
    """A class with an external scheme has scenarios for every stage, each with every entity."""
    for library in LIBRARIES:
        users = [
            section for section, source in scenario_sources(case).items() if _scheme(source, library) == "external"
        ]
        table = getattr(case.scenarios, library.table)
        file = SCENARIO_TABLES[library.table].file
        if table is None or table["stage_id"].size == 0:
            for section in users:
                message = "the scheme is external, but there are no such scenarios"
                findings.error(CONFIG_FILE, "", f"{section}.{library.scheme}.scheme", message, f"add {file}")
        elif users:
            _check_library(case, library, table, file, findings)
        else:
            message = f"is not used: no scheme of `{library.scheme}` in config.json is external"
            findings.warn(file, "", "", message, 'set the scheme to "external" to use it')


def _scheme(source: ScenarioSource, library: _Library) -> str:
    return source.scheme(library.scheme)


def _check_library(case: Case, library: _Library, table: Table, file: str, findings: Findings) -> None:
    """Stages may differ in the number of their scenarios; the entities of a stage may not."""
    present = _counts(table, library.column)
    entity_ids = sorted({*library.members(case), *(key[0] for key in present)})
    for stage in case.horizon.stages:
        known = np.unique(table["scenario_id"][table["stage_id"] == stage.id])
        if not len(known):
            findings.error(file, f"stage {stage.id}", "scenario_id", "there is no scenario", "at least one")
            continue
        if not np.array_equal(known, np.arange(len(known))):
            message = f"the scenarios are {listed(known.tolist())}"
            findings.error(file, f"stage {stage.id}", "scenario_id", message, "0, 1, 2, ... without a gap")
            continue
        for entity_id in entity_ids:
            count = present.get((entity_id, stage.id), 0)
            if count != len(known):
                entity = f"{library.column.removesuffix('_id')} {entity_id}, stage {stage.id}"
                message = f"there are {count} of {len(known)} scenarios"
                findings.error(file, entity, "scenario_id", message, "the same scenarios for all entities")


def _counts(table: Table, column: str) -> dict[tuple[int, int], int]:
    """The number of rows by entity and stage; both are packed into one integer, because libraries are large."""
    codes = (table[column].astype(np.int64) << 32) + table["stage_id"]
    found, counts = np.unique(codes, return_counts=True)
    stages = ((found + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
    keys = zip(((found - stages) >> 32).tolist(), stages.tolist(), strict=True)
    return dict(zip(keys, counts.tolist(), strict=True))


DIMENSION_RULES: tuple[Rule, ...] = (openings_from_a_file, external_scenarios)


# Sources of scenarios: seeds, years and histories that the schemes need.


NEEDS_SEED = ("out_of_sample", "external")


def seeds(case: Case, findings: Findings) -> None:
    """The schemes out_of_sample and external need a seed."""
    for section, source in scenario_sources(case).items():
        drawn = [name for name in ("inflow", "load", "ncs") if source.scheme(name) in NEEDS_SEED]
        if drawn and source.seed is None:
            message = f"is missing, but the scheme of {', '.join(drawn)} draws scenarios of its own"
            findings.error(CONFIG_FILE, "", f"{section}.seed", message, "a whole number")


def histories(case: Case, findings: Findings) -> None:
    """The historical scheme needs inflow_history.parquet with the chosen years."""
    years = _years_of_history(case)
    for section, source in scenario_sources(case).items():
        if source.inflow.scheme == "historical" and not years:
            message = "is historical, but there is no history"
            findings.error(CONFIG_FILE, "", f"{section}.inflow.scheme", message, "add scenarios/inflow_history.parquet")
        elif source.inflow.scheme == "historical":
            _check_years(section, source, years, findings)
        elif source.historical_years is not None:
            message = "has no effect: the scheme of inflow is not historical"
            findings.warn(CONFIG_FILE, "", f"{section}.historical_years", message)


def _years_of_history(case: Case) -> set[int]:
    table = case.scenarios.inflow_history
    if table is None:
        return set()
    return {int(year) + 1970 for year in np.unique(table["start_date"].astype("datetime64[Y]").astype(int))}


def _check_years(section: str, source: ScenarioSource, years: set[int], findings: Findings) -> None:
    missing = set(source.years or ()) - years
    if missing:
        message = f"the history has no year {listed(missing)}"
        findings.error(
            CONFIG_FILE, "", f"{section}.historical_years", message, f"years from {min(years)} to {max(years)}"
        )


def historical_residuals(case: Case, findings: Findings) -> None:
    """Openings from historical residuals need a history of inflows."""
    asking = [stage.id for stage in case.horizon.stages if stage.sampling_method == "historical_residuals"]
    if asking and not _years_of_history(case):
        message = f"is historical_residuals in {with_ids('stage', asking)}, but there is no history"
        findings.error(STAGES_FILE, "", "sampling_method", message, "add scenarios/inflow_history.parquet")


SAMPLING_RULES: tuple[Rule, ...] = (seeds, histories, historical_residuals)

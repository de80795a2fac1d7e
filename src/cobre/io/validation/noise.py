"""Noise: correlation.json, openings from a file, and external scenarios must be complete."""

from collections.abc import Callable, Sequence

import numpy as np

from cobre.core.arrays import distinct_values
from cobre.core.case import Case, CorrelationGroup, Table
from cobre.core.file_names import BUSES_FILE, CONFIG_FILE, CORRELATION_FILE, HYDROS_FILE, SOURCES_FILE, STAGES_FILE
from cobre.core.temporal import Stage
from cobre.io.findings import Code, Findings, IdList, Layer, about, error_code, warning_code
from cobre.io.validation.policy_graph import LIBRARY_TABLES
from cobre.io.validation.rules import SCENARIOS, Rule, rule
from cobre.io.validation.settings import scenario_sources
from cobre.records import dataclass

SYMMETRY_TOLERANCE = 1e-10
OPENINGS = SCENARIOS["noise_openings"]

# Correlation matrices.

MATRIX_SHAPE = error_code(
    "correlation-shape",
    Layer.MEANING,
    "has the shape {value}, for {size} entities",
    expected="{size} rows of {size} numbers",
)

NOT_SYMMETRIC = error_code(
    "correlation-not-symmetric",
    Layer.MEANING,
    "is not symmetric at row {row}, column {column}",
    expected="the same number on both sides of the diagonal",
)

DIAGONAL = error_code(
    "correlation-diagonal", Layer.MEANING, "has diagonal entries other than 1", expected="1 on the diagonal"
)

CORRELATION_ENTRY = error_code(
    "correlation-entry", Layer.MEANING, "has an entry of {value:g}", expected="entries between -1 and 1"
)

MIXED_CLASSES = error_code(
    "correlation-of-classes",
    Layer.MEANING,
    "has entities of the classes {value}",
    expected="one class in a group",
)

CORRELATED_TWICE = error_code(
    "correlated-twice", Layer.MEANING, "{value} appears more than once in the profile", expected="once"
)

NO_PROFILES = error_code(
    "no-correlation-profile",
    Layer.MEANING,
    "there is none",
    expected="at least one profile, called default",
)

STAGE_WITHOUT_PROFILE = error_code(
    "stage-without-profile",
    Layer.MEANING,
    "stage {value} has none, and no profile is called default",
    expected="a profile for each stage, or one called default",
)


@rule(CORRELATION_FILE)
def matrices(case: Case, findings: Findings) -> None:
    """Require square, symmetric matrices with ones on the diagonal and entries from -1 to 1."""
    correlation = case.scenarios.correlation
    for profile, groups in correlation.profiles.items() if correlation else ():
        for group in groups:
            fault = _fault(group)
            if fault is not None:
                code, facts = fault
                subject = about("profile", profile, "group", group.name)
                findings.add(code, CORRELATION_FILE, subject, "matrix", **facts)


def _fault(group: CorrelationGroup) -> tuple[Code, dict[str, object]] | None:
    matrix, size = group.matrix, len(group.entities)
    if matrix.shape != (size, size):
        return MATRIX_SHAPE, {"value": matrix.shape, "size": size}
    asymmetry = np.abs(matrix - matrix.T)
    if asymmetry.size and asymmetry.max() > SYMMETRY_TOLERANCE:
        row, column = np.unravel_index(int(asymmetry.argmax()), matrix.shape)
        return NOT_SYMMETRIC, {"row": int(row), "column": int(column), "value": float(matrix[row, column])}
    if not np.allclose(np.diag(matrix), 1.0, rtol=0.0, atol=SYMMETRY_TOLERANCE):
        return DIAGONAL, {}
    if np.abs(matrix).max(initial=0.0) > 1.0 + SYMMETRY_TOLERANCE:
        return CORRELATION_ENTRY, {"value": float(matrix.flat[int(np.abs(matrix).argmax())])}
    return None


@rule(CORRELATION_FILE)
def one_class_in_a_group(case: Case, findings: Findings) -> None:
    """Refuse groups of several classes: inflows, loads and sources are not correlated with one another."""
    correlation = case.scenarios.correlation
    for profile, groups in correlation.profiles.items() if correlation else ():
        for group in groups:
            classes = sorted({kind for kind, _ in group.entities})
            if len(classes) > 1:
                subject = about("profile", profile, "group", group.name)
                findings.add(MIXED_CLASSES, CORRELATION_FILE, subject, "entities", value=", ".join(classes))


@rule(CORRELATION_FILE)
def one_group_for_an_entity(case: Case, findings: Findings) -> None:
    """Require that an entity appears at most once in a profile."""
    correlation = case.scenarios.correlation
    for profile, groups in correlation.profiles.items() if correlation else ():
        grouped: set[tuple[str, int]] = set()
        for group in groups:
            for entity in group.entities:
                if entity in grouped:
                    subject = about("profile", profile, "group", group.name)
                    findings.add(
                        CORRELATED_TWICE, CORRELATION_FILE, subject, "entities", value=f"{entity[0]} {entity[1]}"
                    )
                grouped.add(entity)


@rule(CORRELATION_FILE, STAGES_FILE)
def a_profile_for_each_stage(case: Case, findings: Findings) -> None:
    """Require a profile for stages that the schedule leaves out: `default`, or the only one there is."""
    correlation = case.scenarios.correlation
    if correlation is None:
        return
    if not correlation.profiles:
        findings.add(NO_PROFILES, CORRELATION_FILE, (), "profiles")
    elif "default" not in correlation.profiles:
        left_out = [stage.id for stage in case.horizon.stages if stage.id not in correlation.schedule]
        if left_out and len(correlation.profiles) > 1:
            findings.add(STAGE_WITHOUT_PROFILE, CORRELATION_FILE, (), "schedule", value=left_out[0])


RULES: tuple[Rule, ...] = (matrices, one_class_in_a_group, one_group_for_an_entity, a_profile_for_each_stage)


# The noise vector: hydros, buses with random load, sources with statistics.


def _hydros(case: Case) -> tuple[int, ...]:
    return tuple(hydro.id for hydro in case.system.hydros)


def _random_buses(case: Case) -> tuple[int, ...]:
    """Return ids of buses whose load has a standard deviation in some stage of the study, in canonical order."""
    table = case.scenarios.load_seasonal_stats
    if table is None:
        return ()
    is_studied = np.isin(table["stage_id"], [stage.id for stage in case.horizon.stages])
    random = set(distinct_values(table["bus_id"][is_studied & (table["std_mw"] > 0)]).tolist())
    return tuple(bus.id for bus in case.system.buses if bus.id in random)


def _random_sources(case: Case) -> tuple[int, ...]:
    """Return ids of sources that have statistics, in canonical order."""
    table = case.scenarios.non_controllable_stats
    if table is None:
        return ()
    random = set(distinct_values(table["ncs_id"]).tolist())
    return tuple(source.id for source in case.system.non_controllable_sources if source.id in random)


NOISE_VECTOR = (
    HYDROS_FILE,
    BUSES_FILE,
    SOURCES_FILE,
    SCENARIOS["load_seasonal_stats"],
    SCENARIOS["non_controllable_stats"],
    STAGES_FILE,
)

# Openings from a file.

OPENINGS_NOT_USED = warning_code(
    "openings-file-not-used",
    Layer.DIMENSIONS,
    "is not used: training.scenario_source.openings in config.json does not ask for it",
    remedy='set it to {{"source": "file"}}',
)

NO_OPENINGS_FILE = error_code(
    "openings-file-missing",
    Layer.DIMENSIONS,
    "openings are read from a file, but there is none",
    remedy=f"add {OPENINGS}",
)

OPENING_INDICES = error_code(
    "opening-indices",
    Layer.DIMENSIONS,
    "there are {value} different ones, and {count} are needed",
    expected="0 to {last}, each of them",
)

OPENING_ROWS = error_code(
    "opening-rows",
    Layer.DIMENSIONS,
    "there are {value} rows",
    expected="{count}: each opening with each entry of the noise vector",
)


@rule(CONFIG_FILE, OPENINGS, *NOISE_VECTOR)
def openings_from_a_file(case: Case, findings: Findings) -> None:
    """Require one number for each stage, opening and entry of the noise vector."""
    is_wanted = case.config.training.scenario_source.has_openings_file
    table = case.scenarios.noise_openings
    if not is_wanted:
        if table is not None:
            findings.add(OPENINGS_NOT_USED, OPENINGS)
        return
    if table is None:
        findings.add(NO_OPENINGS_FILE, CONFIG_FILE, (), "training.scenario_source.openings")
        return
    dimension = sum(len(members(case)) for members in (_hydros, _random_buses, _random_sources))
    for stage in case.horizon.stages:
        _check_openings_of(stage, table, dimension, findings)


def _check_openings_of(stage: Stage, table: Table, dimension: int, findings: Findings) -> None:
    subject, rows = about("stage", stage.id), table["stage_id"] == stage.id
    expected = {"opening_index": stage.num_openings or 0, "entity_index": dimension}
    actual = {column: distinct_values(table[column][rows]) for column in expected}
    wrong = [column for column, count in expected.items() if not np.array_equal(actual[column], np.arange(count))]
    for column in wrong:
        facts = {"value": actual[column].size, "count": expected[column], "last": expected[column] - 1}
        findings.add(OPENING_INDICES, OPENINGS, subject, column, **facts)
    num_rows, num_wanted = int(np.count_nonzero(rows)), dimension * expected["opening_index"]
    if not wrong and num_rows != num_wanted:
        findings.add(OPENING_ROWS, OPENINGS, subject, value=num_rows, count=num_wanted)


# External scenarios.

NO_LIBRARY = error_code(
    "external-scenarios-missing",
    Layer.DIMENSIONS,
    "the scheme is external, but there are no such scenarios",
    remedy="add {needed}",
)

LIBRARY_NOT_USED = warning_code(
    "external-scenarios-not-used",
    Layer.DIMENSIONS,
    "is not used: no scheme of `{scheme}` in config.json is external",
    remedy='set the scheme to "external" to use it',
)

NO_SCENARIO = error_code("stage-without-scenarios", Layer.DIMENSIONS, "there is no scenario", expected="at least one")

SCENARIO_IDS = error_code(
    "scenario-ids", Layer.DIMENSIONS, "the scenarios are {value}", expected="0, 1, 2, ... without a gap"
)

SCENARIOS_OF_ENTITY = error_code(
    "scenarios-of-entity-missing",
    Layer.DIMENSIONS,
    "there are {value} of {count} scenarios",
    expected="the same scenarios for all entities",
)


@dataclass(frozen=True, slots=True)
class _Library:
    """External scenarios of one class, and the entities that they must contain."""

    scheme: str
    column: str
    members: Callable[[Case], Sequence[int]]


LIBRARIES = (
    _Library("inflow", "hydro_id", _hydros),
    _Library("load", "bus_id", _random_buses),
    _Library("ncs", "ncs_id", _random_sources),
)


@rule(CONFIG_FILE, *NOISE_VECTOR, *(SCENARIOS[name] for name in LIBRARY_TABLES.values()))
def external_scenarios(case: Case, findings: Findings) -> None:
    """Require scenarios of every stage with every entity for a class with an external scheme."""
    sources = scenario_sources(case)
    for library in LIBRARIES:
        users = [section for section, source in sources.items() if source.scheme(library.scheme) == "external"]
        name = LIBRARY_TABLES[library.scheme]
        table, file = getattr(case.scenarios, name), SCENARIOS[name]
        if table is None or table["stage_id"].size == 0:
            for section in users:
                findings.add(NO_LIBRARY, CONFIG_FILE, (), f"{section}.{library.scheme}.scheme", needed=file)
        elif users:
            _check_library(case, library, table, file, findings)
        else:
            findings.add(LIBRARY_NOT_USED, file, scheme=library.scheme)


def _check_library(case: Case, library: _Library, table: Table, file: str, findings: Findings) -> None:
    """Check the scenarios of each stage; stages may differ in their number, the entities of a stage may not."""
    present = _counts(table, library.column)
    entity_ids = sorted({*library.members(case), *(key[0] for key in present)})
    kind, field = library.column.removesuffix("_id"), "scenario_id"
    for stage in case.horizon.stages:
        scenario_ids = distinct_values(table["scenario_id"][table["stage_id"] == stage.id])
        if not len(scenario_ids):
            findings.add(NO_SCENARIO, file, about("stage", stage.id), field)
            continue
        if not np.array_equal(scenario_ids, np.arange(len(scenario_ids))):
            findings.add(SCENARIO_IDS, file, about("stage", stage.id), field, value=IdList(scenario_ids.tolist()))
            continue
        for entity_id in entity_ids:
            count = present.get((entity_id, stage.id), 0)
            if count != len(scenario_ids):
                subject = about(kind, entity_id, "stage", stage.id)
                findings.add(SCENARIOS_OF_ENTITY, file, subject, field, value=count, count=len(scenario_ids))


def _counts(table: Table, column: str) -> dict[tuple[int, int], int]:
    """Return the number of rows by entity and stage; both are packed into one integer, because libraries are large."""
    codes = (table[column].astype(np.int64) << 32) + table["stage_id"]
    distinct_codes, counts = np.unique(codes, return_counts=True)
    stages = ((distinct_codes + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
    keys = zip(((distinct_codes - stages) >> 32).tolist(), stages.tolist(), strict=True)
    return dict(zip(keys, counts.tolist(), strict=True))


DIMENSION_RULES: tuple[Rule, ...] = (openings_from_a_file, external_scenarios)

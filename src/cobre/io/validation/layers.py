"""The layers and their rules, in the order in which they run."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

import numpy as np

from cobre.core.case import ABSENT_ID, Case, InitialConditions, Table
from cobre.core.config import Config, SampledTraining, TrainingConfig
from cobre.core.entities import (
    BusPenalties,
    DeficitSegment,
    HydroPenalties,
    LinePenalties,
    NonControllablePenalties,
    Penalties,
)
from cobre.core.stopping import IterationLimit
from cobre.core.temporal import Horizon, PolicyGraph
from cobre.io.decoding.parquet_tables import TableFormat
from cobre.io.findings.problems import Layer, Problems
from cobre.io.input_files import entities, stages_file
from cobre.io.validation import generic_constraints, references
from cobre.io.validation.layer_findings import NO_ENTITY, Findings, Rule, distinct
from cobre.io.validation.plants import cascade, commitments, limits, prices, production
from cobre.io.validation.references import Documents, check_raw_references, declared_in
from cobre.io.validation.scenarios import inflows, noise
from cobre.io.validation.stages import graph, stated_twice
from cobre.io.validation.tables import case_tables, override_values
from cobre.io.validation.tables.case_tables import (
    CLASS_OF_COLUMN,
    MAY_NAME_OTHER_STAGES,
    override_tables,
    production_tables,
    scenario_tables,
)

LAYERS: tuple[tuple[Layer, tuple[Rule, ...]], ...] = (
    (
        Layer.REFERENCES,
        (
            *references.RULES,
            *case_tables.REFERENCE_RULES,
            *generic_constraints.REFERENCE_RULES,
        ),
    ),
    (
        Layer.DIMENSIONS,
        (
            *stated_twice.DIMENSION_RULES,
            *case_tables.DIMENSION_RULES,
            *cascade.DIMENSION_RULES,
            *noise.DIMENSION_RULES,
            *generic_constraints.DIMENSION_RULES,
        ),
    ),
    (
        Layer.MEANING,
        (
            *graph.HORIZON_RULES,
            *graph.RULES,
            *cascade.RULES,
            *limits.RULES,
            *prices.RULES,
            *override_values.RULES,
            *production.RULES,
            *production.TAILRACE_RULES,
            *noise.CORRELATION_RULES,
            *inflows.RULES,
            *inflows.INITIAL_LAG_RULES,
            *noise.SAMPLING_RULES,
            *graph.STOPPING_RULES,
            *graph.POLICY_RULES,
            *limits.STORAGE_RULES,
            *commitments.RULES,
            *cascade.TRAVEL_TIME_RULES,
            *generic_constraints.MEANING_RULES,
            *stated_twice.RULES,
        ),
    ),
)

ORDER = tuple(Layer)


def check_case(case: Case, problems: Problems) -> None:
    """Add all problems. After an error of an earlier layer, rules are still run as far as the invalid part allows."""
    for layer, rules in LAYERS:
        if _has_errors_before(layer, problems):
            _check_the_rest(case, layer, rules, problems)
        else:
            findings = Findings(layer, problems)
            for rule in rules:
                rule(case, findings)


def _check_the_rest(case: Case, layer: Layer, rules: tuple[Rule, ...], problems: Problems) -> None:
    """Run a rule on an invalid case; an exception, such as for an unknown bus, means that it cannot be checked."""
    unknown = _unknown_entities(problems)
    for rule in rules:
        found = Problems()
        with suppress(LookupError, StopIteration, ValueError):
            rule(case, Findings(layer, found))
            problems.take(problem for problem in found if problem.entity.partition(",")[0] not in unknown)


def _unknown_entities(problems: Problems) -> set[str]:
    """Entities such as `hydro 9` that rows name and no file declares: further problems with them are not reported."""
    return {
        problem.message.removeprefix(NO_ENTITY) for problem in problems.errors if problem.message.startswith(NO_ENTITY)
    }


def _has_errors_before(layer: Layer, problems: Problems) -> bool:
    return any(ORDER.index(problem.layer) < ORDER.index(layer) for problem in problems.errors)


# Checks of a case with files that violate their schema: one wrong type must not hide other errors.
#
# References are looked up in the parsed files. Rules on single files are run on the valid files; findings on invalid
# ones, or on their placeholders, are dropped.


CLASSES = {
    "bus": (entities.BUSES, "buses"),
    "hydro": (entities.HYDROS, "hydros"),
    "thermal": (entities.THERMALS, "thermals"),
    "line": (entities.LINES, "lines"),
    "non-controllable source": (entities.SOURCES, "non_controllable_sources"),
    "pumping station": (entities.STATIONS, "pumping_stations"),
    "contract": (entities.CONTRACTS, "contracts"),
}

STAGE_RULES = tuple(rule for rule in stated_twice.DIMENSION_RULES if rule is not stated_twice.factors_for_each_block)

RULES: tuple[tuple[Layer, tuple[Rule, ...]], ...] = (
    (Layer.DIMENSIONS, STAGE_RULES),
    (Layer.MEANING, graph.HORIZON_RULES),
    (Layer.MEANING, limits.RULES),
    (Layer.MEANING, (prices.prices_above_zero, prices.prices_of_entities_above_zero, prices.tiers_of_deficit)),
    (Layer.MEANING, (noise.matrices, inflows.numbers_in_range, inflows.factors_above_zero)),
    (Layer.MEANING, (override_values.limits_not_negative,)),
)

# Placeholders for files that cannot be decoded; findings on them are dropped.
NO_CONFIG = Config(TrainingConfig(SampledTraining(1), (IterationLimit(1),)))

NO_HORIZON = Horizon(PolicyGraph("finite_horizon", 0.0, (), ()), ())

NO_CONDITIONS = InitialConditions({})

NO_PENALTIES = Penalties(
    BusPenalties((DeficitSegment(depth_mw=None, cost=1.0),), 1.0),
    LinePenalties(1.0),
    HydroPenalties(*[1.0] * 11),
    NonControllablePenalties(1.0),
)


def check_parts(case: Case, documents: Documents, problems: Problems) -> None:
    """Add the problems other than schema violations."""
    broken = {problem.file for problem in problems.errors}
    check_raw_references(documents, problems)
    _check_tables(case, documents, problems)
    for layer, rules in RULES:
        found = Problems()
        for rule in rules:
            rule(case, Findings(layer, found))
        problems.take(problem for problem in found if problem.file not in broken)


def _check_tables(case: Case, documents: Documents, problems: Problems) -> None:
    """Ids of entities and stages in the tables that can be read."""
    findings = Findings(Layer.REFERENCES, problems)
    wrong_ids = {problem.file for problem in problems.errors if problem.field == "id"}
    known = {word: None if array[0] in wrong_ids else declared_in(documents, *array) for word, array in CLASSES.items()}
    stages = declared_in(documents, stages_file.FILE, "stages")
    for form, table in (*scenario_tables(case), *override_tables(case), *production_tables(case)):
        _demand_entities(form, table, known, findings)
        if stages is not None and "stage_id" in table and _base_name(form) not in MAY_NAME_OTHER_STAGES:
            for id_ in (int(value) for value in np.unique(table["stage_id"]) if value != ABSENT_ID):
                findings.demand_known(stages, "stage", id_, form.file, f"rows of stage {id_}", "stage_id")


def _demand_entities(
    form: TableFormat, table: Table, known: Mapping[str, frozenset[int] | None], findings: Findings
) -> None:
    for column, word in _id_columns(form):
        declared = known.get(word)
        for (id_,) in distinct(table, column) if declared is not None else ():
            findings.demand_known(declared or frozenset(), word, id_, form.file, f"rows of {word} {id_}", column)


def _id_columns(form: TableFormat) -> Iterator[tuple[str, str]]:
    """Id columns of a table, and the entity class of each."""
    for column in form.columns:
        if column.name in CLASS_OF_COLUMN:
            yield column.name, CLASS_OF_COLUMN[column.name]


def _base_name(form: TableFormat) -> str:
    return form.file.rsplit("/", 1)[-1].removesuffix(".parquet")

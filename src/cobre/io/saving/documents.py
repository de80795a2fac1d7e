"""The content of the JSON files and Parquet tables of a case in memory, checked before it is written."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import (
    ABSENT_ID,
    Case,
    Correlation,
    CorrelationGroup,
    FormatVersion,
    InitialConditions,
    ScenarioTables,
    System,
    Table,
)
from cobre.core.config import Config
from cobre.core.file_names import (
    CONDITIONS_FILE,
    CONFIG_FILE,
    CONSTRAINTS_FILE,
    CORRELATION_FILE,
    LOAD_FACTORS_FILE,
    PARAMETERS_FILE,
    PENALTIES_FILE,
    POST_STUDY_FILE,
    PRODUCTION_FILE,
    SOURCE_FACTORS_FILE,
    STAGES_FILE,
)
from cobre.core.generic_constraints import Coefficient, GenericConstraint, GenericConstraints, Parameter, Term
from cobre.core.hydro import FphaConfig, HydroProduction, ProductionChoice, ProductionModels, StageRange
from cobre.core.setting_types import is_written
from cobre.core.temporal import Horizon, Stage
from cobre.io.case_folder.case_schemas import SCHEMAS
from cobre.io.decoding.format_version import SCHEMA_ADDRESS
from cobre.io.decoding.parquet_tables import COLUMN_TYPE, MISSING_COLUMN, Column, TableFormat
from cobre.io.findings import Findings, Layer, error_code
from cobre.io.input_files.generic_constraints import BOUNDS, PAYLOADS
from cobre.io.input_files.stages import Factors
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, SCENARIO_TABLES, production_tables
from cobre.limits import MAX_NUMBER

if TYPE_CHECKING:
    import pyarrow as pa


# Dataclasses and dates as values that JSON can hold.


def plain(value: object) -> Any:
    """Return the value for JSON, without fields that are None or need not be written.

    A trailing underscore, of names that are keywords in Python, is dropped.
    """
    if is_dataclass(value) and not isinstance(value, type):
        items = ((item, getattr(value, item.name)) for item in fields(value))
        return {item.name.removesuffix("_"): plain(entry) for item, entry in items if is_written(item, entry)}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(entry) for entry in value]
    return value


def config_document(config: Config) -> dict[str, Any]:
    """Return the content of config.json for a configuration. Raises TypeError for a section that is None."""
    missing = [item.name for item in fields(config) if getattr(config, item.name) is None]
    if missing:
        raise TypeError(f"config.{missing[0]} is None")
    content: dict[str, Any] = plain(config)
    return content


# Generic constraints as JSON documents. Named expressions are not kept after parsing: their terms are written out.

Piece = tuple[bool, list[str]]
"""Whether a product is negative, and its factors, the number first."""


def constraint_documents(given: GenericConstraints, version: FormatVersion) -> Iterator[tuple[str, Any]]:
    """Return the files of generic constraints: names and content."""
    if given.parameters:
        yield PARAMETERS_FILE, {"scalar_parameters": [_parameter(one) for one in given.parameters.values()]}
    if given.constraints:
        yield (
            CONSTRAINTS_FILE,
            {"constraints": [_constraint(constraint, version) for constraint in given.constraints]},
        )


def _parameter(parameter: Parameter) -> dict[str, Any]:
    head = {"id": parameter.id, "name": parameter.name, "kind": parameter.kind}
    return head | {PAYLOADS[parameter.kind]: _payload(parameter)}


def _payload(parameter: Parameter) -> Any:
    if parameter.kind == "computed":
        return {"tag": parameter.computed_tag, "hydro_id": parameter.hydro_id}
    if parameter.kind == "expression":
        return _sum(_constant(part) for part in parameter.expression)
    if parameter.kind == "constant":
        return parameter.values[None]
    if parameter.kind == "per_stage_block":
        return [[stage, block, value] for (stage, block), value in parameter.values.items()]
    return [[key, value] for key, value in parameter.values.items()]


def _constraint(constraint: GenericConstraint, version: FormatVersion) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": constraint.id,
        "name": constraint.name,
        "expression": expression_text(constraint),
        "slack": {"enabled": constraint.slack_enabled},
    }
    if constraint.slack_penalty is not None:
        document["slack"]["penalty"] = constraint.slack_penalty
    if constraint.slack_enabled and (version == "0.19" or constraint.slack_basis != "per_hour"):
        document["slack"]["penalty_basis"] = constraint.slack_basis
    if constraint.description:
        document["description"] = constraint.description
    return document


def expression_text(constraint: GenericConstraint) -> str:
    """Return an expression that parses to this constraint, with the same numbers in the same order."""
    left = _sum([*(_term(term) for term in constraint.terms), *(_constant(one) for one in constraint.constant)])
    if constraint.relation is None:
        return left
    right = _sum([_constant(one) for one in constraint.bound]) or _zero_side(constraint.terms)
    return f"{left} {constraint.relation} {right}"


def _zero_side(terms: Sequence[Term]) -> str:
    """Return a right-hand side without constants: 0 times a variable of the left side."""
    _, factors = _term(terms[0])
    return " * ".join(["0", *factors[1:]])


def _term(term: Term) -> Piece:
    arguments = [str(term.entity_id)]
    if term.block_id is not None:
        arguments.append(str(term.block_id))
    if term.bus_id is not None:
        arguments.append(f"bus={term.bus_id}")
    is_negative, factors = _constant(term.coefficient)
    return is_negative, [*factors, f"{term.variable}({', '.join(arguments)})"]


def _constant(coefficient: Coefficient) -> Piece:
    factors = [repr(abs(coefficient.factor)), *(f"@{name}" for name in coefficient.parameters)]
    for divisor in coefficient.divisors:
        factors[-1] += f" / ({_sum(_constant(part) for part in divisor)})"
    return coefficient.factor < 0, factors


def _sum(pieces: Iterable[Piece]) -> str:
    text = ""
    for is_negative, factors in pieces:
        sign = ("- " if is_negative else "+ ") if text else ("-" if is_negative else "")
        text += (" " if text else "") + sign + " * ".join(factors)
    return text


# Correlations and block factors as JSON documents.


def scenario_documents(scenarios: ScenarioTables) -> Iterator[tuple[str, Any]]:
    """Return the files of scenario data: names and content; empty files are left out."""
    if scenarios.correlation is not None:
        yield CORRELATION_FILE, correlation_document(scenarios.correlation)
    if scenarios.load_factors:
        yield LOAD_FACTORS_FILE, {"load_factors": _factors("bus_id", scenarios.load_factors)}
    if scenarios.non_controllable_factors:
        factors = _factors("ncs_id", scenarios.non_controllable_factors)
        yield SOURCE_FACTORS_FILE, {"non_controllable_factors": factors}


def correlation_document(correlation: Correlation) -> dict[str, Any]:
    """Return the content of scenarios/correlation.json."""
    profiles = {
        name: {"correlation_groups": [_group(group) for group in groups]}
        for name, groups in correlation.profiles.items()
    }
    document: dict[str, Any] = {"method": "spectral", "profiles": profiles}
    if correlation.schedule:
        document["schedule"] = [
            {"stage_id": stage_id, "profile_name": name} for stage_id, name in correlation.schedule.items()
        ]
    return document


def _group(group: CorrelationGroup) -> dict[str, Any]:
    entities = [{"type": kind, "id": id_} for kind, id_ in group.entities]
    return {"name": group.name, "entities": entities, "matrix": group.matrix.tolist()}


def _factors(key: str, factors: Factors) -> list[dict[str, Any]]:
    return [
        {
            key: entity_id,
            "stage_id": stage_id,
            "block_factors": [{"block_id": block, "factor": factor} for block, factor in enumerate(values)],
        }
        for (entity_id, stage_id), values in factors.items()
    ]


# Stages, initial conditions, penalties, entities and production models as JSON documents.

Named = tuple[str, Any]


def study_documents(case: Case) -> Iterator[Named]:
    """Return the files at the top of the case: names and content."""
    yield STAGES_FILE, _horizon(case.horizon)
    yield CONDITIONS_FILE, _initial_conditions(case.initial_conditions)
    yield PENALTIES_FILE, plain(case.penalties)
    if case.post_study.stages or case.post_study.thermal_bounds:
        yield POST_STUDY_FILE, plain(case.post_study)
    yield from _system(case.system)
    if case.production.by_hydro or case.production.plane_reduction is not None:
        yield PRODUCTION_FILE, _production(case.production)


def _horizon(horizon: Horizon) -> dict[str, Any]:
    document = {"policy_graph": plain(horizon.policy_graph), "stages": [_stage(stage) for stage in horizon.stages]}
    if horizon.pre_study_stages:
        document["pre_study_stages"] = plain(horizon.pre_study_stages)
    if horizon.season_definitions is not None:
        document["season_definitions"] = plain(horizon.season_definitions)
    return document


def _stage(stage: Stage) -> dict[str, Any]:
    document: dict[str, Any] = plain(stage)
    document.pop("risk", None)
    if stage.risk is not None:
        document["risk_measure"] = {"cvar": {"alpha": stage.risk.alpha, "lambda": stage.risk.lambda_}}
    return document


def _initial_conditions(conditions: InitialConditions) -> dict[str, Any]:
    document = {
        "storage": _volumes(conditions.storage_hm3),
        "filling_storage": _volumes(conditions.filling_storage_hm3),
        "recent_observations": plain(conditions.recent_observations),
    }
    if conditions.past_releases:
        document["past_defluences"] = plain(conditions.past_releases)
    if conditions.past_commitments:
        document["past_anticipated_commitments"] = plain(conditions.past_commitments)
    return document


def _volumes(by_hydro: Mapping[int, float]) -> list[dict[str, Any]]:
    return [{"hydro_id": hydro_id, "value_hm3": value} for hydro_id, value in by_hydro.items()]


def _system(system: System) -> Iterator[Named]:
    """Return the files of entities; the first four are required, also if empty."""
    required: dict[str, Sequence[object]] = {
        "buses": system.buses,
        "lines": system.lines,
        "hydros": system.hydros,
        "thermals": system.thermals,
    }
    for name, entities in required.items():
        yield f"system/{name}.json", {name: plain(entities)}
    optional: tuple[tuple[str, str, Sequence[object]], ...] = (
        ("non_controllable_sources", "non_controllable_sources", system.non_controllable_sources),
        ("pumping_stations", "pumping_stations", system.pumping_stations),
        ("energy_contracts", "contracts", system.energy_contracts),
    )
    for file, key, entities in optional:
        if entities:
            yield f"system/{file}.json", {key: plain(entities)}


def _production(models: ProductionModels) -> dict[str, Any]:
    document: dict[str, Any] = {"production_models": [_plant(plant) for plant in models.by_hydro.values()]}
    if models.plane_reduction is not None:
        document["fpha_plane_reduction"] = plain(models.plane_reduction)
    return document


def _plant(plant: HydroProduction) -> dict[str, Any]:
    if plant.default is None:
        ranges = [_stage_range(part) for part in plant.stage_ranges]
        return {"hydro_id": plant.hydro_id, "selection_mode": "stage_ranges", "stage_ranges": ranges}
    seasons = [{"season_id": season} | _choice(choice) for season, choice in plant.seasons.items()]
    return {
        "hydro_id": plant.hydro_id,
        "selection_mode": "seasonal",
        "default_model": plant.default.model,
        "seasons": seasons,
    }


def _stage_range(part: StageRange) -> dict[str, Any]:
    stages = {"start_stage_id": part.start_stage_id}
    if part.end_stage_id is not None:
        stages["end_stage_id"] = part.end_stage_id
    return stages | _choice(part.choice)


def _choice(choice: ProductionChoice) -> dict[str, Any]:
    document: dict[str, Any] = plain(choice)
    if choice.fpha_config is not None:
        # Defaults are left out: a reader of the file would report some of them as settings without effect.
        default = plain(FphaConfig(choice.fpha_config.source)) | {"source": None}
        settings = document["fpha_config"].items()
        document["fpha_config"] = {name: value for name, value in settings if value != default.get(name)}
    return document


_SCHEMA_NAMES = {file: name for name, (file, _) in SCHEMAS.items()}


def case_documents(case: Case) -> Iterator[tuple[str, str]]:
    """Return names and texts of all JSON files. NaN and infinities are written as such: readers report them."""
    for name, content in _documents(case):
        head = {} if case.format_version == "0.18" else {"$schema": SCHEMA_ADDRESS.format(name=_SCHEMA_NAMES[name])}
        yield name, json.dumps(head | content, indent=2, default=_python_number) + "\n"


def _documents(case: Case) -> Iterator[tuple[str, Any]]:
    yield CONFIG_FILE, config_document(case.config)
    yield from study_documents(case)
    yield from scenario_documents(case.scenarios)
    yield from constraint_documents(case.generic_constraints, case.format_version)


def _python_number(value: object) -> Any:
    """Return a NumPy scalar as a Python number; raises TypeError for other types."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a case holds no {type(value).__name__} such as {value!r}")


# Checks of tables of a case in memory: complete columns, right types, finite numbers.

KINDS = {"id": "iu", "index": "iu", "number": "f", "date": "M"}
TYPE_NAMES = {"id": "whole numbers", "index": "whole numbers", "number": "floating-point numbers", "date": "dates"}


def case_tables(case: Case) -> Iterator[tuple[TableFormat, Table]]:
    """Return the Parquet tables of a case, by file."""
    owners = (
        (SCENARIO_TABLES, case.scenarios),
        (OVERRIDE_TABLES, case.overrides),
        (production_tables(case.format_version), case.production),
    )
    for formats, owner in owners:
        for name, form in formats.items():
            if (table := getattr(owner, name)) is not None:
                yield form, table
    if case.generic_constraints.bounds is not None:
        yield BOUNDS, case.generic_constraints.bounds


COLUMN_LENGTHS = error_code(
    "column-lengths", Layer.SCHEMA, "has columns of several lengths", expected="one entry for each row"
)

COLUMN_VALUE = error_code("column-value", Layer.SCHEMA, "is {value} in row {row}", expected="{wanted}")


def check_tables(case: Case, findings: Findings) -> None:
    """Add an error for each column that violates the format."""
    for form, table in case_tables(case):
        lengths = {len(table[column.name]) for column in form.columns if column.name in table}
        for column in form.columns:
            _check_column(form, column, table.get(column.name), findings)
        if len(lengths) > 1:
            findings.add(COLUMN_LENGTHS, form.file)


def _check_column(form: TableFormat, column: Column, values: NDArray[Any] | None, findings: Findings) -> None:
    kind = TYPE_NAMES[column.kind]
    if values is None:
        findings.add(MISSING_COLUMN, form.file, (), column.name, type=kind)
    elif values.dtype.kind not in KINDS[column.kind]:
        findings.add(COLUMN_TYPE, form.file, (), column.name, type=kind, value=str(values.dtype))
    elif (odd := _odd_rows(column, values)).size:
        facts = {"value": str(values[odd[0]]), "row": int(odd[0]), "wanted": _right(column)}
        findings.add(COLUMN_VALUE, form.file, (), column.name, **facts)


def _odd_rows(column: Column, values: NDArray[Any]) -> NDArray[np.intp]:
    """Return rows without a required value, or with a number that is not finite or too large."""
    if column.kind == "number":
        is_right = np.abs(values) <= MAX_NUMBER
        return np.flatnonzero(~is_right & ~np.isnan(values)) if column.is_nullable else np.flatnonzero(~is_right)
    if column.kind == "date":
        return np.flatnonzero(np.isnat(values)) if not column.is_nullable else np.zeros(0, np.intp)
    low, high = (0, 2**32) if column.kind == "index" else (-(2**31), 2**31)
    is_odd = (values < low) | (values >= high)
    return np.flatnonzero(is_odd if column.is_nullable else is_odd | (values == ABSENT_ID))


def _right(column: Column) -> str:
    if column.kind == "number":
        return f"a number of at most {MAX_NUMBER:g} in size{', or NaN for none' if column.is_nullable else ''}"
    if column.kind == "date":
        return "a date in every row"
    return "a whole number of at most 32 bits in every row"


# Parquet tables of a case, in the types that the reader expects.


def write_tables(case: Case, folder: Path) -> None:
    """Write the Parquet tables of a case."""
    for table, columns in case_tables(case):
        _write(folder, table, columns)


def _write(folder: Path, table: TableFormat, columns: Table) -> None:
    import pyarrow as pa  # noqa: PLC0415  (a case without tables needs no Arrow)
    from pyarrow import parquet  # noqa: PLC0415

    path = folder / table.file
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {column.name: _stored(column, columns[column.name]) for column in table.columns if column.name in columns}
    parquet.write_table(pa.table(stored), path, compression="zstd")


def _stored(column: Column, values: NDArray[Any]) -> "pa.Array":
    """Return the values as an Arrow array, with null for the marks of `core.case.Table`."""
    import pyarrow as pa  # noqa: PLC0415

    if column.kind == "number":
        numbers = np.asarray(values, np.float64)
        return pa.array(numbers, pa.float64(), mask=np.isnan(numbers))
    if column.kind == "date":
        return pa.array(np.asarray(values, "datetime64[D]"), pa.date32())
    if column.kind == "index":
        return pa.array(np.asarray(values, np.int64), pa.uint32())
    ids = np.asarray(values, np.int32)
    return pa.array(ids, pa.int32(), mask=ids == ABSENT_ID)

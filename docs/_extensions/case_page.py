"""Every file of a case directory, from the records and formats that read them."""

from collections.abc import Iterator
from typing import Any

from docstrings import introduction
from record_tables import Style, is_list, records, table, words

from cobre.core.file_names import ENERGY_PRODUCTIVITY_FILE
from cobre.io.case_folder.case_files import MOVED, REQUIRED_JSON
from cobre.io.decoding.format_version import FEATURES, INTEGRATED_COLUMN
from cobre.io.decoding.parquet_tables import TableFormat
from cobre.io.input_files import correlation, entities, stages
from cobre.io.input_files.constraint_expressions import VARIABLES
from cobre.io.input_files.entities import InitialConditionsFile, PenaltiesFile
from cobre.io.input_files.generic_constraints import BOUNDS
from cobre.io.input_files.production_models import ProductionFile
from cobre.io.input_files.stages import PostStudyStagesFile
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, PRODUCTION_TABLES, SCENARIO_TABLES

INTRODUCTION = """\
# The case directory

A case is a folder of JSON files and Parquet tables, in the format of Cobre 0.18 or that of its successor, 0.19.
`cobre init` creates one of format 0.19 from a template. `cobre validate` says which format a case is of, lists its
errors with file, entity and field, and warns about values that look like mistakes. `cobre migrate` converts a case of
format 0.18 to 0.19.

Names contain the units: `_hm3` (millions of cubic metres), `_m3s`, `_mw`, `_mwh`. Costs are in $. Entities and stages
are identified by their `id`. Dates are written `2026-01-31`; an `end_date` is the first day after the period. Terms are
explained in the [glossary](glossary.md).
"""
JSON_FILES = {
    "stages.json": (stages.StagesFile, "Stages, blocks of hours, discounting, risk."),
    "initial_conditions.json": (InitialConditionsFile, "Storage, inflows and commitments at the start of the study."),
    "post_study_stages.json": (PostStudyStagesFile, "What anticipated thermal plants deliver after the study."),
    "penalties.json": (PenaltiesFile, "Penalties and violation costs for the whole study."),
    "system/buses.json": (entities.BusesFile, "Buses: nodes of the network with a power balance."),
    "system/lines.json": (entities.LinesFile, "Connections between buses."),
    "system/hydros.json": (entities.HydrosFile, "Hydro plants and their reservoirs."),
    "system/thermals.json": (entities.ThermalsFile, "Thermal plants."),
    "system/non_controllable_sources.json": (entities.SourcesFile, "Wind, solar and small plants."),
    "system/pumping_stations.json": (entities.StationsFile, "Stations that pump water from one reservoir to another."),
    "system/energy_contracts.json": (entities.ContractsFile, "Contracts to buy or sell energy."),
    "system/hydro_production_models.json": (ProductionFile, "Production models by plant and stage."),
    "scenarios/load_factors.json": (stages.LoadFactorsFile, "Load of each block relative to the stage."),
    "scenarios/non_controllable_factors.json": (stages.SourceFactorsFile, "The same for such sources."),
    "scenarios/correlation.json": (correlation.CorrelationFile, "Correlation of noise between entities."),
}
TABLES = {
    "scenarios": "Random quantities and their history",
    "constraints": "Limits and costs by stage or block",
    "system": "Production data",
}
GENERIC = """
## Generic constraints

`constraints/generic_constraints.json` has `constraints` and, optionally, named `expressions`. A constraint has `id`,
`name`, `expression`, `slack` (`enabled`, and a `penalty` if it may be violated) and optionally `description`:

```text
{"constraints": [
  {"id": 0, "name": "north", "expression": "line_exchange(3) + @reserve <= 800", "slack": {"enabled": false}}
]}
```

`@reserve` is a named expression, or a parameter of `constraints/generic_parameters.json`. Without a relation, limits
are those of `constraints/generic_constraint_bounds.parquet`. The first argument of a variable is the entity's id, the
second a block's:

"""
FORMATS = """
## Formats

The `$schema` of a file decides, that of config.json first. Without one, a case is of format 0.19 if it has something
that only 0.19 has, and otherwise of format 0.18. What belongs to the other format is an error that says what to do.
Schemas of `cobre.schema.export` have the same list: fields of one format carry `x-format` and a description.

| file | field | only in format | in the other |
|---|---|---|---|
"""
OF_FORMATS = f"""
In format 0.19, `{ENERGY_PRODUCTIVITY_FILE}` must have the column `{INTEGRATED_COLUMN}`, and
`penalty_basis` is required if a slack is enabled. The same fields mean or default to something else:

| | 0.18 | 0.19 |
|---|---|---|
| `modeling.inflow_non_negativity.method`, if absent | `penalty` | `truncation_with_penalty` |
| truncated inflows | become 0, also as lags | stay negative, also as lags; a correction lifts them |
| cut selection `level1` | cuts near the best at some state | one cut for each state; all cuts of the first stage stay |
| `max_active_per_stage` | all cuts of a stage | cuts of this run, in all stages but the first and the last |
| slope of computed planes with spillage | at the point of most power | a mean over points of the grid |
| minimums of a plant out of service | cost nothing | cost as a violation, a constant: `cobre validate` warns |

Two differences from Novomodelo 0.19.1 are known for `max_active_per_stage`: which cuts go first is decided by their
values at visited states, not by solves in which they were binding, and the method `dynamic` with a cap is not refused.
"""
OF_TABLES = """\
Tables are optional. The columns in bold identify a row. Ids, indices and lags are integers, dates are dates, all
other columns are numbers. Where a table has no value, the general value applies."""
STYLE = Style(has_paths=False)


def case_page() -> str:
    """Return the page as Markdown."""
    return "\n".join([INTRODUCTION, *_overview(), *_formats(), *_json(), *_generic(), *_parquet(), *_refused(), ""])


def formats() -> list[TableFormat]:
    """Return all tables, in the order in which they are read."""
    return [*SCENARIO_TABLES.values(), *OVERRIDE_TABLES.values(), BOUNDS, *PRODUCTION_TABLES.values()]


def _overview() -> Iterator[str]:
    yield "## Files\n\n| file | content | |\n|---|---|---|"
    yield "| `config.json` | Settings of training and simulation: [see its page](configuration.md). | required |"
    for name, (_, words_) in JSON_FILES.items():
        yield f"| [`{name}`](#{_anchor(name)}) | {words_} | {'required' if name in REQUIRED_JSON else ''} |"
    yield "| `constraints/generic_*.json` | [Limits](#generic-constraints) on sums of decisions. | |"
    for folder, title in TABLES.items():
        yield f"| [`{folder}/*.parquet`](#{_anchor(title)}) | {title}. | |"


def _formats() -> Iterator[str]:
    yield FORMATS.rstrip()
    for feature in FEATURES:
        values = " or ".join("absent or null" if value is None else f"`{value}`" for value in feature.values)
        name = ", ".join(f"`{field}`" for field in feature.fields) + (f": {values}" if values else "")
        yield f"| `{feature.file}` | {name} | {feature.version} | {feature.remedy} |"
    yield OF_FORMATS


def _json() -> Iterator[str]:
    for name, (file, words_) in JSON_FILES.items():
        yield f"\n## `{name}`\n\n{words_}\n"
        yield from _file(file)


def _file(file: type[Any]) -> Iterator[str]:
    """Yield the top-level fields of a file, then each object with its fields."""
    yield "| field | takes | |\n|---|---|---|"
    known = {name: field for name, field in file.model_fields.items() if field.alias is None}
    for name, field in known.items():
        yield f"| `{name}` | {words(field.annotation)} | {'required' if field.is_required() else ''} |"
    for name, field in known.items():
        for record in records(field.annotation):
            path = f"{name}[]" if is_list(field.annotation) else name
            yield f"\n### `{path}`\n\n{introduction(record)}\n"
            yield from table(path, record, STYLE)


def _generic() -> Iterator[str]:
    yield GENERIC + "| of a | variables |\n|---|---|"
    for entity in dict.fromkeys(kind.entity for kind in VARIABLES.values()):
        names = [f"`{name}`" for name, kind in VARIABLES.items() if kind.entity == entity]
        yield f"| {entity.replace('_', ' ')} | {', '.join(names)} |"


def _parquet() -> Iterator[str]:
    for folder, title in TABLES.items():
        yield f"\n## {title}\n\n{OF_TABLES}\n\n| table | columns | columns that may be left out |\n|---|---|---|"
        for one in formats():
            if one.file.startswith(f"{folder}/"):
                yield f"| `{one.file}` | {_columns(one, is_required=True)} | {_columns(one, is_required=False)} |"


def _columns(one: TableFormat, *, is_required: bool) -> str:
    names = [column.name for column in one.columns if column.is_required == is_required]
    return ", ".join(f"**`{name}`**" if name in one.keys else f"`{name}`" for name in names)


def _refused() -> Iterator[str]:
    yield "\n## Files that are refused\n\n| file | why |\n|---|---|"
    for name, why in MOVED.items():
        yield f"| `{name}` | {why[0].upper()}{why[1:]}. |"


def _anchor(title: str) -> str:
    """Return the anchor that MyST derives from a heading."""
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter in "-_")

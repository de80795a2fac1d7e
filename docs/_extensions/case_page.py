"""Every file of a case directory, from the records and formats that read them."""

from collections.abc import Iterator
from typing import Any

from docstrings import introduction
from record_tables import Style, is_list, records, table, words

from cobre.io import block_factors, correlation_file, entities, stages_file
from cobre.io.case_files import MOVED, REQUIRED_JSON
from cobre.io.constraints.reading import BOUNDS
from cobre.io.constraints.variables import VARIABLES
from cobre.io.initial_conditions import InitialConditionsFile
from cobre.io.parquet_tables import TableFormat
from cobre.io.penalties_file import PenaltiesFile
from cobre.io.post_study_stages import PostStudyStagesFile
from cobre.io.production_models import ProductionFile
from cobre.io.table_formats import OVERRIDE_TABLES, PRODUCTION_TABLES, SCENARIO_TABLES

INTRODUCTION = """\
# The case directory

A case is a folder of JSON files and Parquet tables, in the format of Cobre 0.18. `cobre init` makes one to begin with,
`cobre validate` lists what is wrong with it, with file, entity and field, and warns of what looks like a mistake, and
`cobre migrate` converts a case of version 0.5.

Units are in the names: `_hm3` (millions of cubic metres), `_m3s`, `_mw`, `_mwh`. Costs are $. Entities and stages are
named by their `id`. Dates are written `2026-01-31`; the day of an `end_date` is the first one after. Words are
explained in the [glossary](glossary.md).
"""
JSON_FILES = {
    "stages.json": (stages_file.StagesFile, "Stages, blocks of hours, discounting, risk."),
    "initial_conditions.json": (InitialConditionsFile, "Where the study starts."),
    "post_study_stages.json": (PostStudyStagesFile, "What anticipated thermal plants deliver after the study."),
    "penalties.json": (PenaltiesFile, "Prices of what should not happen, for the whole study."),
    "system/buses.json": (entities.BusesFile, "Where power balances."),
    "system/lines.json": (entities.LinesFile, "Connections between buses."),
    "system/hydros.json": (entities.HydrosFile, "Hydro plants and their reservoirs."),
    "system/thermals.json": (entities.ThermalsFile, "Thermal plants."),
    "system/non_controllable_sources.json": (entities.SourcesFile, "Wind, sun, small plants."),
    "system/pumping_stations.json": (entities.StationsFile, "Water that is lifted."),
    "system/energy_contracts.json": (entities.ContractsFile, "Energy that is bought or sold."),
    "system/hydro_production_models.json": (ProductionFile, "How water becomes power, by plant and stage."),
    "scenarios/load_factors.json": (block_factors.LoadFactorsFile, "How load spreads over the blocks of a stage."),
    "scenarios/non_controllable_factors.json": (block_factors.SourceFactorsFile, "The same for other sources."),
    "scenarios/correlation.json": (correlation_file.CorrelationFile, "Which noise goes with which."),
}
TABLES = {
    "scenarios": "What is random, and what it was in the past",
    "constraints": "Other limits and prices in some stages or blocks",
    "system": "How water becomes power",
}
GENERIC = """
## Limits of your own

`constraints/generic_constraints.json` holds `constraints` and, optionally, named `expressions`. A constraint has `id`,
`name`, `expression`, `slack` (`enabled`, and a `penalty` where it may be broken) and optionally `description`:

```text
{"constraints": [
  {"id": 0, "name": "north", "expression": "line_exchange(3) + @reserve <= 800", "slack": {"enabled": false}}
]}
```

`@reserve` is a named expression, or a parameter of `constraints/generic_parameters.json`. Without a relation the limits
come from `constraints/generic_constraint_bounds.parquet`. The first argument of a variable is the entity's id, the
second a block's:

"""
OF_TABLES = """\
Tables are optional. The columns in bold name a row. Ids, indices and lags are integers, dates are dates, all other
columns are numbers. Where a row has no value, what is said elsewhere holds."""
STYLE = Style(has_paths=False)


def case_page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *_overview(), *_json(), *_generic(), *_parquet(), *_refused(), ""])


def formats() -> list[TableFormat]:
    """All tables, in the order in which they are read."""
    return [*SCENARIO_TABLES.values(), *OVERRIDE_TABLES.values(), BOUNDS, *PRODUCTION_TABLES.values()]


def _overview() -> Iterator[str]:
    yield "## Files\n\n| file | holds | |\n|---|---|---|"
    yield "| `config.json` | What to do: [its own page](configuration.md). | required |"
    for name, (_, words_) in JSON_FILES.items():
        yield f"| [`{name}`](#{_anchor(name)}) | {words_} | {'required' if name in REQUIRED_JSON else ''} |"
    yield "| `constraints/generic_*.json` | [Limits of your own](#limits-of-your-own) on sums of decisions. | |"
    for folder, title in TABLES.items():
        yield f"| [`{folder}/*.parquet`](#{_anchor(title)}) | {title}. | |"


def _json() -> Iterator[str]:
    for name, (file, words_) in JSON_FILES.items():
        yield f"\n## `{name}`\n\n{words_}\n"
        yield from _file(file)


def _file(file: type[Any]) -> Iterator[str]:
    """The names at the top of a file, then each object with its fields."""
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
    """As MyST makes it from a heading."""
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter in "-_")

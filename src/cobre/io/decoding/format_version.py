"""The format of a case, 0.18 or 0.19, recognised by what its files say.

The `$schema` of a file decides, that of config.json first: each program writes an address of its own. A case without
one is of format 0.19 if a file has something that only 0.19 knows, and otherwise of format 0.18. What the format of a
case does not know is refused, wherever it is found; both questions are answered by one list, `MARKS`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cobre.core.case import FormatVersion
from cobre.io.decoding.json_documents import Document, read_document
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import CaseProblem, Layer, Problems
from cobre.io.findings.schema_messages import FileLocation
from cobre.records import dataclass

CONSTRAINTS = "constraints/generic_constraints.json"

PARAMETERS = "constraints/generic_parameters.json"

PRODUCTION = "system/hydro_production_models.json"

HYDROS = "system/hydros.json"

PRODUCTIVITY_TABLE = "system/hydro_energy_productivity.parquet"

INTEGRATED_COLUMN = "integrated_equivalent_productivity_mw_per_m3s"

SCHEMA_ADDRESS = "https://raw.githubusercontent.com/ons-ccee-epe/novomodelo/refs/heads/main/schemas/{name}.schema.json"

# Parts of the addresses that the programs and their bridges write as `$schema`.
_ADDRESSES: Mapping[str, FormatVersion] = {"/novomodelo/": "0.19", "/cobre-rs/cobre/": "0.18"}


_INDEX = re.compile(r"\[\d+\]")

_SEPARATORS = re.compile(r", | or ")


Documents = Mapping[str, Document | None]

Keys = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class FormatSeen:
    """The format of a case, and what says so."""

    version: FormatVersion
    reason: str

    def __str__(self) -> str:
        return f"format {self.version} ({self.reason})"


FORMAT_018 = FormatSeen("0.18", "no file says otherwise")


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that only one of the formats has. Schemas and the reference pages are made from these, too.

    fields: paths of one kind of field, such as `constraints[].slack.penalty_basis`, where `[]` is each of an array.
    remedy: what to do about it in a case of the other format.
    values: the values that only this format has; empty: the field itself. Null stands for a field that is absent, too.
    """

    version: FormatVersion
    file: str
    fields: tuple[str, ...]
    remedy: str
    values: tuple[str | None, ...] = ()

    def find(self, content: Any) -> Iterator[Keys]:
        """Yield the places of the feature in the content of its file."""
        for field in self.fields:
            yield from self._below(content, field.split("."), ())

    def _below(self, node: Any, keys: list[str], path: Keys) -> Iterator[Keys]:
        if not isinstance(node, dict):
            return
        key = keys[0].removesuffix("[]")
        if len(keys) == 1:
            if key in node if not self.values else _is_among(node.get(key), self.values):
                yield (*path, key)
        elif key == keys[0]:
            yield from self._below(node.get(key), keys[1:], (*path, key))
        else:
            elements = node.get(key)
            for index, element in enumerate(elements if isinstance(elements, list) else ()):
                yield from self._below(element, keys[1:], (*path, key, index))


def recognise_format(folder: Path, documents: Documents) -> FormatSeen:
    """Return the format that the files of a case say, with the reason."""
    for name in sorted(documents, key=lambda name: name != CONFIG_FILE):
        version = _addressed(documents[name])
        if version is not None:
            return FormatSeen(version, f"$schema of {name}")
    for mark in MARKS:
        document = documents.get(mark.file)
        path = next(mark.find(document.content), None) if document and mark.version == "0.19" else None
        if path is not None:
            return FormatSeen("0.19", f"{_words(documents[mark.file], path)} in {mark.file}")
    if _has_integrated_column(folder):
        return FormatSeen("0.19", f"{INTEGRATED_COLUMN} in {PRODUCTIVITY_TABLE}")
    return FORMAT_018


def refuse_other_format(seen: FormatSeen, document: Document | None, problems: Problems) -> None:
    """Add an error for documents in a file that only the other format has, with what to do."""
    if document is None:
        return
    for mark in MARKS:
        if mark.version == seen.version or mark.file != document.name:
            continue
        for path in mark.find(document.content):
            location = FileLocation.of(document.content, path)
            message = f"belongs to format {mark.version}, and this case is of {seen}"
            problems.error(Layer.SCHEMA, mark.file, location.entity, location.field, message, mark.remedy)


def fit_messages(seen: FormatSeen, problems: Problems, start: int) -> None:
    """Correct schema errors from number `start` on, which know both formats, for the one that the case is of.

    Values of the other format are no choices, and its fields are not missing.
    """
    others = [mark for mark in MARKS if mark.version != seen.version]

    def fitted(problem: CaseProblem) -> CaseProblem | None:
        for mark in others:
            if problem.file != mark.file or not any(_is_about(problem, field) for field in mark.fields):
                continue
            if mark.values and not problem.message.startswith("belongs to format"):
                return replace(problem, remedy=_without(problem.remedy, mark.values))
            return None if problem.message == "is missing" else problem
        return problem

    problems.revise(fitted, start)


def _is_about(problem: CaseProblem, field: str) -> bool:
    """Whether a schema error is about a field, in itself or as the tag of the object around it."""
    path, _, key = field.rpartition("[].")[2].rpartition(".")
    found = _INDEX.sub("[]", problem.field)
    return found.endswith(f"{path}.{key}" if path else key) or (
        problem.message.startswith(f"`{key}` is") and found.endswith(path)
    )


def _without(remedy: str, values: Collection[str | None]) -> str:
    """Return a list of choices, such as `one of a, b, c` or `a, b or c`, without some of them."""
    head = "one of " if remedy.startswith("one of ") else ""
    choices = [choice for choice in _SEPARATORS.split(remedy.removeprefix("one of ")) if choice not in values]
    if head or len(choices) < 2:
        return head + ", ".join(choices)
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def _addressed(document: Document | None) -> FormatVersion | None:
    content = document.content if document is not None else None
    address = content.get("$schema") if isinstance(content, dict) else None
    if not isinstance(address, str):
        return None
    return next((version for part, version in _ADDRESSES.items() if part in address), None)


def _words(document: Document | None, path: Keys) -> str:
    location = FileLocation.of(document.content if document else None, path)
    return location.field or location.entity


def _has_integrated_column(folder: Path) -> bool:
    path = folder / PRODUCTIVITY_TABLE
    if not path.is_file():
        return False
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    try:
        return INTEGRATED_COLUMN in parquet.read_schema(path).names
    except (pa.ArrowException, OSError, ValueError):
        return False  # reported when the table is read


def _is_among(value: Any, values: tuple[str | None, ...]) -> bool:
    return (value is None or isinstance(value, str)) and value in values


def _of_production(field: str) -> tuple[str, ...]:
    return f"production_models[].seasons[].{field}", f"production_models[].stage_ranges[].{field}"


_SELECTION = "training.cut_selection.selection"

_TAGS = (
    "integrated_equivalent_productivity_mwh_per_hm3",
    "integrated_accumulated_productivity_mwh_per_hm3",
    "max_stored_energy_mwh",
)

_OLD_MODEL = ("linearized_head",)

_MODELS = (*_of_production("model"), "production_models[].default_model")

_CONSTANT = 'use "constant_productivity", with the productivity at the reference volume, or "fpha"'

_UNITS = "use the tag without a unit, and multiply by 1e6/3600"

_WINDOW = "remove it, or use training.cut_selection.state_window"

_EXACT = "remove it: values of cuts are compared exactly"

MARKS: tuple[Mark, ...] = (
    Mark(
        "0.19",
        CONFIG_FILE,
        (f"{_SELECTION}.lookback_iterations",),
        _WINDOW,
    ),
    Mark("0.19", CONFIG_FILE, ("simulation.cut_set",), "remove it"),
    Mark("0.19", CONSTRAINTS, ("constraints[].slack.penalty_basis",), "remove it: the penalty is by hour"),
    Mark("0.19", PARAMETERS, ("scalar_parameters[].kind",), "give its numbers as another kind", ("expression",)),
    Mark("0.19", PARAMETERS, ("scalar_parameters[].computed_spec.tag",), _UNITS, _TAGS),
    Mark("0.19", PRODUCTION, _of_production("fpha_config.turbined_fit_max_m3s"), "remove it"),
    Mark("0.19", PRODUCTION, _of_production("fpha_config.spillage_fit_max_m3s"), "remove it"),
    Mark("0.19", HYDROS, ("hydros[].diversion.max_flow_m3s",), "give the largest flow of the channel, m3/s", (None,)),
    Mark("0.18", CONFIG_FILE, (f"{_SELECTION}.method",), 'use "level1"', ("lml1", "domination")),
    Mark("0.18", CONFIG_FILE, (f"{_SELECTION}.tie_tolerance",), _EXACT),
    Mark("0.18", CONFIG_FILE, (f"{_SELECTION}.domination_tolerance",), 'remove it, and use the method "level1"'),
    Mark("0.18", HYDROS, ("hydros[].generation.model",), _CONSTANT, _OLD_MODEL),
    Mark("0.18", PRODUCTION, _MODELS, _CONSTANT, _OLD_MODEL),
)


# Recognise cases of the 0.5 format, which are converted rather than read.


def is_old_format(documents: Documents, problems: Problems) -> bool:
    """Whether the case has marks of the 0.5 format and none of the current one; if so, one error is added."""
    contents = {name: document.content for name, document in documents.items() if document is not None}
    old = [mark for mark, has_mark in OLD_MARKS if has_mark(contents)]
    if not old or any(has_mark(contents) for has_mark in NEW_MARKS):
        return False
    message = f"this is a case of format version 0.5 ({', '.join(old)})"
    problems.error(Layer.STRUCTURE, "(the whole case)", "", "", message, "run `cobre migrate OLD NEW` and use NEW")
    return True


def has_old_format(folder: Path) -> bool:
    """Whether the case in a folder is of the 0.5 format."""
    names = ("config.json", "stages.json", "initial_conditions.json", "penalties.json", "system/hydros.json")
    files = (*names, "system/buses.json")
    return is_old_format({name: read_document(folder, name, Problems()) for name in files}, Problems())


OldMark = Callable[[Mapping[str, Any]], bool]


def _section(contents: Mapping[str, Any], file: str, *keys: str) -> Any:
    node = contents.get(file)
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def _has(file: str, *keys: str) -> OldMark:
    def has_key(contents: Mapping[str, Any]) -> bool:
        section = _section(contents, file, *keys[:-1])
        return isinstance(section, dict) and keys[-1] in section

    return has_key


def _some(file: str, array: str, key: str) -> OldMark:
    def any_has_key(contents: Mapping[str, Any]) -> bool:
        elements = _section(contents, file, array)
        return isinstance(elements, list) and any(key in element for element in _objects(elements))

    return any_has_key


def _objects(elements: Iterable[Any]) -> Iterable[dict[str, Any]]:
    return (element for element in elements if isinstance(element, dict))


OLD_MARKS: tuple[tuple[str, OldMark], ...] = (
    ("`training.forward_passes` in config.json", _has("config.json", "training", "forward_passes")),
    ("`num_scenarios` in stages.json", _some("stages.json", "stages", "num_scenarios")),
    ("`past_inflows` in initial_conditions.json", _has("initial_conditions.json", "past_inflows")),
    ("`fpha_turbined_cost` in penalties.json", _has("penalties.json", "hydro", "fpha_turbined_cost")),
    ("`bus_id` of plants in system/hydros.json", _some("system/hydros.json", "hydros", "bus_id")),
)

NEW_MARKS: tuple[OldMark, ...] = (
    _has("config.json", "training", "selection"),
    _some("stages.json", "stages", "num_openings"),
    _has("penalties.json", "hydro", "turbined_cost"),
    _some("system/hydros.json", "hydros", "unit_groups"),
    _some("system/buses.json", "buses", "operational_start_date"),
)

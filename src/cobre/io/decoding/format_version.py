"""The format of a case, 0.18 or 0.19, recognised by what its files say.

The `$schema` of a file decides, that of config.json first: each program writes an address of its own. A case without
one is of format 0.19 if a file has something that only 0.19 knows, and otherwise of format 0.18. What the format of a
case does not know is refused, wherever it is found; both questions are answered by one list, `MARKS`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cobre.core.case import FormatVersion
from cobre.io.decoding.json_documents import Document
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import Layer, Problems
from cobre.io.findings.schema_messages import FileLocation

CONSTRAINTS = "constraints/generic_constraints.json"
PARAMETERS = "constraints/generic_parameters.json"
PRODUCTION = "system/hydro_production_models.json"
HYDROS = "system/hydros.json"
PRODUCTIVITY_TABLE = "system/hydro_energy_productivity.parquet"
INTEGRATED_COLUMN = "integrated_equivalent_productivity_mw_per_m3s"
SCHEMA_ADDRESS = "https://raw.githubusercontent.com/ons-ccee-epe/novomodelo/refs/heads/main/schemas/{name}.schema.json"
# Parts of the addresses that the programs and their bridges write as `$schema`.
_ADDRESSES: Mapping[str, FormatVersion] = {"/novomodelo/": "0.19", "/cobre-rs/cobre/": "0.18"}

Documents = Mapping[str, Document | None]
Keys = tuple[str | int, ...]
Finder = Callable[[Any], Iterator[Keys]]


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
    """Something that only one of the formats has. `remedy`: what to do about it in a case of the other format."""

    version: FormatVersion
    file: str
    find: Finder
    remedy: str

    def paths(self, documents: Documents) -> Iterator[Keys]:
        """Where it is, in its file."""
        document = documents.get(self.file)
        return iter(()) if document is None else self.find(document.content)


def recognise_format(folder: Path, documents: Documents) -> FormatSeen:
    """The format that the files of a case say, with the reason."""
    for name in sorted(documents, key=lambda name: name != CONFIG_FILE):
        version = _addressed(documents[name])
        if version is not None:
            return FormatSeen(version, f"$schema of {name}")
    for mark in MARKS:
        path = next(mark.paths(documents), None) if mark.version == "0.19" else None
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


def _at(*keys: str, if_value: tuple[object, ...] = ()) -> Finder:
    """The path of a key in nested objects, where it is given and, with `if_value`, has one of these values."""

    def find(content: Any) -> Iterator[Keys]:
        node = content
        for key in keys[:-1]:
            node = node.get(key) if isinstance(node, dict) else None
        if isinstance(node, dict) and keys[-1] in node and (not if_value or node[keys[-1]] in if_value):
            yield keys

    return find


def _each(array: str, finder: Finder) -> Finder:
    """What a finder finds in each element of an array."""

    def find(content: Any) -> Iterator[Keys]:
        elements = content.get(array) if isinstance(content, dict) else None
        for index, element in enumerate(elements if isinstance(elements, list) else ()):
            yield from ((array, index, *path) for path in finder(element))

    return find


def _any_of(*finders: Finder) -> Finder:
    return lambda content: (path for finder in finders for path in finder(content))


def _rows_of_production(finder: Finder) -> Finder:
    return _each("production_models", _any_of(_each("seasons", finder), _each("stage_ranges", finder)))


def _unlimited_diversion(hydro: Any) -> Iterator[Keys]:
    diversion = hydro.get("diversion") if isinstance(hydro, dict) else None
    if isinstance(diversion, dict) and diversion.get("max_flow_m3s") is None:
        yield ("diversion", "max_flow_m3s")


_SELECTION = ("training", "cut_selection", "selection")
_TAGS = (
    "integrated_equivalent_productivity_mwh_per_hm3",
    "integrated_accumulated_productivity_mwh_per_hm3",
    "max_stored_energy_mwh",
)
_OLD_MODEL = ("linearized_head",)
_CONSTANT = 'use "constant_productivity", with the productivity at the reference volume, or "fpha"'
MARKS: tuple[Mark, ...] = (
    Mark("0.19", CONFIG_FILE, _at(*_SELECTION, "lookback_iterations"), "remove it, or use state_window"),
    Mark("0.19", CONFIG_FILE, _at("simulation", "cut_set"), "remove it"),
    Mark("0.19", CONSTRAINTS, _each("constraints", _at("slack", "penalty_basis")), "remove it: the penalty is by hour"),
    Mark(
        "0.19",
        PARAMETERS,
        _each("scalar_parameters", _at("kind", if_value=("expression",))),
        "give its numbers as another kind",
    ),
    Mark(
        "0.19",
        PARAMETERS,
        _each("scalar_parameters", _at("computed_spec", "tag", if_value=_TAGS)),
        "use the tag without a unit, and multiply by 1e6/3600",
    ),
    Mark("0.19", PRODUCTION, _rows_of_production(_at("fpha_config", "turbined_fit_max_m3s")), "remove it"),
    Mark("0.19", PRODUCTION, _rows_of_production(_at("fpha_config", "spillage_fit_max_m3s")), "remove it"),
    Mark("0.19", HYDROS, _each("hydros", _unlimited_diversion), "give the largest flow of the channel, m3/s"),
    Mark("0.18", CONFIG_FILE, _at(*_SELECTION, "method", if_value=("lml1", "domination")), 'use "level1"'),
    Mark("0.18", CONFIG_FILE, _at(*_SELECTION, "tie_tolerance"), "remove it: values of cuts are compared exactly"),
    Mark("0.18", CONFIG_FILE, _at(*_SELECTION, "domination_tolerance"), 'remove it, and use the method "level1"'),
    Mark("0.18", HYDROS, _each("hydros", _at("generation", "model", if_value=_OLD_MODEL)), _CONSTANT),
    Mark("0.18", PRODUCTION, _rows_of_production(_at("model", if_value=_OLD_MODEL)), _CONSTANT),
    Mark("0.18", PRODUCTION, _each("production_models", _at("default_model", if_value=_OLD_MODEL)), _CONSTANT),
)

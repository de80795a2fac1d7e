"""The format of a case, 0.18 or 0.19, recognised by its files.

The `$schema` of a file decides, that of config.json first: each program writes an address of its own. A case without
one is of format 0.19 if a file has something that only 0.19 has, and otherwise of format 0.18. Features of the other
format are errors. `FEATURES` lists them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cobre.core.case import FormatVersion
from cobre.core.file_names import (
    CONFIG_FILE,
    CONSTRAINTS_FILE,
    ENERGY_PRODUCTIVITY_FILE,
    HYDROS_FILE,
    PARAMETERS_FILE,
    PRODUCTION_FILE,
)
from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.schema_errors import MISSING_FIELD, Choices, FileLocation
from cobre.io.findings import Finding, Findings, Layer, error_code, subject_text
from cobre.io.storage.arrow_columns import open_parquet
from cobre.records import dataclass

INTEGRATED_COLUMN = "integrated_equivalent_productivity_mw_per_m3s"
SCHEMA_ADDRESS = "https://raw.githubusercontent.com/ons-ccee-epe/novomodelo/refs/heads/main/schemas/{name}.schema.json"

# Parts of the addresses that the programs and their bridges write as `$schema`.
_ADDRESSES: Mapping[str, FormatVersion] = {"/novomodelo/": "0.19", "/cobre-rs/cobre/": "0.18"}

_INDEX = re.compile(r"\[\d+\]")

OTHER_FORMAT = error_code(
    "other-format", Layer.SCHEMA, "belongs to format {value}, and this case is of {format}", remedy="{advice}"
)

Documents = Mapping[str, Document | None]
Keys = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class RecognisedFormat:
    """The format of a case, and the reason."""

    version: FormatVersion
    reason: str

    def __str__(self) -> str:
        return f"format {self.version} ({self.reason})"


FORMAT_018 = RecognisedFormat("0.18", "no file says otherwise")


@dataclass(frozen=True, slots=True)
class FormatFeature:
    """Something that only one of the formats has. Schemas and the reference pages are generated from these, too.

    fields: paths of one kind of field, such as `constraints[].slack.penalty_basis`, where `[]` is each element of an
    array. remedy: what to do about it in a case of the other format.
    values: the values that only this format has; empty: the field itself. Null stands for a field that is absent, too.
    """

    version: FormatVersion
    file: str
    fields: tuple[str, ...]
    remedy: str
    values: tuple[str | None, ...] = ()

    def find(self, content: Any) -> Iterator[Keys]:
        """Yield the paths of the feature in the content of its file."""
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


def recognise_format(folder: Path, documents: Documents) -> RecognisedFormat:
    """Return the format of a case, from its files, with the reason."""
    for name in sorted(documents, key=lambda name: name != CONFIG_FILE):
        version = _addressed(documents[name])
        if version is not None:
            return RecognisedFormat(version, f"$schema of {name}")
    for feature in FEATURES:
        document = documents.get(feature.file)
        path = next(feature.find(document.content), None) if document and feature.version == "0.19" else None
        if path is not None:
            return RecognisedFormat("0.19", f"{_words(documents[feature.file], path)} in {feature.file}")
    if _has_integrated_column(folder):
        return RecognisedFormat("0.19", f"{INTEGRATED_COLUMN} in {ENERGY_PRODUCTIVITY_FILE}")
    return FORMAT_018


def refuse_other_format(case_format: RecognisedFormat, document: Document | None, findings: Findings) -> None:
    """Add an error for documents in a file that only the other format has, with what to do."""
    if document is None:
        return
    for feature in FEATURES:
        if feature.version == case_format.version or feature.file != document.name:
            continue
        for path in feature.find(document.content):
            location = FileLocation.of(document.content, path)
            facts = {"value": feature.version, "format": str(case_format), "advice": feature.remedy}
            findings.add(OTHER_FORMAT, feature.file, location.subject, location.field, **facts)


def drop_errors_of_other_format(case_format: RecognisedFormat, findings: Findings, start: int) -> None:
    """Correct schema errors from number `start` on, which cover both formats, for the format of the case.

    Values of the other format are not offered as choices, and its fields are not missing.
    """
    others = [feature for feature in FEATURES if feature.version != case_format.version]

    def fitted(finding: Finding) -> Finding | None:
        for feature in others:
            if finding.file != feature.file or not any(_is_about(finding, field) for field in feature.fields):
                continue
            choices = finding.facts.get("choices")
            if feature.values and isinstance(choices, Choices):
                left = type(choices)(choice for choice in choices if choice not in feature.values)
                return replace(finding, facts={**finding.facts, "choices": left})
            return None if finding.code is MISSING_FIELD and not feature.values else finding
        return finding

    findings.revise(fitted, start)


def _is_about(finding: Finding, field: str) -> bool:
    """Return whether a schema error is about a field, in itself or as the tag of the object around it."""
    path, _, key = field.rpartition("[].")[2].rpartition(".")
    field_path = _INDEX.sub("[]", finding.field)
    is_kind = finding.facts.get("key") == key and field_path.endswith(path)
    return is_kind or field_path.endswith(f"{path}.{key}" if path else key)


def _addressed(document: Document | None) -> FormatVersion | None:
    content = document.content if document is not None else None
    address = content.get("$schema") if isinstance(content, dict) else None
    if not isinstance(address, str):
        return None
    return next((version for part, version in _ADDRESSES.items() if part in address), None)


def _words(document: Document | None, path: Keys) -> str:
    location = FileLocation.of(document.content if document else None, path)
    return location.field or subject_text(location.subject)


def _has_integrated_column(folder: Path) -> bool:
    path = folder / ENERGY_PRODUCTIVITY_FILE
    if not path.is_file():
        return False
    import pyarrow as pa  # noqa: PLC0415

    try:
        with open_parquet(path) as file:
            return INTEGRATED_COLUMN in file.schema_arrow.names
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

FEATURES: tuple[FormatFeature, ...] = (
    FormatFeature(
        "0.19",
        CONFIG_FILE,
        (f"{_SELECTION}.lookback_iterations",),
        _WINDOW,
    ),
    FormatFeature("0.19", CONFIG_FILE, ("simulation.cut_set",), "remove it"),
    FormatFeature(
        "0.19", CONSTRAINTS_FILE, ("constraints[].slack.penalty_basis",), "remove it: the penalty is by hour"
    ),
    FormatFeature(
        "0.19",
        PARAMETERS_FILE,
        ("scalar_parameters[].kind",),
        "give its numbers as another kind",
        ("expression",),
    ),
    FormatFeature("0.19", PARAMETERS_FILE, ("scalar_parameters[].computed_spec.tag",), _UNITS, _TAGS),
    FormatFeature("0.19", PRODUCTION_FILE, _of_production("fpha_config.turbined_fit_max_m3s"), "remove it"),
    FormatFeature("0.19", PRODUCTION_FILE, _of_production("fpha_config.spillage_fit_max_m3s"), "remove it"),
    FormatFeature(
        "0.19", HYDROS_FILE, ("hydros[].diversion.max_flow_m3s",), "give the largest flow of the channel, m3/s", (None,)
    ),
    FormatFeature("0.18", CONFIG_FILE, (f"{_SELECTION}.method",), 'use "level1"', ("lml1", "domination")),
    FormatFeature("0.18", CONFIG_FILE, (f"{_SELECTION}.tie_tolerance",), _EXACT),
    FormatFeature(
        "0.18", CONFIG_FILE, (f"{_SELECTION}.domination_tolerance",), 'remove it, and use the method "level1"'
    ),
    FormatFeature("0.18", HYDROS_FILE, ("hydros[].generation.model",), _CONSTANT, _OLD_MODEL),
    FormatFeature("0.18", PRODUCTION_FILE, _MODELS, _CONSTANT, _OLD_MODEL),
)

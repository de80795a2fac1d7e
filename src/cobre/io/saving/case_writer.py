"""`save_case`: all files of a case, written completely or not at all."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from cobre.core.case import Case, Table
from cobre.core.case import changed as with_fields
from cobre.core.config import Config
from cobre.core.file_names import CONFIG_FILE
from cobre.io.case import decode_case, read_case
from cobre.io.case_folder.case_files import OPTIONAL_JSON, REQUIRED_JSON
from cobre.io.decoding.format_version import RecognisedFormat
from cobre.io.decoding.json_documents import Document, rewritten
from cobre.io.decoding.parquet_tables import TableFormat, sorted_by_keys
from cobre.io.findings import Findings, Layer, error_code
from cobre.io.input_files.config import read_config
from cobre.io.input_files.config_overrides import with_overrides
from cobre.io.saving.documents import case_documents, case_tables, check_tables, config_document, plain, write_tables
from cobre.io.storage.atomic import new_directory
from cobre.io.validation import check_case

# Cases in memory: put in canonical order and validated, as if they had been read from a directory.
#
# A case in memory is turned into the documents that `save_case` would write, and decoded by the readers of files. It
# so means what its directory means, in whatever order its entities, rows and mappings are; nothing is written.

PART_OF_CASE = error_code(
    "part-of-case-type",
    Layer.SCHEMA,
    "a part of the case has a wrong type: {value}",
    expected="the records that load_case gives",
)


def canonical_case(case: Case, name: str | None = None) -> Case:
    """Return the case as `load_case` would read it from its directory, in canonical order.

    Raises InvalidCaseError with all errors; messages name the files that the case would be read from.
    name: of the case in the message; None: its own.
    """
    findings = Findings()
    checked = checked_case(case, findings)
    findings.raise_errors(name or case.name)
    assert checked is not None, "without errors there is a case"  # noqa: S101
    return checked


def checked_case(case: Case, findings: Findings) -> Case | None:
    """Return the case in canonical order, or None if it has errors, which are added to `findings` with its warnings.

    Values are checked by the format first, then the case by the rules of `cobre.io.validation`.
    """
    decoded = _decoded(case, findings)
    if decoded is None or findings.errors:
        return None
    check_case(decoded, {}, findings)
    return None if findings.errors else decoded


def _decoded(case: Case, findings: Findings) -> Case | None:
    try:
        texts = dict(case_documents(case))
        documents = {
            file: Document(file, json.loads(texts[file]), texts[file]) if file in texts else None
            for file in (*REQUIRED_JSON, *OPTIONAL_JSON)
        }
        check_tables(case, findings)
        case_format = RecognisedFormat(case.format_version, "format_version of the case")
        config = read_config(documents[CONFIG_FILE], None, findings, case_format) or case.config
        return decode_case(case.name, config, documents, _tables(case, findings), findings, case_format)
    except (AttributeError, LookupError, TypeError) as error:  # a part of the case has a wrong type
        findings.add(PART_OF_CASE, "case", value=str(error))
        return None


def _tables(case: Case, findings: Findings) -> Callable[[TableFormat], Table | None]:
    """Give the tables of the case by format, sorted by their keys; none while there are errors."""
    tables = {} if findings.errors else {form.file: table for form, table in case_tables(case)}

    def table(form: TableFormat) -> Table | None:
        found = tables.get(form.file)
        return None if found is None else sorted_by_keys(found, form)

    return table


def save_case(case: Case, folder: str | Path) -> Path:
    """Write a case to a new or empty directory, in the current format; `load_case` then gives an equal case.

    The name of a case is that of its directory. Raises WriteError if the directory is not empty, and
    InvalidCaseError with all errors if the case could not be loaded again; then nothing is written.
    """
    target = Path(folder)
    case = canonical_case(case, str(target))
    with new_directory(target) as staged:
        for name, text in case_documents(case):
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            (staged / name).write_text(text, encoding="utf-8")
        write_tables(case, staged)
        findings = Findings()
        read_case(staged, findings)
        findings.raise_errors(str(target))
    return target


# `cobre.changed`: a copy of a case with other values, settings by their names in config.json.

_SETTING = "config."
Record = TypeVar("Record")


def changed(record: Record, values: Mapping[str, Any]) -> Record:
    """Return a case, or any part of one, with other values of some fields; the given one stays as it is.

        changed(case, {"config.training.selection.forward_passes": 8, "system.thermals[3].cost_per_mwh": 500.0})

    Names are joined by dots. After `config.` they are those of config.json, as in `config_overrides` and
    `cobre run --set`, and values are those of the file. Elsewhere they are the fields of the case; `[3]` is the entity
    with the id 3, not the third one.

    Raises KeyError for a path that names no field, setting or entity, InvalidCaseError for a value that a setting
    cannot have.
    """
    if not isinstance(record, Case):
        return with_fields(record, values)
    case: Any = record
    settings: dict[str, Any] = {}
    for path, value in values.items():
        if isinstance(path, str) and path.startswith(_SETTING) and "[" not in path:
            settings[path.removeprefix(_SETTING)] = value
        else:
            case = with_fields(case, {path: value})
    return cast("Record", replace(case, config=_with_settings(case, settings)) if settings else case)


def _with_settings(case: Case, settings: Mapping[str, Any]) -> Config:
    content = config_document(case.config)
    for path in settings:
        _require_known(content, path)
    findings = Findings()
    document = Document(CONFIG_FILE, content, "")
    values = {path: plain(value) for path, value in settings.items()}
    document = rewritten(document, with_overrides(content, values, findings))
    config = read_config(document, None, findings, RecognisedFormat(case.format_version, "format_version of the case"))
    findings.raise_errors(case.name)
    assert config is not None, "without errors there is a configuration"  # noqa: S101
    return config


def _require_known(content: Mapping[str, Any], path: str) -> None:
    """Raise KeyError if a part of a dotted setting name does not exist in a section that the file has."""
    section: Any = content
    for name in path.split(".")[:-1]:
        if not isinstance(section, Mapping) or name not in section:
            names = ", ".join(sorted(section)) if isinstance(section, Mapping) else "none"
            raise KeyError(f"{_SETTING}{path}: there is no setting or field {name!r}; there are {names}")
        section = section[name]
        if section is None:
            return

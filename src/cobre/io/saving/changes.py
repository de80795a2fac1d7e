"""`cobre.changed`: a copy of a case with other values, settings by their names in config.json."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from cobre.core.case import Case
from cobre.core.config import Config
from cobre.core.editing import changed as with_fields
from cobre.io.config.file import read_config
from cobre.io.config.overrides import with_overrides
from cobre.io.decoding.format_version import FormatSeen
from cobre.io.decoding.json_documents import Document, rewritten
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import Problems
from cobre.io.saving.config_document import config_document

_SETTING = "config."
Record = TypeVar("Record")


def changed(record: Record, values: Mapping[str, Any]) -> Record:
    """Return a case, or any part of one, with other values of some fields; the given one stays as it is.

        changed(case, {"config.training.selection.forward_passes": 8, "system.thermals[3].cost_per_mwh": 500.0})

    Names are joined by dots. After `config.` they are those of config.json, as in `config_overrides` and
    `cobre run --set`, and values are those of the file. Elsewhere they are the fields of the case; `[3]` is the entity
    with the id 3, not the third one. A field of `Config` itself is found by its own name, too.

    Raises KeyError for a path that names no field, setting or entity, InvalidCaseError for a value that a setting
    cannot have.
    """
    if not isinstance(record, Case):
        return with_fields(record, values)
    case: Any = record
    settings: dict[str, Any] = {}
    for path, value in values.items():
        if isinstance(path, str) and path.startswith(_SETTING) and not _is_field(case, path, value):
            settings[path.removeprefix(_SETTING)] = value
        else:
            case = with_fields(case, {path: value})
    return cast("Record", replace(case, config=_with_settings(case, settings)) if settings else case)


def _is_field(case: Case, path: str, value: object) -> bool:
    """Tell whether a path means a field of `Config`: objects and lists of JSON are always settings of the file."""
    if "[" in path:
        return True  # a setting is not an entity with an id
    if isinstance(value, Mapping | list):
        return False
    try:
        with_fields(case, {path: None})
    except KeyError:
        return False
    return True


def _with_settings(case: Case, settings: Mapping[str, Any]) -> Config:
    content = config_document(case.config, case.format_version)
    for path in settings:
        _require_known(content, path)
    problems = Problems()
    document = Document(CONFIG_FILE, content, "")
    document = rewritten(document, with_overrides(content, settings, problems))
    config = read_config(document, None, problems, FormatSeen(case.format_version, "format_version of the case"))
    problems.raise_errors(case.name)
    assert config is not None, "without errors there is a configuration"  # noqa: S101
    return config


def _require_known(content: Mapping[str, Any], path: str) -> None:
    """Raise KeyError where a name on the way to a setting, in a section that the file has, is not one of its names."""
    section: Any = content
    for name in path.split(".")[:-1]:
        if not isinstance(section, Mapping) or name not in section:
            known = ", ".join(sorted(section)) if isinstance(section, Mapping) else "none"
            raise KeyError(f"{_SETTING}{path}: there is no setting or field {name!r}; there are {known}")
        section = section[name]
        if section is None:
            return

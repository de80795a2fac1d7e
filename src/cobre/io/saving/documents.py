"""The JSON files of a case, as text."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from cobre.core.case import Case
from cobre.io.case_folder.case_schemas import SCHEMAS
from cobre.io.decoding.format_version import SCHEMA_ADDRESS
from cobre.io.file_names import CONFIG_FILE
from cobre.io.saving.config_document import config_document
from cobre.io.saving.constraint_documents import constraint_documents
from cobre.io.saving.scenario_documents import scenario_documents
from cobre.io.saving.study_documents import study_documents

_SCHEMA_NAMES = {file: name for name, (file, _) in SCHEMAS.items()}


def case_documents(case: Case) -> Iterator[tuple[str, str]]:
    """Names and texts of the files. NaN and infinities are written, although not JSON: the readers report them."""
    for name, content in _documents(case):
        head = {} if case.format_version == "0.18" else {"$schema": SCHEMA_ADDRESS.format(name=_SCHEMA_NAMES[name])}
        yield name, json.dumps(head | content, indent=2, default=_plain) + "\n"


def _documents(case: Case) -> Iterator[tuple[str, Any]]:
    yield CONFIG_FILE, config_document(case.config, case.format_version)
    yield from study_documents(case)
    yield from scenario_documents(case.scenarios)
    yield from constraint_documents(case.generic_constraints, case.format_version)


def _plain(value: object) -> Any:
    """A NumPy scalar as a Python number; raises TypeError for other types."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a case holds no {type(value).__name__} such as {value!r}")

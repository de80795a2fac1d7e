"""Cases in memory: put in canonical order and validated, as if they had been read from a directory.

A case in memory is turned into the documents that `save_case` would write, and decoded by the readers of files. It so
means what its directory means, in whatever order its entities, rows and mappings are; nothing is written.
"""

import json
from collections.abc import Callable

from cobre.core.case import Case, Table
from cobre.io.case import check_decoded_case, decode_case
from cobre.io.case_folder.case_files import OPTIONAL_JSON, REQUIRED_JSON
from cobre.io.config.file import read_config
from cobre.io.decoding.format_version import FormatSeen
from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.parquet_tables import TableFormat, sorted_by_keys
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import Layer, Problems
from cobre.io.saving.documents import case_documents
from cobre.io.saving.table_check import case_tables, check_tables


def canonical_case(case: Case, name: str | None = None) -> Case:
    """Return the case as `load_case` would read it from its directory, whatever order its parts are in.

    Raises InvalidCaseError with all errors; messages name the files that the case would be read from.
    name: of the case in the message; None: its own.
    """
    problems = Problems()
    found = checked_case(case, problems)
    problems.raise_errors(name or case.name)
    assert found is not None, "without errors there is a case"  # noqa: S101
    return found


def checked_case(case: Case, problems: Problems) -> Case | None:
    """Return the case in canonical order, or None if it has errors, which are added to `problems` with its warnings.

    Values are checked by the format first, then the case by the rules of `cobre.io.validation`.
    """
    found = _decoded(case, problems)
    if found is None or problems.errors:
        return None
    return check_decoded_case(found, problems)


def _decoded(case: Case, problems: Problems) -> Case | None:
    try:
        texts = dict(case_documents(case))
        documents = {
            file: Document(file, json.loads(texts[file]), texts[file]) if file in texts else None
            for file in (*REQUIRED_JSON, *OPTIONAL_JSON)
        }
        check_tables(case, problems)
        seen = FormatSeen(case.format_version, "format_version of the case")
        read_config(documents[CONFIG_FILE], None, problems, seen)
        # Its paths are absolute already, and no part of it has an order that files would change.
        return decode_case(case.name, case.config, documents, _tables(case, problems), problems, seen)
    except (AttributeError, LookupError, TypeError) as error:  # a part of the case has a wrong type
        message = f"a part of the case has a wrong type: {error}"
        problems.error(Layer.SCHEMA, "case", "", "", message, "the records that load_case gives")
        return None


def _tables(case: Case, problems: Problems) -> Callable[[TableFormat], Table | None]:
    """Give the tables of the case by format, sorted by their keys; none while there are errors."""
    given = {} if problems.errors else {form.file: table for form, table in case_tables(case)}

    def table(form: TableFormat) -> Table | None:
        found = given.get(form.file)
        return None if found is None else sorted_by_keys(found, form)

    return table

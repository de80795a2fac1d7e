"""The results in an output directory, read back and checked, with one digest over all of them."""

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.core import stopping
from cobre.core.file_names import (
    CONVERGENCE,
    EVENT_FILE,
    POLICY,
    POLICY_FILE,
    SIMULATION,
    STUDY_FILE,
    SUMMARY_FILE,
    TRAINING,
)
from cobre.errors import CobreError
from cobre.io.output import ResultsError, open_results, read_manifest
from cobre.io.output.results import RowsInMemory, RowSource, StoredRows
from cobre.io.policies.policy_file import PolicyData, PolicyFileError, parse_policy, read_policy_bytes
from cobre.io.storage.confined import UntrustedFileError, named_inside
from cobre.io.storage.stored_json import read_stored_object
from cobre.records import dataclass
from cobre.runs.run_state import is_in_use
from cobre.runs.summary import without_times
from cobre.runs.view import RunView, read_view

if TYPE_CHECKING:
    import pyarrow as pa


# Log, study.json and settings of a run, as they are stored.


def logged_run(folder: Path) -> RunView:
    """Read the event log of a run, without lines that cannot be read; empty if there is no log."""
    view, _ = read_view(folder / EVENT_FILE)
    return view


def stored_study(folder: Path) -> dict[str, Any]:
    """Return the content of study.json; empty without the file. Raises ResultsError for a damaged file."""
    path = folder / STUDY_FILE
    if not path.exists():
        return {}
    try:
        study = read_stored_object(path)
        _check_shape(study)
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read: {error}") from error
    return study


def _check_shape(study: Mapping[str, Any]) -> None:
    """Raise ValueError unless fields have the types that readers rely on: stages and entities are lists with ids."""
    entities = study.get("entities", {})
    if not isinstance(study.get("case") or "", str):
        raise ValueError("`case` is not a string")
    for name in ("case_files", "config_overrides", "versions", "method"):
        if not isinstance(study.get(name) or {}, dict):
            raise ValueError(f"`{name}` is not a JSON object")
    if not isinstance(entities, dict) or not isinstance(study.get("config", {}), dict):
        raise ValueError("`entities` or `config` is not a JSON object")
    for kind, records in {"stages": study.get("stages", []), **entities}.items():
        is_list = isinstance(records, list) and all(isinstance(record, dict) for record in records)
        if not is_list or not all(isinstance(record.get("id"), int) for record in records):
            raise ValueError(f"`{kind}` is not a list of objects with ids")


def stored_policy_path(folder: Path, study: Mapping[str, Any]) -> Path:
    """Return the path of the policy file of a run, in the directory that `config.policy.path` of its study.json names.

    Raises UntrustedFileError for a path outside the output directory.
    """
    config = study.get("config")
    policy = config.get("policy", {}) if isinstance(config, dict) else {}
    name = policy.get("path", POLICY) if isinstance(policy, dict) else POLICY
    return named_inside(folder, name, f"config.policy.path in {folder / STUDY_FILE}") / POLICY_FILE


def iteration_limit(config: Mapping[str, Any]) -> int | None:
    """Return the iteration limit of a stored configuration, as `TrainingConfig.iteration_limit` does."""
    training = config.get("training", {})
    limits = (rule["limit"] for rule in training.get("stopping_rules", ()) if rule.get("type") == "iteration_limit")
    return stopping.iteration_limit(limits, training.get("stopping_mode", "any"))


class IncompleteRunError(CobreError):
    """A directory without the results of a finished run; the message names what is missing."""

    remedy = "give the output directory of a run that has ended; `cobre run --resume` continues one that has not"


@dataclass(frozen=True)
class RunContent:
    """The results of a run; training or simulation is empty if the run had none.

    study: content of study.json. bounds: without times. tables: of the simulation, by name, read in pieces.
    """

    folder: Path
    summary: Mapping[str, Any]
    study: Mapping[str, Any]
    bounds: "pa.Table | None"
    policy: PolicyData | None
    policy_bytes: bytes
    tables: Mapping[str, RowSource] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the bounds, the bytes of the policy file, and the values of all simulated tables."""
        digest = hashlib.sha256()
        if self.bounds is not None:
            _feed_table(digest, "bounds", RowsInMemory(self.bounds))
        digest.update(self.policy_bytes)
        for name in sorted(self.tables):
            _feed_table(digest, name, self.tables[name])
        return digest.hexdigest()


def read_run_content(folder: Path) -> RunContent:
    """Read everything that `cobre run` wrote there. Raises IncompleteRunError."""
    summary = _summary(folder)
    study = _json_object(folder / STUDY_FILE)
    try:
        bounds = _bounds(folder / TRAINING, summary["digest"]) if summary["digest"] else None
        simulated = summary["simulation_digest"]
        tables = _tables(folder / SIMULATION, simulated) if simulated else {}
        path = stored_policy_path(folder, study)
        policy_bytes = read_policy_bytes(path) if bounds is not None or path.exists() else b""
        policy = parse_policy(path, policy_bytes) if policy_bytes else None
    except KeyError as error:
        raise IncompleteRunError(
            f"{folder / SUMMARY_FILE} has no {error}: it was not written by `cobre run`"
        ) from error
    except (ResultsError, PolicyFileError, UntrustedFileError) as error:
        raise IncompleteRunError(str(error)) from error
    return RunContent(folder, summary, study, bounds, policy, policy_bytes, tables)


def column_values(column: "pa.ChunkedArray") -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a column, and which of them are valid; null values are 0 or empty."""
    import pyarrow as pa

    is_valid = np.asarray(column.is_valid().to_numpy(), bool)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.array([value or "" for value in column.to_pylist()], dtype=np.str_), is_valid
    filled = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
    return np.ascontiguousarray(filled.to_numpy()), is_valid


def _feed_table(digest: Any, name: str, table: RowSource) -> None:
    """Add the values of a table to a digest, one row group at a time; compression does not matter."""
    for column in table.schema.names:
        _feed_column(digest, f"{name}.{column}", table, column)


def _feed_column(digest: Any, title: str, table: RowSource, column: str) -> None:
    """Add all values of a column to a digest, then their validity."""
    flags: list[bytes] = []
    pieces = table.pieces([column]) if table.rows else iter([table.schema.empty_table().select([column])])
    for number, piece in enumerate(pieces):
        values, is_valid = column_values(piece.column(0))
        is_text = values.dtype.kind == "U"
        if number == 0:
            digest.update(f"{title}:{values.dtype.kind}{table.rows};".encode())
        elif is_text:
            digest.update(b"\0")
        digest.update("\0".join(values.tolist()).encode() if is_text else values.tobytes())
        flags.append(zlib.compress(is_valid.tobytes(), 1))  # mostly the same byte, over and over
    for packed in flags:
        digest.update(zlib.decompress(packed))


def _summary(folder: Path) -> Mapping[str, Any]:
    if not folder.is_dir():
        raise IncompleteRunError(f"{folder} is not a directory: give the output directory of a run")
    if is_in_use(folder):
        raise IncompleteRunError(f"{folder} belongs to a run that is still in progress: wait for it to end")
    if not (folder / SUMMARY_FILE).exists():
        hint = "the run did not finish" if (folder / STUDY_FILE).exists() else "give the output directory of a run"
        raise IncompleteRunError(f"{folder} has no complete results: {SUMMARY_FILE} is missing ({hint})")
    return _json_object(folder / SUMMARY_FILE)


def _json_object(path: Path) -> Mapping[str, Any]:
    try:
        return read_stored_object(path)
    except (OSError, ValueError) as error:
        raise IncompleteRunError(f"{path} cannot be read: {error}") from error


def _tables(folder: Path, expected_digest: str) -> Mapping[str, StoredRows]:
    """Open tables of the run. Raises ResultsError unless they belong to the run of the summary."""
    digest = read_manifest(folder)["run"].get("digest")
    if digest != expected_digest:
        raise ResultsError(f"{folder} belongs to another run than {SUMMARY_FILE}: its digest is {digest}")
    return open_results(folder)


def _bounds(folder: Path, expected_digest: str) -> "pa.Table | None":
    """Read the table of bounds without columns of times, which differ between any two runs."""
    table = _tables(folder, expected_digest).get(CONVERGENCE)
    return None if table is None else without_times(table.whole())

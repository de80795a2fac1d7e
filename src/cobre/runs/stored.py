"""What the JSON files of a run say, for readers that take them as they are."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cobre.core import config as config_rules
from cobre.io.output import ResultsError
from cobre.io.storage.stored_json import read_stored_object
from cobre.io.storage.untrusted_file import named_inside
from cobre.runs.files import EVENT_FILE, POLICY, POLICY_FILE, STUDY_FILE
from cobre.runs.view import RunView, read_view


def logged_run(folder: Path) -> RunView:
    """What the event log of a run says, lines that cannot be read left out; nothing when there is no log."""
    view, _ = read_view(folder / EVENT_FILE)
    return view


def stored_study(folder: Path) -> dict[str, Any]:
    """Return what study.json says; nothing when there is none. Raises ResultsError if the file is damaged."""
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
    """Raise ValueError unless stages and entities are lists of objects with ids, as readers rely on."""
    entities = study.get("entities", {})
    if not isinstance(entities, dict) or not isinstance(study.get("config", {}), dict):
        raise ValueError("`entities` or `config` is not a JSON object")
    for kind, records in {"stages": study.get("stages", []), **entities}.items():
        is_list = isinstance(records, list) and all(isinstance(record, dict) for record in records)
        if not is_list or not all(isinstance(record.get("id"), int) for record in records):
            raise ValueError(f"`{kind}` is not a list of objects with ids")


def stored_policy_path(folder: Path, study: Mapping[str, Any]) -> Path:
    """The policy's file of a run: in the directory that `config.policy.path` of its study.json names.

    Raises UntrustedFileError where that leads out of the output directory.
    """
    config = study.get("config")
    policy = config.get("policy", {}) if isinstance(config, dict) else {}
    name = policy.get("path", POLICY) if isinstance(policy, dict) else POLICY
    return named_inside(folder, name, f"config.policy.path in {folder / STUDY_FILE}") / POLICY_FILE


def iteration_limit(config: Mapping[str, Any]) -> int | None:
    """Return the most iterations that a stored configuration allows: `TrainingConfig.iteration_limit`."""
    training = config.get("training", {})
    limits = (rule["limit"] for rule in training.get("stopping_rules", ()) if rule.get("type") == "iteration_limit")
    return config_rules.iteration_limit(limits, training.get("stopping_mode", "any"))

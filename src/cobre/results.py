"""Compatibility with cobre-python: the results of a run, read back.

A missing directory or file raises FileNotFoundError; an incomplete one raises `ResultsError`, which is an OSError.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.core.file_names import CONVERGENCE_FILE, EVENT_FILE, SIMULATION, STOCHASTIC, TRAINING
from cobre.errors import OutputError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = [
    "Stochastic",
    "load_convergence",
    "load_convergence_arrow",
    "load_policy",
    "load_results",
    "load_simulation",
    "load_simulation_arrow",
    "load_stochastic",
]


def load_results(output_dir: str | Path) -> dict[str, Any]:
    """Describe training and simulation: for each, whether it is `complete`, and its `manifest`.

    Raises FileNotFoundError for training that has not ended.
    """
    from cobre.compat.stored_results import simulation_facts, training_facts

    folder = _existing(Path(output_dir)).resolve()
    training = training_facts(folder)
    if training is None:
        raise FileNotFoundError(f"training did not finish: its end is not in {folder / EVENT_FILE}")
    simulation = simulation_facts(folder)
    return {
        "training": {
            "complete": True,
            "manifest": training,
            "metadata": training,
            "convergence_path": str(folder / TRAINING / CONVERGENCE_FILE),
            "timing_path": str(folder / EVENT_FILE),
        },
        "simulation": {"complete": simulation is not None, "manifest": simulation},
    }


def load_convergence(output_dir: str | Path) -> list[dict[str, Any]]:
    """Return one dictionary for each iteration."""
    rows: list[dict[str, Any]] = load_convergence_arrow(output_dir).to_pylist()
    return rows


def load_convergence_arrow(output_dir: str | Path) -> "pa.Table":
    """Return one row for each iteration: bounds, cuts, solves and times."""
    from cobre.compat.stored_results import convergence_with_times

    folder = _existing(Path(output_dir))
    _existing(folder / TRAINING / CONVERGENCE_FILE, "file")
    return convergence_with_times(folder)


def load_simulation(output_dir: str | Path, entity_type: str | None = None) -> Any:
    """Return the rows of one table, such as `hydros`, as dictionaries; without a name, all tables by name.

    `water_value_per_hm3` is here the slope of the cost: negative where more water saves money. The files, figures and
    `SimulationResult` have its worth, which is positive then.
    """
    tables = load_simulation_arrow(output_dir, entity_type)
    if entity_type is not None:
        return tables.to_pylist()
    return {name: table.to_pylist() for name, table in tables.items()}


def load_simulation_arrow(output_dir: str | Path, entity_type: str | None = None) -> Any:
    """Return one table of the simulation, or all of them by name. See `load_simulation`.

    Energies and states of operation, and the table `inflow_lags`, are made from what the files have.
    """
    from cobre.compat.stored_results import simulation_tables

    folder = _existing(_existing(Path(output_dir)) / SIMULATION, "simulation directory")
    tables = simulation_tables(folder, entity_type)
    if entity_type is None:
        return tables
    if entity_type not in tables:
        raise FileNotFoundError(f"simulation table not found: {folder / entity_type}.parquet")
    return tables[entity_type]


def load_policy(output_dir: str | Path, policy_subdir: str = "policy") -> dict[str, Any]:
    """Return a policy as plain values: `metadata`, and the cuts of each stage in $ under `stage_cuts`.

    It may be one that cobre-python wrote. An incomplete policy file is an OutputError, which is an OSError.
    """
    from cobre.compat.policy_checkpoint import policy_dictionary
    from cobre.io.policies.policy_file import PolicyFileError

    folder = _existing(_existing(Path(output_dir)) / policy_subdir)
    try:
        return policy_dictionary(folder)
    except PolicyFileError as error:
        raise OutputError(str(error)) from error


class Stochastic:
    """The noise that a run had, where its configuration asked for it (`exports.stochastic`)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def par_coefficients(self) -> "NDArray[np.float64]":
        """Return rows of hydro_id, stage_id, lag (the stage before is 1) and coefficient."""
        from cobre.compat.stored_results import coefficients_of

        return coefficients_of(self._folder)

    def opening_tree(self, stage: int) -> "NDArray[np.float64]":
        """Return the noise of a stage (its id): a row for each opening, a column for each entity."""
        from cobre.compat.stored_results import openings_of

        return openings_of(self._folder, stage)


def load_stochastic(output_dir: str | Path) -> Stochastic:
    """Load the noise model that a run with `exports.stochastic` wrote. Raises FileNotFoundError if there is none."""
    folder = _existing(Path(output_dir)) / STOCHASTIC
    if not (folder / "noise_openings.parquet").exists():
        message = f"{folder} is empty: a run writes its noise if config.json has exports.stochastic = true"
        raise FileNotFoundError(message)
    return Stochastic(folder)


def _existing(path: Path, word: str = "directory") -> Path:
    if not path.exists():
        raise FileNotFoundError(f"{word} not found: {path}")
    return path

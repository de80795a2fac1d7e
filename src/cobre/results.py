"""The results of a run, read back from its output directory as plain Python values or Arrow tables.

A directory or file that is not there is a FileNotFoundError; one that is not whole is a `ResultsError`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    """How training and simulation went: under each of them, whether it is `complete`, and its `manifest`."""
    from cobre.study.stored_results import simulation_facts, training_facts  # noqa: PLC0415 - nothing heavy on import

    folder = _existing(Path(output_dir))
    training = training_facts(folder)
    return {
        "training": {
            "complete": training is not None,
            "manifest": training,
            "metadata": training,
            "convergence_path": str(folder / "training" / "convergence.parquet"),
            "timing_path": str(folder / "events.jsonl"),
        },
        "simulation": {
            "complete": (manifest := simulation_facts(folder)) is not None,
            "manifest": manifest,
        },
    }


def load_convergence(output_dir: str | Path) -> list[dict[str, Any]]:
    """One dictionary for each iteration."""
    rows: list[dict[str, Any]] = load_convergence_arrow(output_dir).to_pylist()
    return rows


def load_convergence_arrow(output_dir: str | Path) -> "pa.Table":
    """One row for each iteration: bounds, cuts, solves and times."""
    from cobre.study.stored_results import convergence_with_times  # noqa: PLC0415

    folder = _existing(Path(output_dir))
    _existing(folder / "training" / "convergence.parquet", "file")
    return convergence_with_times(folder)


def load_simulation(output_dir: str | Path, entity_type: str | None = None) -> Any:
    """The rows of one table, such as `hydros`, as dictionaries; without a name, all tables by name.

    `water_value_per_hm3` is here the slope of the cost: negative where more water saves money. The files, figures and
    `SimulationResult` have its worth, which is positive then.
    """
    tables = load_simulation_arrow(output_dir, entity_type)
    if entity_type is not None:
        return tables.to_pylist()
    return {name: table.to_pylist() for name, table in tables.items()}


def load_simulation_arrow(output_dir: str | Path, entity_type: str | None = None) -> Any:
    """One table of the simulation, or all of them by name; none when nothing was simulated. See `load_simulation`."""
    from cobre.study.stored_results import simulation_tables  # noqa: PLC0415

    folder = _existing(Path(output_dir)) / "simulation"
    if entity_type is None:
        return simulation_tables(folder) if folder.is_dir() else {}
    _existing(folder / f"{entity_type}.parquet", "simulation table")
    return simulation_tables(folder)[entity_type]


def load_policy(output_dir: str | Path, policy_subdir: str = "policy") -> dict[str, Any]:
    """A policy as plain values: `metadata`, and the cuts of each stage in $ under `stage_cuts`."""
    from cobre.study.plain_policy import plain_policy  # noqa: PLC0415

    folder = _existing(_existing(Path(output_dir)) / policy_subdir)
    return plain_policy(folder)


class Stochastic:
    """The noise that a run had, where its configuration asked for it (`exports.stochastic`)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def par_coefficients(self) -> list[dict[str, Any]]:
        """A dictionary for each plant, stage and lag."""
        from pyarrow import parquet  # noqa: PLC0415

        rows: list[dict[str, Any]] = parquet.read_table(self._folder / "inflow_ar_coefficients.parquet").to_pylist()
        return rows

    def opening_tree(self, stage: int) -> "NDArray[np.float64]":
        """The noise of a stage (its id): a row for each opening, a column for each entity."""
        from cobre.study.stored_results import openings_of  # noqa: PLC0415

        return openings_of(self._folder / "noise_openings.parquet", stage)


def load_stochastic(output_dir: str | Path) -> Stochastic:
    """What `exports.stochastic` left."""
    folder = _existing(Path(output_dir)) / "stochastic"
    if not (folder / "noise_openings.parquet").exists():
        message = f"there is nothing in {folder}: a run writes its noise when config.json has exports.stochastic = true"
        raise FileNotFoundError(message)
    return Stochastic(folder)


def _existing(path: Path, word: str = "directory") -> Path:
    if not path.exists():
        raise FileNotFoundError(f"{word} not found: {path}")
    return path

"""Names of the files in the output directory of a run. Light to import."""

from pathlib import Path

from cobre.core.file_names import EVENT_FILE, LOCK_FILE, MANIFEST_FILE, OUTPUT, POLICY, POLICY_FILE

__all__ = [
    "BOUND_FILE",
    "CHECKPOINTS",
    "CONVERGENCE",
    "CONVERGENCE_FILE",
    "EVENT_FILE",
    "FAILURES",
    "HYDRO_MODELS",
    "LOCK_FILE",
    "LOG_FILE",
    "MANIFEST_FILE",
    "OUTPUT",
    "POLICY",
    "POLICY_FILE",
    "REPORT_FILE",
    "RUN_FILES",
    "SIMULATION",
    "STATES",
    "STOCHASTIC",
    "STUDY_FILE",
    "SUMMARY_FILE",
    "TRAINING",
    "has_results",
    "is_run_folder",
]

STUDY_FILE = "study.json"
SUMMARY_FILE = "summary.json"
REPORT_FILE = "report.html"
BOUND_FILE = "bound.json"
LOG_FILE = "run.log"  # what a run in the background printed
CONVERGENCE = "convergence"  # table in TRAINING
CONVERGENCE_FILE = f"{CONVERGENCE}.parquet"
TRAINING = "training"
SIMULATION = "simulation"
FAILURES = "failures"
CHECKPOINTS = "checkpoints"
STATES, STOCHASTIC, HYDRO_MODELS = "states", "stochastic", "hydro_models"  # of `exports` in config.json

RUN_FILES = (
    EVENT_FILE,
    STUDY_FILE,
    SUMMARY_FILE,
    f"{TRAINING}/{MANIFEST_FILE}",
    f"{SIMULATION}/{MANIFEST_FILE}",
)
"""A directory with any of these was written by `cobre run`."""

_RESULT_FILES = (*RUN_FILES[2:], f"{POLICY}/{POLICY_FILE}")


def is_run_folder(folder: Path) -> bool:
    """Return whether a run has written to this directory, be it only its log."""
    return any((folder / name).exists() for name in RUN_FILES)


def has_results(folder: Path) -> bool:
    """Return whether a run has left results in this directory; symbolic links do not count."""
    paths = (folder / name for name in _RESULT_FILES)
    return any(path.is_file() and not path.is_symlink() for path in paths)

"""Names in an output directory: what `cobre run` writes, and what everything else reads. Light to import."""

from cobre.io.file_names import EVENT_FILE, LOCK_FILE, MANIFEST_FILE, OUTPUT, POLICY, POLICY_FILE

__all__ = [
    "BOUND_FILE",
    "CHECKPOINTS",
    "CONVERGENCE_FILE",
    "EVENT_FILE",
    "FAILURES",
    "HYDRO_MODELS",
    "LOCK_FILE",
    "MANIFEST_FILE",
    "OUTPUT",
    "POLICY",
    "POLICY_FILE",
    "REPORT_FILE",
    "SIMULATION",
    "STATES",
    "STOCHASTIC",
    "STUDY_FILE",
    "SUMMARY_FILE",
    "TRAINING",
]

STUDY_FILE = "study.json"
SUMMARY_FILE = "summary.json"
REPORT_FILE = "report.html"
BOUND_FILE = "bound.json"
CONVERGENCE_FILE = "convergence.parquet"  # in TRAINING

TRAINING = "training"
SIMULATION = "simulation"
FAILURES = "failures"
CHECKPOINTS = "checkpoints"
STATES, STOCHASTIC, HYDRO_MODELS = "states", "stochastic", "hydro_models"  # of `exports` in config.json

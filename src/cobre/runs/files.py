"""Names in an output directory: what `cobre run` writes, and what everything else reads.

Files with a format of their own have their names beside it: `cobre.io.event_file`, `lock_file`, `policy_file` and
`output.manifest`.
"""

from cobre.io.event_file import EVENT_FILE
from cobre.io.lock_file import LOCK_FILE
from cobre.io.output.manifest import FILE as MANIFEST_FILE
from cobre.io.policy_file import POLICY_FILE

__all__ = [
    "BOUND_FILE",
    "CHECKPOINTS",
    "CONVERGENCE_FILE",
    "EVENT_FILE",
    "FAILURES",
    "LOCK_FILE",
    "MANIFEST_FILE",
    "POLICY",
    "POLICY_FILE",
    "REPORT_FILE",
    "SIMULATION",
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
POLICY = "policy"
FAILURES = "failures"
CHECKPOINTS = "checkpoints"

"""Names in an output directory: what `cobre run` writes, and what everything else reads.

`events.jsonl` and `run.lock` have their names where their formats are: `cobre.io.event_file`, `cobre.io.lock_file`.
"""

from cobre.io.event_file import EVENT_FILE
from cobre.io.lock_file import LOCK_FILE
from cobre.io.policy_file import POLICY_FILE

__all__ = [
    "BOUND_FILE",
    "CHECKPOINTS",
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
MANIFEST_FILE = "manifest.json"

TRAINING = "training"
SIMULATION = "simulation"
POLICY = "policy"
FAILURES = "failures"
CHECKPOINTS = "checkpoints"

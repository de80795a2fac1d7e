"""Names of files and folders; light to import, unlike the modules of their formats. See `cobre.runs.files`."""

from cobre.core.case_file_names import CONFIG_FILE, STAGES_FILE

__all__ = [
    "CONFIG_FILE",
    "EVENT_FILE",
    "LOCK_FILE",
    "MANIFEST_FILE",
    "OUTPUT",
    "POLICY",
    "POLICY_FILE",
    "STAGES_FILE",
]

EVENT_FILE = "events.jsonl"
LOCK_FILE = "run.lock"
MANIFEST_FILE = "manifest.json"
POLICY_FILE = "policy.bin"
OUTPUT = "output"  # folder of a case: default output directory
POLICY = "policy"  # folder of an output directory

"""Names of files and folders of cases and of output directories. Light to import, unlike the modules of their formats.

`cobre.runs.files` lists the files of an output directory with what they contain.
"""

CONFIG_FILE = "config.json"
STAGES_FILE = "stages.json"

EVENT_FILE = "events.jsonl"
LOCK_FILE = "run.lock"
MANIFEST_FILE = "manifest.json"
POLICY_FILE = "policy.bin"
OUTPUT = "output"  # folder of a case: default output directory
POLICY = "policy"  # folder of an output directory

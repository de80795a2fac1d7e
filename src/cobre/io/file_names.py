"""Names of files and folders; light to import, unlike the modules of their formats. See `cobre.runs.files`."""

CONFIG_FILE = "config.json"
EVENT_FILE = "events.jsonl"
LOCK_FILE = "run.lock"
MANIFEST_FILE = "manifest.json"
POLICY_FILE = "policy.bin"

OUTPUT = "output"  # folder of a case: default output directory
POLICY = "policy"  # folder of an output directory

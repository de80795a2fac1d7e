"""Names of files that have a format of their own; light to import, unlike the formats. See `cobre.runs.files`."""

CONFIG_FILE = "config.json"
EVENT_FILE = "events.jsonl"
LOCK_FILE = "run.lock"
MANIFEST_FILE = "manifest.json"
POLICY_FILE = "policy.bin"

OUTPUT = "output"  # folder of a case: where its results go unless another is given
POLICY = "policy"  # folder of an output directory

"""Names of the files of a case that more than one package mentions. Light to import."""

CONFIG_FILE = "config.json"
STAGES_FILE = "stages.json"

"""config.json: its records, their conversion to the configuration, and overrides."""

"""Programs that run in their own process: one training run each, reported as one line of JSON."""

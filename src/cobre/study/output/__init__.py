"""The output directory of a run: its lock, results of earlier runs, and the files that a run writes."""

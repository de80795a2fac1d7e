"""Run in cobre-python's own environment: train cases and print the bounds of every iteration as JSON.

Arguments: case directories. The output directory is a temporary one.
"""

import json
import sys
import tempfile

import cobre


def bounds(case):
    rows = []

    def note(event):
        rows.append((event["lower_bound"], event["upper_bound"]))

    with tempfile.TemporaryDirectory() as folder:
        cobre.run.run(case, folder, threads=1, config_overrides={"simulation.enabled": False}, on_iteration=note)
    return rows


print(json.dumps([bounds(case) for case in sys.argv[1:]]))

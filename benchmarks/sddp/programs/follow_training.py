"""Train until somebody ends it, in ours or in cobre-python: a line [seconds of training, lower bound] an iteration."""

import json
import sys
import tempfile

import cobre
import cobre.run

request = json.loads(sys.argv[1])
overrides = {
    "simulation.enabled": False,
    "training.stopping_rules": [{"type": "iteration_limit", "limit": 100000}],
    "training.selection": {"method": "sampled", "forward_passes": request["forward_passes"]},
}


def listen(event):
    print(json.dumps([event["wall_time_ms"] / 1000.0, event["lower_bound"]]), flush=True)


with tempfile.TemporaryDirectory() as folder:
    cobre.run.run(request["case"], folder + "/output", request["threads"], overrides, listen)

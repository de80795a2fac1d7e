"""The same training again and again until somebody ends it, to keep a core busy: `train_again.py '{"case": ...}'`.

A line is printed when everything is loaded and the first training begins.
"""

import json
import sys

from train_workers import chosen_passes

import cobre

request = json.loads(sys.argv[1])
overrides = chosen_passes(request.get("forward_passes"))
cobre.train(request["case"], threads=1, iterations=1, config_overrides=overrides)
print("ready", flush=True)
while True:
    cobre.train(request["case"], threads=1, iterations=request["iterations"], config_overrides=overrides)

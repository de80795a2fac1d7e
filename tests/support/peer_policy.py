"""A script for cobre-python or novomodelo: simulate a policy of another program, and print its costs."""

import json
import sys
from importlib import import_module

import pyarrow.parquet as pq

module, case, exported, output = sys.argv[1:]
study = import_module(module).Study(case, output_dir=output)
policy = study.load_policy(exported)
study.simulate(policy, output)
costs = pq.read_table(f"{output}/simulation/scenario_summary.parquet")["discounted_immediate_cost"].to_pylist()
print(json.dumps({"lower_bound": policy.final_lower_bound, "iterations": policy.iterations, "costs": costs}))

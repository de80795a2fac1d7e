"""A script for cobre-python: simulate a policy that somebody else wrote, and tell what its scenarios cost."""

import json
import sys

import pyarrow.parquet as pq

import cobre

case, exported, output = sys.argv[1:]
study = cobre.Study(case, output_dir=output)
policy = study.load_policy(exported)
study.simulate(policy, output)
costs = pq.read_table(f"{output}/simulation/scenario_summary.parquet")["discounted_immediate_cost"].to_pylist()
print(json.dumps({"lower_bound": policy.final_lower_bound, "iterations": policy.iterations, "costs": costs}))

"""Scripts written for cobre-python, run unchanged by its interpreter and by ours.

A script prints one JSON object; `sys.argv` has a case directory and a fresh folder.
"""

WHOLE_RUN = """
import json, sys
import cobre

case, out = sys.argv[1:]
seen = []
limit = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 4}], "simulation.enabled": True,
         "simulation.selection": {"method": "sampled", "num_scenarios": 3}}
system = cobre.io.load_case(case)
result = cobre.run.run(case, output_dir=out, threads=1, config_overrides=limit, on_iteration=seen.append)
convergence = cobre.results.load_convergence(out)
table = cobre.results.load_convergence_arrow(out)
simulation = cobre.results.load_simulation(out)
hydros = cobre.results.load_simulation_arrow(out, "hydros")
policy = cobre.results.load_policy(out)
stage = policy["stage_cuts"][0]
print(json.dumps({
    "system": repr(system),
    "plants": [[plant.id, plant.name, plant.max_storage_hm3] for plant in system.hydros],
    "lines": [[line.source_bus_id, line.target_bus_id, line.direct_capacity_mw] for line in system.lines],
    "sections": sorted(result),
    "converged": result["converged"],
    "iterations": result["iterations"],
    "bounds": [[row["lower_bound"], row["upper_bound"]] for row in convergence],
    "told": [[row["iteration"], row["lower_bound"], row["upper_bound"], sorted(row)] for row in seen],
    "last": [result["lower_bound"], result["upper_bound"], result["gap_percent"]],
    "simulation": result["simulation"],
    "stochastic": result["stochastic"],
    "hydro_models": result["hydro_models"],
    "provenance": result["provenance"],
    "cuts": [[row["cuts_added"], row["cuts_removed"], row["cuts_active"], row["lp_solves"]] for row in convergence],
    "rows": {name: len(rows) for name, rows in simulation.items() if rows},
    "costs": [row["immediate_cost"] for row in simulation["costs"]],
    "iterations_in_table": table.num_rows,
    "storage": hydros.column("storage_final_hm3").to_pylist(),
    "water": hydros.column("water_value_per_hm3").to_pylist(),
    "keys": [[row["scenario_id"], row["stage_id"], row["node_id"], row["block_id"]] for row in simulation["buses"]],
    "stages": len(policy["stage_cuts"]),
    "producer": policy["metadata"]["producer"]["completed_iterations"],
    "first_cut": [stage["cuts"][0]["intercept"], *stage["cuts"][0]["coefficients"]],
    "state": [[entry["entity_type"], entry["entity_id"], entry["subindex"]] for entry in stage["entity_manifest"]],
}))
"""

STEP_BY_STEP = """
import json, sys
import cobre

case, out = sys.argv[1:]
limit = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 5}], "simulation.enabled": True,
         "simulation.selection": {"method": "sampled", "num_scenarios": 2}}
study = cobre.Study(case, out, config_overrides=limit)
checked = study.validate()
policy = study.train()
intercepts, coefficients = policy.cut_matrix(0)
state = [50.0] * coefficients.shape[1]
summary = study.simulate(policy)
again = cobre.Study(case, out, config_overrides=limit).load_policy()
print(json.dumps({
    "output": study.output_dir == out,
    "valid": checked["valid"],
    "sections": sorted(checked),
    "stages": study.stochastic["n_stages"],
    "iterations": [policy.iterations, again.iterations],
    "bounds": [policy.final_lower_bound, policy.final_upper_bound, again.final_lower_bound],
    "shapes": [list(intercepts.shape), list(coefficients.shape), str(intercepts.dtype)],
    "value": policy.evaluate(0, state),
    "same": abs(policy.evaluate(0, state) - float((intercepts + coefficients @ state).max())) < 1e-9,
    "reloaded": abs(again.evaluate(0, state) - policy.evaluate(0, state)) < 1e-9,
    "end": str(policy.evaluate(len(study.stochastic["openings_per_stage"]) - 1, state)),
    "summary": summary,
}))
"""

ERRORS = """
import json, os, shutil, sys
import cobre

case, out = sys.argv[1:]


def caught(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except cobre.errors.CobreError as error:
        kinds = (OSError, ValueError, RuntimeError)
        return ["CobreError", [kind.__name__ for kind in kinds if isinstance(error, kind)]]
    except Exception as error:
        return [kind.__name__ for kind in (OSError, ValueError, IndexError, KeyError) if isinstance(error, kind)]
    return None


broken = os.path.join(out, "broken")
shutil.copytree(case, broken)
os.remove(os.path.join(broken, "penalties.json"))
study = cobre.Study(case, os.path.join(out, "results"))
policy = study.train(on_iteration=lambda iteration: True)
dimension = policy.cut_matrix(0)[1].shape[1]


def complain(iteration):
    raise KeyError("enough")


print(json.dumps({
    "invalid": [caught(call, broken) for call in (cobre.io.load_case, cobre.Study, cobre.run.run)],
    "is_valid": cobre.io.validate(broken)["valid"],
    "nowhere": cobre.io.validate(os.path.join(out, "nowhere"))["valid"],
    "unknown_setting": caught(cobre.Study, case, out, config_overrides={"training.nonsense": 1}),
    "no_policy": caught(study.load_policy, os.path.join(out, "nothing")),
    "no_results": caught(cobre.results.load_convergence, os.path.join(out, "nothing")),
    "no_table": caught(cobre.results.load_simulation, study.output_dir, "unicorns"),
    "stage": caught(policy.evaluate, 1000, [0.0] * dimension),
    "state": caught(policy.evaluate, 0, [0.0] * (dimension + 1)),
    "callback": caught(cobre.run.run, case, os.path.join(out, "callback"), on_iteration=complain),
    "threads": caught(cobre.Study, case, threads=0),
}))
"""

TABLES = """
import json, sys
import cobre

case, out = sys.argv[1:]
limit = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 5}], "simulation.enabled": True,
         "simulation.selection": {"method": "sampled", "num_scenarios": 2}, "exports.stochastic": True}
cobre.run.run(case, output_dir=out, threads=1, config_overrides=limit)
tables = cobre.results.load_simulation_arrow(out)
tables["convergence"] = cobre.results.load_convergence_arrow(out)
found = cobre.results.load_results(out)
metadata = cobre.results.load_policy(out)["metadata"]
stages = cobre.results.load_policy(out)["stage_cuts"]
print(json.dumps({
    "tables": {name: {field.name: str(field.type) for field in table.schema} for name, table in tables.items()},
    "values": {name: table.to_pydict() for name, table in tables.items()},
    "training": {name: sorted(part) if isinstance(part, dict) else None
                 for name, part in found["training"]["manifest"].items()},
    "simulation": {name: sorted(part) if isinstance(part, dict) else None
                   for name, part in found["simulation"]["manifest"].items()},
    "metadata": sorted(metadata),
    "producer": sorted(metadata["producer"]),
    "cut": sorted(stages[0]["cuts"][0]),
    "cut_ids": [[cut["cut_id"] for cut in stage["cuts"]] for stage in stages],
    "manifests": [stage["entity_manifest"] for stage in stages],
    "priced": [stage["priced_state_date"] for stage in stages],
    "coefficients": cobre.results.load_stochastic(out).par_coefficients().tolist(),
    "tree": cobre.results.load_stochastic(out).opening_tree(1).tolist(),
}))
"""

# Their policy, ours to simulate: `sys.argv` has a case and the output directory of their run.
SIMULATE_THEIRS = """
import json, sys
import cobre

case, theirs = sys.argv[1:]
limit = {"simulation.enabled": True, "simulation.selection": {"method": "sampled", "num_scenarios": 2}}
study = cobre.Study(case, theirs, threads=1, config_overrides=limit)
policy = study.load_policy()
study.simulate(policy, output_dir=theirs + "-simulated")
plain = cobre.results.load_policy(theirs)
print(json.dumps({
    "costs": [row["immediate_cost"] for row in cobre.results.load_simulation(theirs + "-simulated", "costs")],
    "iterations": policy.iterations,
    "bounds": [policy.final_lower_bound, policy.final_upper_bound],
    "cuts": [[cut["intercept"], *cut["coefficients"]] for stage in plain["stage_cuts"] for cut in stage["cuts"]],
    "flags": [[cut["iteration"], cut["forward_pass_index"], cut["is_active"]]
              for stage in plain["stage_cuts"] for cut in stage["cuts"]],
    "state": plain["stage_cuts"][0]["entity_manifest"],
    "priced": [stage["priced_state_date"] for stage in plain["stage_cuts"]],
}))
"""

# The same with their run and simulation.
SIMULATE_OWN = SIMULATE_THEIRS.replace(
    "study = ",
    """cobre.run.run(case, theirs, threads=1, config_overrides={
    **limit, "training.stopping_rules": [{"type": "iteration_limit", "limit": 5}]})
study = """,
)

# Training that continues from a policy in the output directory.
WARM_START = """
import json, sys
import cobre

case, out = sys.argv[1:]
limit = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 3}], "simulation.enabled": False,
         "policy.mode": "warm_start"}
cobre.run.run(case, out, threads=1, config_overrides=limit)
policy = cobre.results.load_policy(out)
print(json.dumps({
    "bounds": [row["lower_bound"] for row in cobre.results.load_convergence(out)],
    "added": [row["cuts_added"] for row in cobre.results.load_convergence(out)],
    "warm": policy["metadata"]["producer"]["warm_start_counts"],
    "cuts": [stage["populated_count"] for stage in policy["stage_cuts"]],
}))
"""


# Additions of 0.19: cuts in units of the stage's scale, and checks of the content of a policy.
POLICIES = """
import json, sys
import cobre

case, out = sys.argv[1:]
limit = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 3}], "simulation.enabled": False}
study = cobre.Study(case, out, config_overrides=limit)
policy = study.train()
state = [500.0, 200.0]
before = policy.evaluate(0, state)
plain = cobre.results.load_policy(out)
first = plain["stage_cuts"][0]
inside = max(
    cut["intercept"] + sum(a * b for a, b in zip(cut["coefficients"], state)) for cut in first["cuts"]
)
for cut in first["cuts"]:
    cut["intercept"] += 1.0e6 / first["cost_scale_factor"]
cobre.write_policy_checkpoint(
    out + "/changed/policy", plain["stage_cuts"], plain["metadata"], stage_bases=plain["stage_bases"],
    stage_states=plain["stage_states"])
after = cobre.Study(case, out + "/changed", config_overrides=limit).load_policy().evaluate(0, state)


def kinds(call):
    try:
        call()
    except Exception as error:
        known = ("ValueError", "TypeError", "KeyError", "OSError")
        return [name for name in known if any(base.__name__ == name for base in type(error).__mro__)]
    return []


def write(stages=None, **producer):
    given = {**plain["metadata"]["producer"], "basis_store_complete": False, **producer}
    about = {**plain["metadata"], "producer": given}
    cobre.write_policy_checkpoint(out + "/bad/policy", stages or plain["stage_cuts"], about)


retired = [{**first, "cuts": [{**first["cuts"][0], "cut_id": 1}]}]
no_scale = [{name: value for name, value in first.items() if name != "cost_scale_factor"}]
print(json.dumps({
    "before": before,
    "inside": inside * first["cost_scale_factor"],
    "raised_by": after - before,
    "is_raised": abs((after - before) * first["cost_scale_factor"] - 1.0e6) < 1e-3,
    "keys": sorted(plain),
    "cut": sorted(first["cuts"][0]),
    "stage": sorted(first),
    "producer": {name: plain["metadata"]["producer"][name] for name in ("state_history", "activity_counters")},
    "retired": kinds(lambda: write(retired)),
    "no_scale": kinds(lambda: write(no_scale)),
    "states": kinds(lambda: write(total_visited_states=3)),
    "history": kinds(lambda: write(state_history=True)),
    "bases": kinds(lambda: write(basis_store_complete=True)),
}))
"""

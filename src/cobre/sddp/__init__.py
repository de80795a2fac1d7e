"""The method: forward passes, backward passes, cuts, bounds.

An iteration is in `training.loop`. Its inputs are made before: `resolved` and `hydro_models` give the numbers of
each stage, `lp` makes LPs of them, `problem` holds all of these. `cut_pool` holds the cuts, `plugins` the replaceable
decisions; `simulation` and `upper_bounds` use the policy.
"""

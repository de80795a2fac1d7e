"""The results of a run, read back under the names that scripts for cobre-python use.

A directory or file that is not there is a FileNotFoundError; an incomplete one is a `ResultsError`, an OSError too.
"""

from cobre.compat.results import (
    Stochastic,
    load_convergence,
    load_convergence_arrow,
    load_policy,
    load_results,
    load_simulation,
    load_simulation_arrow,
    load_stochastic,
)

__all__ = [
    "Stochastic",
    "load_convergence",
    "load_convergence_arrow",
    "load_policy",
    "load_results",
    "load_simulation",
    "load_simulation_arrow",
    "load_stochastic",
]

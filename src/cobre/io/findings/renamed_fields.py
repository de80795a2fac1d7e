"""Renamed and removed fields of older formats."""

from collections.abc import Mapping

# By file and key: the replacement.
RENAMED: Mapping[tuple[str, str], str] = {
    ("config.json", "forward_passes"): 'now training.selection: {"method": "sampled", "forward_passes": N}',
    ("config.json", "forward_pass"): "no longer used: remove it",
    ("config.json", "cut_formulation"): "no longer used: remove it",
    ("config.json", "num_scenarios"): 'now simulation.selection: {"method": "sampled", "num_scenarios": N}',
    ("config.json", "policy_type"): "no longer used: remove it",
    ("config.json", "output_path"): "no longer used: remove it: the output directory is an argument of the run",
    ("config.json", "output_mode"): "no longer used: remove it",
    ("config.json", "penalty_cost"): "now hydro.inflow_nonnegativity_cost in penalties.json",
    ("config.json", "source_stage"): "no longer used: remove it: the stage is found by its date",
    ("config.json", "validate_compatibility"): "now `strict`",
    ("stages.json", "num_scenarios"): "now `num_openings`",
    ("stages.json", "scenario_source"): "now training.scenario_source in config.json",
    ("penalties.json", "fpha_turbined_cost"): "now `turbined_cost`, charged on every plant",
    ("initial_conditions.json", "past_inflows"): "now dated windows in `recent_observations`",
    ("system/hydros.json", "bus_id"): "now in `unit_groups`, one group per bus",
    ("system/hydros.json", "productivity_mw_per_m3s"): "now in system/hydro_production_models.json",
    ("system/hydros.json", "filling_inflow_m3s"): "now `filling_min_rate_m3s`",
    ("system/hydros.json", "fpha_turbined_cost"): "now `turbined_cost`, charged on every plant",
    ("system/thermals.json", "gnl_config"): "now `anticipated_config`",
    ("system/hydro_production_models.json", "productivity_override"): "now `productivity_mw_per_m3s`",
}


def replacement_of(file: str, path: tuple[str | int, ...]) -> str:
    """Advice on a key of an older format; empty for other keys."""
    return RENAMED.get((file, str(path[-1])), "") if path else ""

"""Names of files and folders of cases and output directories. Light to import, unlike the modules of their formats."""

# Files of a case.

CONFIG_FILE = "config.json"
STAGES_FILE = "stages.json"
CONDITIONS_FILE = "initial_conditions.json"
PENALTIES_FILE = "penalties.json"
POST_STUDY_FILE = "post_study_stages.json"

BUSES_FILE = "system/buses.json"
LINES_FILE = "system/lines.json"
HYDROS_FILE = "system/hydros.json"
THERMALS_FILE = "system/thermals.json"
SOURCES_FILE = "system/non_controllable_sources.json"
STATIONS_FILE = "system/pumping_stations.json"
CONTRACTS_FILE = "system/energy_contracts.json"
PRODUCTION_FILE = "system/hydro_production_models.json"
ENERGY_PRODUCTIVITY_FILE = "system/hydro_energy_productivity.parquet"
HYPERPLANES_FILE = "system/fpha_hyperplanes.parquet"
GEOMETRY_FILE = "system/hydro_geometry.parquet"
TAILRACE_FILE = "system/tailrace_curves.parquet"

CORRELATION_FILE = "scenarios/correlation.json"
LOAD_FACTORS_FILE = "scenarios/load_factors.json"
SOURCE_FACTORS_FILE = "scenarios/non_controllable_factors.json"
HISTORY_FILE = "scenarios/inflow_history.parquet"
INFLOW_STATS_FILE = "scenarios/inflow_seasonal_stats.parquet"
INFLOW_COEFFICIENTS_FILE = "scenarios/inflow_ar_coefficients.parquet"
INFLOW_ANNUAL_FILE = "scenarios/inflow_annual_component.parquet"
LOAD_STATS_FILE = "scenarios/load_seasonal_stats.parquet"
SOURCE_STATS_FILE = "scenarios/non_controllable_stats.parquet"
EXTERNAL_INFLOWS_FILE = "scenarios/external_inflow_scenarios.parquet"
EXTERNAL_LOADS_FILE = "scenarios/external_load_scenarios.parquet"
EXTERNAL_SOURCES_FILE = "scenarios/external_ncs_scenarios.parquet"
OPENINGS_FILE = "scenarios/noise_openings.parquet"

CONSTRAINTS_FILE = "constraints/generic_constraints.json"
PARAMETERS_FILE = "constraints/generic_parameters.json"
CONSTRAINT_BOUNDS_FILE = "constraints/generic_constraint_bounds.parquet"
SOURCE_BOUNDS_FILE = "constraints/ncs_bounds.parquet"

# Files and folders of an output directory.

OUTPUT = "output"  # folder of a case: default output directory
EVENT_FILE = "events.jsonl"
LOCK_FILE = "run.lock"
LOG_FILE = "run.log"  # what a run in the background printed
STUDY_FILE = "study.json"
SUMMARY_FILE = "summary.json"
REPORT_FILE = "report.html"
BOUND_FILE = "bound.json"
MANIFEST_FILE = "manifest.json"
POLICY = "policy"
POLICY_FILE = "policy.bin"
TRAINING = "training"
CONVERGENCE = "convergence"  # table in TRAINING
CONVERGENCE_FILE = f"{CONVERGENCE}.parquet"
SIMULATION = "simulation"
FAILURES = "failures"
CHECKPOINTS = "checkpoints"
STATES, STOCHASTIC, HYDRO_MODELS = "states", "stochastic", "hydro_models"  # of `exports` in config.json

RUN_FILES = (
    EVENT_FILE,
    STUDY_FILE,
    SUMMARY_FILE,
    f"{TRAINING}/{MANIFEST_FILE}",
    f"{SIMULATION}/{MANIFEST_FILE}",
)
"""A directory with any of these was written by `cobre run`."""

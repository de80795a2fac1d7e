"""What a case may ask for beyond results (`exports` in config.json): states, noise, and how planes were fitted.

OUT/states/states.parquet                     every trial point of training: the state that entered a stage
OUT/stochastic/*.parquet, correlation.json    the inflow model and the openings, in the formats of a case
OUT/hydro_models/fpha_deviation_points.parquet, fpha_hyperplanes.parquet
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.config import ExportsConfig
from cobre.io.output.results import write_results
from cobre.io.storage.arrow_columns import column_of, table_of
from cobre.policy.object import state_names
from cobre.runs.files import HYDRO_MODELS, STATES, STOCHASTIC
from cobre.sddp.problem.prepared import PreparedStudy
from cobre.sddp.training.visited import VisitedStates
from cobre.study.output.exports.hydro import fpha_tables
from cobre.study.output.exports.stochastic import write_stochastic

if TYPE_CHECKING:
    import pyarrow as pa


def write_study_exports(output: Path, study: PreparedStudy) -> None:
    """Write the exports that do not depend on training: the noise model, and fits of production planes."""
    asked: ExportsConfig = study.case.config.exports
    if asked.stochastic:
        write_stochastic(output / STOCHASTIC, study.case, study.noise)
    if asked.fpha_deviation_points:
        write_results(output / HYDRO_MODELS, fpha_tables(study.case), {})


def write_state_export(output: Path, study: PreparedStudy, visited: VisitedStates, first_iteration: int = 1) -> None:
    """What training visited; see `states_table`."""
    if study.case.config.exports.states:
        table = states_table(study, list(visited.tables()), first_iteration)
        write_results(output / STATES, {"states": table}, {})


def states_table(study: PreparedStudy, visited: Sequence[Floats], first_iteration: int = 1) -> "pa.Table":
    """One row for each iteration, stage and forward pass; a column for each entry of the state, named as in policies.

    visited: by iteration, forward passes x (stages x entries), as training keeps them.
    """

    stage_ids = [stage.id for stage in study.case.horizon.stages]
    names = state_names(study)
    shapes = [(number, len(points)) for number, points in enumerate(visited, start=first_iteration)]
    by_stage = [points.reshape(len(points), len(stage_ids), len(names)).transpose(1, 0, 2) for points in visited]
    values = np.concatenate([np.zeros((0, len(names))), *(points.reshape(-1, len(names)) for points in by_stage)])
    columns = {
        "iteration": np.repeat([n for n, _ in shapes], [len(stage_ids) * paths for _, paths in shapes]),
        "stage_id": np.concatenate([np.zeros(0), *(np.repeat(stage_ids, paths) for _, paths in shapes)]),
        "forward_pass": np.concatenate(
            [np.zeros(0), *(np.tile(np.arange(paths), len(stage_ids)) for _, paths in shapes)]
        ),
    }
    table = {name: column_of(np.asarray(column).astype(np.int32)) for name, column in columns.items()}
    return table_of(table | {name: column_of(values[:, at]) for at, name in enumerate(names)})

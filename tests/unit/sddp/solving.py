"""Solve small systems: their LPs, bounds and simulations."""

import numpy as np

from cobre.comm.backends.local import LocalCommunicator
from cobre.io.case import load_case
from cobre.sddp.simulation.policy_simulation import PolicySimulator, SimulationOutput, simulate
from cobre.sddp.simulation.tables import EntityIds
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.training.train import train_study


def problem_of(case, folder):
    """Return the LPs of all stages."""
    return prepare(load_case(case.write(folder))).problem


def train_folder(folder, overrides=None, threads=1):
    """Train a policy for a case directory."""
    study = prepare(load_case(folder, overrides))
    comm = LocalCommunicator()
    return train_study(comm, ReadyStudy(study, make_solver(study, threads)))


def train(case, folder):
    """Train a policy for a small system."""
    return train_folder(case.write(folder))


def lower_bound(case, folder):
    """Return the lower bound after as many iterations as the system asks for."""
    return train(case, folder).history[-1].lower_bound


class Collected:
    """A sink that keeps all rows, piece by piece."""

    def __init__(self):
        self.pieces = []

    def write(self, table, columns):
        """Take rows of a table."""
        self.pieces.append((table, dict(columns)))

    def scenarios_done(self, costs):
        """Do nothing."""

    def tables(self):
        """Return every table's columns as whole arrays."""
        tables = {}
        for name, columns in self.pieces:
            for column, values in columns.items():
                tables.setdefault(name, {}).setdefault(column, []).append(values)
        return {
            name: {column: np.concatenate(parts) for column, parts in columns.items()}
            for name, columns in tables.items()
        }


def simulate_into(sink, trained, scenarios, comm=None, memory=None, pool=None, failure_folder=None, **others):
    """Simulate the trained policy, or the cuts of another pool, into the sink; return the outcome."""
    study = trained.study
    pool = trained.context.pool if pool is None else pool
    sampler = study.noise.simulation_sampler
    simulator = PolicySimulator(study.problem, trained.solver, pool, sampler, failure_folder)
    output = SimulationOutput(sink, EntityIds.of(study.case.system), **others)
    return simulate(comm or LocalCommunicator(), simulator, scenarios, output, memory)


def simulate_trained(trained, scenarios, comm=None, memory=None, **others):
    """Simulate the trained policy; return the outcome and all tables."""
    sink = Collected()
    outcome = simulate_into(sink, trained, scenarios, comm, memory, **others)
    return outcome, sink.tables()


def matrix_of(lp):
    """Return a stage's LP in plain units: {row name: {column name: coefficient}}."""
    program = lp.program
    rows = {name: {} for name in program.names.rows}
    for row, name in enumerate(program.names.rows):
        for entry in range(program.row_start[row], program.row_start[row + 1]):
            column = program.column_index[entry]
            scale = program.row_scale[row] * program.column_scale[column]
            rows[name][program.names.columns[column]] = program.value[entry] / scale
    return rows


def limits_of(lp):
    """Return bounds of all columns in plain units: {column name: (lower, upper)}."""
    program = lp.program
    lower = (program.column_lower * program.column_scale).tolist()
    upper = (program.column_upper * program.column_scale).tolist()
    return dict(zip(program.names.columns, zip(lower, upper, strict=True), strict=True))


def inputs_of(lp):
    """Return what states (v0, ...) and inflows (z0, ...) add to right-hand sides: {row name: {input: factor}}."""
    program = lp.program
    by_key = {}
    for row, index, value in zip(program.input_row, program.input_index, program.input_value, strict=True):
        name = f"v{index}" if index < program.num_decided else f"z{index - program.num_decided}"
        by_key.setdefault(program.names.rows[row], {})[name] = value / program.row_scale[row]
    return by_key

"""A training of the peer, checked solve by solve: `python benchmarks/first_bounds.py DECK --peer PYTHON`.

First lower bounds of two programs differ although every LP is the same: optimal volumes and duals are not unique, so
that cuts are made at other points and with other slopes. Optimal values are unique. So the peer trains, and its trial
points and cuts are put into our LPs:

- its cut at its trial point is what all openings of the next stage cost here, under its later cuts;
- its volumes, fixed in our LP of the forward pass, cost what our optimum costs;
- where the slopes of its cut are not those of our duals, the cost-to-go has a kink that has room for both;
- its cuts in our first stage give its lower bound, and our forward costs along its path add up to its upper bound.

The peer of a case in format 0.18 is cobre-python, which reads three things differently; they are taken out of the deck
first (`without_known_differences`). That of 0.19 is novomodelo, and the deck is taken as it is.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cobre._native import average_cuts
from cobre.core.arrays import Floats
from cobre.io.case import load_case
from cobre.io.policies.cobre_python_policy import IDENTIFIER, FlatTable, read_cobre_python_policy
from cobre.policy.object import state_names
from cobre.sddp.cut_pool import CutSet
from cobre.sddp.problem.boundary import BoundaryCuts
from cobre.sddp.problem.openings import realise
from cobre.sddp.problem.problem import PreparedStudy
from cobre.sddp.scenarios import draw_noise
from cobre.solver.batches import Batch, Chains, CutRows, Outputs, Realisations, no_bases
from cobre.solver.simplex import SimplexSolver
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver

STATES = 3  # field number of a file of visited states: all of them, one after another
STEP_HM3 = 0.01  # to either side of a trial point, for one-sided slopes
ZERO_EIGENVALUE = 1e-10  # of a correlation matrix, whose largest ones are above 10
PROGRAM = """
import importlib, json, sys
program = importlib.import_module(sys.argv[1])
program.run.run(sys.argv[2], sys.argv[3], threads=1, config_overrides=json.loads(sys.argv[4]))
"""
MODULES = {"0.18": "cobre", "0.19": "novomodelo"}


@dataclass(frozen=True, slots=True)
class CutLine:
    """A cut of the peer. theirs, ours: its value at its trial point. Slopes: of the plant where ours differs most.

    left, right: what the cost-to-go falls by per hm3 less, and grows by per hm3 more, in that plant.
    """

    iteration: int
    stage: int
    theirs: float
    ours: float
    plant: str
    their_slope: float
    our_slope: float
    left: float
    right: float

    @property
    def difference(self) -> float:
        return relative(self.ours, self.theirs)

    def is_kink(self, tolerance: float = 1e-3) -> bool:
        """Return whether both slopes lie between the one-sided ones, or are the same."""
        scale = tolerance * max(1.0, abs(self.left), abs(self.right))
        slopes = (self.their_slope, self.our_slope)
        return all(self.left - scale <= slope <= self.right + scale for slope in slopes)


@dataclass(frozen=True, slots=True)
class ForwardLine:
    """A stage of the peer's forward pass in our LP: optimal cost, and with its volumes; hm3: how far ours are away."""

    iteration: int
    stage: int
    optimum: float
    with_their_volumes: float
    moved_hm3: float

    @property
    def difference(self) -> float:
        return relative(self.with_their_volumes, self.optimum)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that was compared. Bounds by iteration, theirs and ours from their cuts; paths: costs, likewise.

    openings: largest difference of an opening, and of its part outside the null space of the correlation.
    """

    bounds: list[tuple[float, float]]
    paths: list[tuple[float, float]]
    cuts: list[CutLine]
    forward: list[ForwardLine]
    openings: tuple[float, float]


def relative(ours: float, theirs: float) -> float:
    """Return the difference of two costs, relative to the second."""
    return (ours - theirs) / max(abs(theirs), 1e-300)


def without_known_differences(case: Path) -> None:
    """Remove the inputs that cobre-python reads differently (table in ADR 0047) from a deck of December 2025.

    These are the minimum outflow of a plant that does not exist yet, planes of a plant whose machines come later, and
    minimum turbined flows by stage.
    """
    file = case / "system" / "hydros.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    entries = {hydro["id"]: hydro["entry_stage_id"] for hydro in document["hydros"] if hydro.get("entry_stage_id")}
    for hydro in document["hydros"]:
        if hydro["id"] in entries:
            hydro["outflow"]["min_outflow_m3s"] = 0.0
    file.write_text(json.dumps(document), encoding="utf-8")
    bounds = case / "constraints" / "hydro_bounds.parquet"
    table = pq.ParquetFile(bounds).read()
    rows = table.to_pylist()
    for row in rows:
        row["min_turbined_m3s"] = None
        if row["hydro_id"] in entries and row["stage_id"] >= entries[row["hydro_id"]]:
            row["max_turbined_m3s"] = row["max_generation_mw"] = None
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), bounds, compression="zstd")


def overrides(iterations: int, scenarios: int = 1) -> dict[str, object]:
    """Return the settings for both programs: one forward pass, and exports of everything compared."""
    return {
        "training.selection.forward_passes": 1,
        "training.stopping_rules": [{"type": "iteration_limit", "limit": iterations}],
        "simulation.selection.num_scenarios": scenarios,
        "exports.states": True,
        "exports.stochastic": True,
    }


def run_peer(python: Path, module: str, case: Path, output: Path, settings: dict[str, object]) -> None:
    """Train and simulate with the peer; it may have our package's name, so nothing of ours is on its path."""
    command = [python, "-I", "-c", PROGRAM, module, case, output, json.dumps(settings)]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the peer failed on {case}:\n{done.stderr}")


class PeerRun:
    """Results of a training run by the peer, with states in our order."""

    def __init__(self, study: PreparedStudy, output: Path) -> None:
        self._output = output
        policy = read_cobre_python_policy(output / "policy" / "manifest.bin")
        names = policy.metadata.state_names
        order = [names.index(name) for name in state_names(study)]
        ignored = sorted(set(range(len(names))) - set(order))
        for cuts in policy.stages:
            if cuts.coefficients[:, ignored].any():
                raise SystemExit("the peer's cuts depend on states that this study does not have")
        self._cuts = [
            (cuts.intercepts, np.ascontiguousarray(cuts.coefficients[:, order]), np.asarray(cuts.iteration))
            for cuts in policy.stages
        ]
        self.states = [
            np.ascontiguousarray(self._visited(stage).reshape(-1, len(names))[:, order])
            for stage in range(len(policy.stages) - 1)
        ]
        table = pq.ParquetFile(output / "training" / "convergence.parquet").read()
        self.bounds, self.path_costs = table["lower_bound"].to_pylist(), table["upper_bound"].to_pylist()
        self.openings = self._openings(study)

    def cuts(self, stage: int, iterations: int) -> CutSet:
        """Return the cuts of a stage that exist after a number of iterations."""
        intercepts, coefficients, made = self._cuts[stage]
        return CutSet(intercepts[made <= iterations], coefficients[made <= iterations])

    def _visited(self, stage: int) -> Floats:
        content = (self._output / "policy" / "states" / f"{stage:03d}.bin").read_bytes()
        return FlatTable.root(content, IDENTIFIER).vector(STATES, "<f8")

    def _openings(self, study: PreparedStudy) -> list[Floats]:
        table = pq.ParquetFile(self._output / "stochastic" / "noise_openings.parquet").read()
        stage, opening, entity, value = (table[name].to_numpy() for name in table.schema.names)
        found = [np.zeros_like(values) for values in study.noise.openings]
        for number, values in enumerate(found):
            rows = stage == study.case.horizon.stages[number].id
            values[opening[rows], entity[rows]] = value[rows]
        return found


class Checker:
    """Our LPs with the peer's openings, trial points and cuts."""

    def __init__(self, study: PreparedStudy, peer: PeerRun) -> None:
        self._study, self._peer, self._problem = study, peer, study.problem
        self._solver = make_solver(study, 1)
        self._noise = [realise(study.noise, stage, values) for stage, values in enumerate(peer.openings)]

    def bound(self, iteration: int) -> float:
        """Return our lower bound, in $, from the peer's cuts after an iteration."""
        batch = self._solve(0, self._rows(0, iteration), self._problem.initial_state, self._noise[0])
        return self._value(0, batch) * self._problem.cost_scale

    def cut_line(self, iteration: int, stage: int) -> CutLine:
        """Compare the peer's cut of an iteration for the state after a stage with ours at the same trial point."""
        point, cuts = self._peer.states[stage][iteration - 1], self._peer.cuts(stage, iteration)
        intercept, slopes = cuts.intercepts[-1], cuts.coefficients[-1]
        batch = self._next(iteration, stage, point, Outputs(gradient=True))
        costs = batch.objective[None]
        weights = np.ascontiguousarray(self._problem.risk[stage].weights(costs))
        ours = average_cuts(costs, weights, batch.gradient, point[None])[0, 1:]
        value = float((weights * costs).sum())
        storages = slice(self._problem.num_hydros)
        plant = int(np.abs(ours[storages] - slopes[storages]).argmax())
        move = np.zeros_like(point)
        move[plant] = STEP_HM3
        less, more = (self._value(stage, self._next(iteration, stage, at)) for at in (point - move, point + move))
        return CutLine(
            iteration,
            stage,
            float(intercept + slopes @ point),
            value,
            self._study.case.system.hydros[plant].name,
            float(slopes[plant]),
            float(ours[plant]),
            (value - less) / STEP_HM3,
            (more - value) / STEP_HM3,
        )

    def forward_line(self, iteration: int, stage: int) -> ForwardLine:
        """Compare our optimum in one stage of the peer's path with the cost at the peer's volumes."""
        program = self._problem.stages[stage].program
        entering, leaving = self._entering(iteration, stage), self._peer.states[stage][iteration - 1]
        noise, rows = self._noise_of_path(iteration, stage), self._rows(stage, iteration - 1)
        free = self._solve(stage, rows, entering, noise, Outputs(solution=True))
        low, high = program.column_lower.copy(), program.column_upper.copy()
        columns, decided = program.state_column, leaving[: program.num_decided]
        wanted = decided / program.column_scale[columns]
        low[columns] = high[columns] = np.clip(wanted, low[columns], high[columns])
        solver = SimplexSolver(1)
        solver.load(stage, replace(program, column_lower=low, column_upper=high))
        fixed = self._solve(stage, rows, entering, noise, solver=solver)
        moved = float(np.abs(free.decided[0] - decided).max())
        return ForwardLine(iteration, stage, float(free.objective[0]), float(fixed.objective[0]), moved)

    def path_cost(self, iteration: int) -> float:
        """Return the total cost of our optima along the peer's path, in $ of the first stage."""
        problem, total = self._problem, 0.0
        for stage, discount in enumerate(problem.discount_to_first_stage):
            rows, noise = self._rows(stage, iteration - 1), self._noise_of_path(iteration, stage)
            batch = self._solve(stage, rows, self._entering(iteration, stage), noise, Outputs(solution=True))
            cost = float(batch.objective[0] - problem.future_weight(stage) * batch.future_cost[0])
            total += discount * cost
        return total * problem.cost_scale

    def _entering(self, iteration: int, stage: int) -> Floats:
        return self._problem.initial_state if stage == 0 else self._peer.states[stage - 1][iteration - 1]

    def _noise_of_path(self, iteration: int, stage: int) -> Realisations:
        """Return the noise of the forward pass, sampled here, with the inflows contained in the peer's next state."""
        drawn, index = draw_noise(self._problem, self._study.noise.training_sampler, iteration, [0], stage)
        drawn, program = drawn.take(index), self._problem.stages[stage].program
        if not program.num_lags or self._problem.is_last(stage):
            return drawn
        first = program.num_decided
        inflow = self._peer.states[stage][iteration - 1][first : first + program.num_hydros]
        lags = program.lags_of(self._entering(iteration, stage))
        memory = np.einsum("lh,lh->h", program.autoregression, lags)
        return Realisations(np.ascontiguousarray((inflow - memory)[None]), drawn.load_mw, drawn.availability)

    def _rows(self, stage: int, iterations: int) -> CutRows:
        return BoundaryCuts(self._peer.cuts(stage, iterations), ()).rows()

    def _next(self, iteration: int, stage: int, point: Floats, outputs: Outputs | None = None) -> Batch:
        after = stage + 1
        return self._solve(after, self._rows(after, iteration), point, self._noise[after], outputs)

    def _value(self, stage: int, batch: Batch) -> float:
        costs = batch.objective[None]
        return float((self._problem.risk[stage].weights(costs) * costs).sum())

    def _solve(
        self,
        stage: int,
        rows: CutRows,
        state: Floats,
        noise: Realisations,
        outputs: Outputs | None = None,
        solver: SimplexSolver | None = None,
    ) -> Batch:
        """Solve the stage for one state and every realisation, from a cold start."""
        count = len(noise.inflow_m3s)
        bases = no_bases(self._problem.stages[stage].program)
        cold, both = np.full(1, -1, np.int32), np.array([0, count], np.int32)
        chains = Chains(state[None].copy(), both, noise, np.arange(count, dtype=np.int32), bases, cold)
        return (solver or self._solver).solve(stage, rows, chains, outputs or Outputs())


def differences_of_openings(study: PreparedStudy, peer: PeerRun) -> tuple[float, float]:
    """Return the largest difference between openings, in all and outside the null space of the correlation.

    The correlation of 159 plants estimated from 95 years is singular. Rounding leaves its zero eigenvalues at 1e-15 or
    so, either side of zero, and the matrix root takes their square roots: noise of 1e-8 in the null space alone.
    """
    from cobre.stochastic.inflows import describe_inflows  # noqa: PLC0415

    correlation = describe_inflows(study.case).correlation
    largest, outside = 0.0, 0.0
    for number, stage in enumerate(study.case.horizon.stages):
        profile = correlation.profiles[correlation.schedule.get(stage.id, "default")]
        matrix = profile[0].matrix
        values, vectors = np.linalg.eigh(matrix)
        kept = vectors[:, values > ZERO_EIGENVALUE]
        gap = (study.noise.openings[number] - peer.openings[number])[:, : len(matrix)]
        largest = max(largest, float(np.abs(gap).max()))
        outside = max(outside, float(np.abs(gap @ kept).max()))
    return largest, outside


def compare(study: PreparedStudy, output: Path) -> Comparison:
    """Compare a study with what its peer left in a folder; every stage of every iteration."""
    peer = PeerRun(study, output)
    checker, iterations = Checker(study, peer), range(1, len(peer.bounds) + 1)
    stages = range(study.problem.num_stages - 1)
    return Comparison(
        [(theirs, checker.bound(it)) for it, theirs in zip(iterations, peer.bounds, strict=True)],
        [(theirs, checker.path_cost(it)) for it, theirs in zip(iterations, peer.path_costs, strict=True)],
        [checker.cut_line(it, stage) for it in iterations for stage in stages],
        [checker.forward_line(it, stage) for it in iterations for stage in stages],
        differences_of_openings(study, peer),
    )


def text_of(found: Comparison) -> str:
    """Format the comparison as tables; costs in units of the cost scale, bounds in $."""
    lines = [
        "| iteration | their bound | ours from their cuts | | cost of their path | ours along it | |",
        "|---" * 7 + "|",
    ]
    for number, ((theirs, ours), (path, our_path)) in enumerate(zip(found.bounds, found.paths, strict=True), 1):
        lines.append(
            f"| {number} | {theirs:.3f} | {ours:.3f} | {relative(ours, theirs):.1e} "
            f"| {path:.3f} | {our_path:.3f} | {relative(our_path, path):.1e} |"
        )
    largest, outside = found.openings
    lines += ["", f"openings: {largest:.1e} apart, {outside:.1e} outside the null space of the correlation", ""]
    columns = ("iteration, stage", "their cut there", "our value", "", "forward optimum", "with their volumes", "")
    slopes = ("volumes apart, hm3", "slope of", "left", "theirs", "ours", "right")
    lines += [f"| {' | '.join((*columns, *slopes))} |", "|---" * 13 + "|"]
    for cut, path in zip(found.cuts, found.forward, strict=True):
        lines.append(
            f"| {cut.iteration}, {cut.stage} | {cut.theirs:.6f} | {cut.ours:.6f} | {cut.difference:.1e} "
            f"| {path.optimum:.6f} | {path.with_their_volumes:.6f} | {path.difference:.1e} | {path.moved_hm3:.1f} "
            f"| {cut.plant} | {cut.left:.6f} | {cut.their_slope:.6f} | {cut.our_slope:.6f} | {cut.right:.6f} |"
        )
    return "\n".join(lines)


def copy_deck(deck: Path, case: Path) -> str:
    """Copy a deck, without what the peer of its format reads differently; returns the format."""
    shutil.copytree(deck, case, copy_function=shutil.copyfile)
    for path in [case, *case.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    version = load_case(case, overrides(1)).format_version
    if version == "0.18":
        without_known_differences(case)
    return version


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the peer, compare, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("deck", type=Path, help="a case folder, such as pmo_2025_12_v19_first_12")
    parser.add_argument(
        "--peer", type=Path, required=True, help="interpreter of cobre-python (0.18) or novomodelo (0.19)"
    )
    parser.add_argument("--iterations", type=int, default=1)
    parser.add_argument(
        "--output", type=Path, default=Path("build/first_bounds"), help="the peer's run, and the tables"
    )
    options = parser.parse_args(arguments)
    case, output = options.output / "case", options.output / "peer"
    version = copy_deck(options.deck, case)
    settings = overrides(options.iterations)
    run_peer(options.peer, MODULES[version], case, output, settings)
    found = compare(prepare(load_case(case, settings)), output)
    print(text_of(found))
    (options.output / "comparison.json").write_text(json.dumps(asdict(found), indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Stage LPs that cannot be solved: a message in terms of hydro planning, and files for other tools."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import HM3_PER_M3S_HOUR, Floats
from cobre.errors import SolverError
from cobre.io.storage.atomic import check_writable, write_file
from cobre.io.storage.stored_json import write_json
from cobre.records import dataclass
from cobre.sddp.lp.build import StageLp
from cobre.sddp.lp.plan import StagePlan
from cobre.solver.batches import FailedInputs, LpSolver, Realisations, SolveFailedError
from cobre.solver.program import INFEASIBLE, UNBOUNDED, Names

BASIS_STATUS = ("at lower", "basic", "at upper", "at zero")


@dataclass(frozen=True, slots=True)
class EntityNames:
    """Names of plants in messages, in canonical order."""

    hydros: tuple[str, ...]


class StageFailedError(SolverError):
    """A stage that has no solution, or none that the solver finds. `saved`: the LP, None when nothing was written."""

    def __init__(self, message: str, stage_id: int, status: str, saved: Path | None) -> None:
        super().__init__(message)
        self.stage_id = self.stage = stage_id
        self.status = status
        self.saved = saved
        self.remedy = "relax the limits that the message names" if saved is None else f"cobre explain {saved}"

    def details(self) -> dict[str, Any]:
        """Return the details, with `status` (of the LP) and `saved`, its file."""
        saved = None if self.saved is None else str(self.saved)
        return super().details() | {"status": self.status, "saved": saved}


@dataclass(frozen=True, slots=True)
class StartingBasis:
    """Start of the chain of a failed solve, and the number of its solves that had succeeded.

    status: of columns, then of rows; None: cold start. tight_cuts: slots of the cuts that were at their bound.
    """

    status: tuple[int, ...] | None
    tight_cuts: tuple[int, ...]
    solved_before: int

    @classmethod
    def of(cls, inputs: FailedInputs) -> "StartingBasis":
        """Return the starting basis of the chain that failed."""
        status = None if inputs.basis_status is None else tuple(inputs.basis_status.tolist())
        return cls(status, tuple(inputs.basis_cuts.tolist()), inputs.solved_before)

    def described(self, names: Names) -> dict[str, object]:
        """Return the basis status of each column and row by name, as JSON values."""
        content: dict[str, object] = {"solved_before": self.solved_before, "tight_cuts": list(self.tight_cuts)}
        if self.status is None:
            return content | {"columns": None, "rows": None}
        words = [BASIS_STATUS[code] for code in self.status]
        count = len(names.columns)
        columns, rows = dict(zip(names.columns, words, strict=False)), dict(zip(names.rows, words[count:], strict=True))
        return content | {"columns": columns, "rows": rows}


@dataclass(frozen=True, slots=True)
class FailedSolve:
    """One solve that failed, with everything that went into it. stage: number of the program in the solver."""

    lp: StageLp
    stage: int
    where: str
    status: str
    state: Floats
    inflow_m3s: Floats
    load_mw: Floats
    availability: Floats
    basis: StartingBasis

    @classmethod
    def of(cls, lp: StageLp, where: str, error: SolveFailedError, noise: Realisations) -> "FailedSolve":
        """Complete the inputs of a failed LP by the realisation that it was solved for."""
        state, row = error.inputs.state, error.inputs.realisation
        inflow = lp.program.realised_inflow(state, noise.inflow_m3s[row])
        basis = StartingBasis.of(error.inputs)
        realised = inflow, noise.load_mw[row], noise.availability[row]
        return cls(lp, error.inputs.stage, where, error.status, state, *realised, basis)

    def as_error(self, names: EntityNames, solver: LpSolver, folder: Path | None, file_name: str) -> StageFailedError:
        """Return the failure in words, and write the LP to `folder` (None: nowhere) as `file_name`."""
        message, saved = self.explain(names), None
        if folder is not None:
            saved = self.save(solver, folder, file_name)
            message += f" The LP was saved as {saved}."
        return StageFailedError(message, self.lp.plan.data.stage.id, self.status, saved)

    def explain(self, names: EntityNames) -> str:
        """Return a message for a planner: stage, scenario, what is infeasible or unbounded, and what to check."""
        stage = self.lp.plan.data.stage
        head = f"stage {stage.id} ({stage.start_date} to {stage.end_date}), {self.where}: the LP is {self.status}."
        reasons = list(self._dry_reservoirs(names)) if INFEASIBLE in self.status else []
        if reasons:
            return " ".join([head, "Too little water:", "; ".join(reasons) + "."])
        if self.status == UNBOUNDED:
            return f"{head} A decision earns money without limit: look for negative costs and prices without a limit."
        return f"{head} {_GENERAL_ADVICE}"

    def _dry_reservoirs(self, names: EntityNames) -> Iterator[str]:
        """Yield plants that cannot keep their minimum volume whatever is decided: no other plant's water reaches them.

        Withdrawals do not count, because they may be cut at a penalty.
        """
        plan = self.lp.plan
        hydro = plan.data.hydro
        gain = HM3_PER_M3S_HOUR * plan.total_hours * self.inflow_m3s
        max_storage = self.state[: plan.num_hydros] + gain
        is_bound = plan.has_hard_minimum & ~plan.has_inflow_slack & ~_receives_water(plan)
        for h in np.flatnonzero(is_bound & (max_storage < hydro.min_storage_hm3)).tolist():
            yield (
                f"{names.hydros[h]} starts with {self.state[h]:.6g} hm3, receives {gain[h]:.6g} hm3 and must keep "
                f"{hydro.min_storage_hm3[h]:.6g} hm3 (inflow {self.inflow_m3s[h]:.6g} m3/s; the inflow method "
                "'penalty' or 'truncation' avoids this)"
            )

    def save(self, solver: LpSolver, folder: Path, name: str) -> Path:
        """Write the LP as MPS and its inputs as JSON, and return the path of the MPS file."""
        check_writable(folder)
        path = folder / f"{name}.mps"
        with tempfile.TemporaryDirectory(prefix="cobre-") as scratch:  # the LP library opens the file by its name
            scratch_file = Path(scratch) / path.name
            solver.save_failed(self.stage, scratch_file)
            write_file(path, scratch_file.read_bytes())
        content = {
            "stage_id": self.lp.plan.data.stage.id,
            "where": self.where,
            "status": self.status,
            "state": self.state.tolist(),
            "inflow_m3s": self.inflow_m3s.tolist(),
            "load_mw": self.load_mw.tolist(),
            "availability": self.availability.tolist(),
            "basis": self.basis.described(self.lp.program.names),
            "plant_of_pair": self.lp.plan.pair_hydro.tolist(),  # columns of units are by pair of plant and bus
            "column_scale": self.lp.program.column_scale.tolist(),
            "row_scale": self.lp.program.row_scale.tolist(),
        }
        write_json(folder / f"{name}.json", content)
        return path


def _receives_water(plan: StagePlan) -> NDArray[np.bool_]:
    """Return by plant whether releases, diversions or pumps of other plants can bring water to its reservoir."""
    topology = plan.topology
    targets = (topology.downstream, topology.diversion_target, topology.pumping_destination)
    reached = np.concatenate([plan.receiver_of(target) for target in targets])
    is_reached = np.zeros(plan.num_hydros, np.bool_)
    is_reached[reached[reached >= 0]] = True
    return is_reached


_GENERAL_ADVICE = (
    "Check the limits that cannot be violated at a penalty: minimum storage, minimum generation of thermal plants, "
    "contracts and pumps with a minimum, and generic constraints without slack."
)

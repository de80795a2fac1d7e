"""Results of training and simulation for scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from cobre import notebook
from cobre.core.bounds import BOUND_NAMES, relative_gap
from cobre.core.confidence import half_width_95
from cobre.core.policy_cost import NO_POLICY_COST
from cobre.core.stopping import StopKind
from cobre.core.verdict import BoundHistory, ComputedBound, ConvergenceVerdict, PathCosts, verdict
from cobre.policy.object import Policy, policy_water_values, simulated_water_values
from cobre.records import dataclass
from cobre.runs.labels import NOT_A_BOUND
from cobre.runs.summary import WorkerReport, bound_history, convergence_table
from cobre.sddp.iteration_records import IterationRecord
from cobre.solver.batches import SolveStatistics
from cobre.study.dataframes import as_pandas, as_polars, as_xarray, library, with_names
from cobre.text import gap_percent, money

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """An iteration of one worker, the argument of a `progress_callback`; iterations are in order.

    lower_bound, upper_bound, half_width: $; the upper bound is the mean of the sampled paths. policy_cost: $, with the
    half-width of its 95 % confidence interval; None if unknown. gap: from the lower bound to the cost of the policy,
    else to the upper bound, relative to the lower bound; None under a risk measure where only that mean is known.
    cuts: per stage, inactive ones included. elapsed_s: since training began. busy_s, waiting_s: of this worker in
    this iteration.
    """

    worker: int
    iteration: int
    lower_bound: float
    upper_bound: float
    half_width: float
    policy_cost: float | None
    policy_cost_half_width: float | None
    gap: float | None
    cuts: int
    elapsed_s: float
    busy_s: float
    waiting_s: float


@dataclass(frozen=True)
class TrainingResult:
    """Result of `cobre.train`: the policy, the bounds of every iteration, and why training ended. Money is $.

    history: one `IterationRecord` per iteration, those before a resumed checkpoint included.
    stop_reason: why training ended, as text; stop_kind: machine-readable.
    digest: SHA-256 over all bounds and cuts: equal digests are equal results, to the last bit.
    training_seconds: wall time. warnings: about the case and the run. workers: the ranks that took part.
    shared_bytes: memory that the ranks of a node share; saved_bytes: what sharing saves.
    bound: the bound of the stopping rule `upper_bound`, as in bound.json; None if it did not run.
    policy_cost: cost of the policy, with the half-width of its 95 % confidence interval and the number of paths (0:
    all, on a tree); None if training cannot estimate it, such as under a risk measure with risk_weighted_share 0.

    >>> result = cobre.train("examples/two_reservoirs", iterations=3)
    >>> result.iterations, result.lower_bound <= result.upper_bound
    (3, True)
    >>> result.to_pandas()[["iteration", "lower_bound", "upper_bound"]].shape
    (3, 3)
    """

    policy: Policy
    history: tuple[IterationRecord, ...]
    stop_reason: str
    stop_kind: StopKind
    digest: str
    training_seconds: float
    warnings: tuple[str, ...] = ()
    workers: tuple[WorkerReport, ...] = ()
    shared_bytes: int = 0
    saved_bytes: int = 0
    is_risk_averse: bool = False
    bound: Mapping[str, Any] | None = None
    policy_cost: float | None = None
    policy_cost_half_width: float | None = None
    policy_cost_paths: int | None = None

    @property
    def iterations(self) -> int:
        """Number of iterations, those before a resumed checkpoint included."""
        return len(self.history)

    @property
    def lower_bound(self) -> float:
        """Lower bound of the last iteration, $: no policy has a lower expected (or risk-adjusted) cost."""
        return self.history[-1].lower_bound

    @property
    def upper_bound(self) -> float:
        """The mean cost of the last iteration's sampled paths: an estimate, not a proof. On a tree, the exact cost."""
        return self.history[-1].upper_bound

    @property
    def gap(self) -> float | None:
        """From the lower bound to the cost of the policy, else to the upper bound, relative to the lower bound.

        As in summary.json: to the bound of the rule `upper_bound` if that ran; None under a risk measure if only the
        mean of sampled paths is known.
        """
        return self._bound_history.gap

    @property
    def policy_gap(self) -> float | None:
        """From the lower bound to the cost of the policy, relative to the bound; None if unknown."""
        return None if self.policy_cost is None else relative_gap(self.lower_bound, self.policy_cost)

    @property
    def verdict(self) -> ConvergenceVerdict | None:
        """Whether training has converged, judged by the bounds; None if they are inconclusive."""
        return verdict(self._bound_history, is_interrupted=self.stop_kind.is_interruption)

    @property
    def computed_bound(self) -> ComputedBound | None:
        """The bound of the stopping rule `upper_bound`, else the sampled cost of the policy; None without either."""
        end = {name: getattr(self, name) for name in ("stop_kind", "bound", *NO_POLICY_COST)}
        is_exact = self.history[-1].is_exact
        return ComputedBound.of_run(self.lower_bound, end, is_exact=is_exact, is_risk_averse=self.is_risk_averse)

    @property
    def _bound_history(self) -> BoundHistory:
        return bound_history(
            self.history,
            is_risk_averse=self.is_risk_averse,
            computed=self.computed_bound,
            policy_cost=self.policy_cost,
        )

    @property
    def bounds(self) -> "pa.Table":
        """The bounds as an Arrow table: a row per iteration, the columns of training/convergence.parquet."""
        return convergence_table(self.history)

    def water_values(self, state: Sequence[float]) -> "pa.Table":
        """Return $ per hm3 of every reservoir at the end of each stage but the last, in a given state.

        The state has the entries that `policy.state_names` names.
        """
        return policy_water_values(self.policy, state)

    def plot_bounds(self) -> "Figure":
        """Draw the bounds by iteration, with the confidence band of the sampled one, as a Matplotlib figure."""
        library("matplotlib", "[plots]")
        from cobre.report.figures import plot_bounds

        notebook.show_figures()
        return plot_bounds(self)

    def to_arrow(self) -> "pa.Table":
        """Return the bounds, one row for each iteration."""
        return self.bounds

    def to_pandas(self) -> Any:
        """Return the bounds as a pandas DataFrame."""
        return as_pandas(self.bounds)

    def to_polars(self) -> Any:
        """Return the bounds as a polars DataFrame."""
        return as_polars(self.bounds)

    def to_xarray(self) -> Any:
        """Return the bounds as an xarray Dataset, by iteration."""
        return as_xarray(self.bounds)

    def _repr_html_(self) -> str:
        from cobre.report.notebook_html import training_html

        return training_html(self)

    def __repr__(self) -> str:
        last, computed = self.history[-1], self.computed_bound
        costs = PathCosts(last.is_exact, self.is_risk_averse)
        kind = costs.label if costs.is_bound else NOT_A_BOUND
        upper = f"{costs.name} {money(last.upper_bound)} ± {money(last.half_width)} $ ({kind})"
        if computed is not None:
            spread = f" ± {money(computed.half_width)}" if computed.confidence else ""
            upper = f"{BOUND_NAMES[computed.method]} {money(computed.value)}{spread} $, gap {gap_percent(computed.gap)}"
        return (
            f"<TrainingResult: {self.iterations} iterations, lower bound {money(last.lower_bound)} $, "
            f"{upper}, {self.stop_reason}>"
        )


@dataclass(frozen=True)
class SimulationResult:
    """Result of `cobre.simulate`: the cost of each scenario, and rows of all quantities. Money is $.

    tables: Arrow tables by name (costs, hydros, thermals, buses, ...), on rank 0; columns carry their units.
    scenario_costs: total cost of each scenario. mean_cost, std_cost: over the scenarios.
    controlled_mean_cost, controlled_half_width: a variance-reduced mean (control variate on the openings drawn), with
    the same expectation and a narrower 95 % confidence interval (by scenario in the table `scenario_costs`); None if
    scenarios are not drawn from the openings, are fewer than 30, or if the interval would not be narrower.
    digest: SHA-256 over all rows. seconds: wall time. warnings: about the case and the policy.

    >>> policy = cobre.train("examples/two_reservoirs", iterations=3).policy
    >>> result = cobre.simulate("examples/two_reservoirs", policy, scenarios=20)
    >>> len(result.scenario_costs)
    20
    >>> result.to_pandas("hydros")[["scenario_id", "stage_id", "storage_final_hm3"]].columns.size
    3
    """

    tables: Mapping[str, "pa.Table"]
    scenario_costs: tuple[float, ...]
    mean_cost: float
    std_cost: float
    digest: str
    seconds: float
    warnings: tuple[str, ...] = field(default=())
    solver: SolveStatistics = field(default_factory=SolveStatistics)  # work of all ranks' solvers
    controlled_mean_cost: float | None = None
    controlled_half_width: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)  # dates and names as in study.json

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % confidence interval of `mean_cost`, in $."""
        return half_width_95(self.std_cost, max(1, len(self.scenario_costs)))

    @property
    def cost_note(self) -> str | None:
        """A sentence if penalties and deficit are most of the cost; else None."""
        from cobre.study.cost_note import cost_note

        return cost_note(lambda name, columns: [self.table(name).select(list(columns))])

    def table(self, name: str) -> "pa.Table":
        """Return one of the tables, such as hydros, thermals, buses or costs."""
        if name not in self.tables:
            raise KeyError(f"there is no table {name!r}; this simulation has {', '.join(self.tables)}")
        return self.tables[name]

    def water_values(self) -> "pa.Table":
        """Return the value of water during each stage, $ per hm3: mean and percentiles over scenarios."""
        return simulated_water_values(self.table("hydros"))

    def plot_fan(self, quantity: str = "storage", entity: int | None = None) -> "Figure":
        """Draw percentiles over scenarios by stage: a figure of matplotlib.

        quantity: storage, inflow, turbined, spillage, outflow, hydro_generation, thermal_generation,
        non_controllable_generation, curtailment, deficit, load, line_flow, spot_price, water_value, ... (an unknown one
        names them all). entity: the id of a plant, bus or line; None: the sum of all.
        """
        library("matplotlib")
        from cobre.report.figures import plot_fan

        notebook.show_figures()
        return plot_fan(self, quantity, entity)

    def plot(self, table: str, column: str, entity: int | None = None) -> "Figure":
        """Draw percentiles over scenarios, by stage, of a column of a table, such as `plot("hydros", "spillage_m3s")`.

        Energy and cost are added over blocks, other numbers averaged. entity: the id of a plant, bus or line; None:
        the sum of all, if that is meaningful. See `plot_fan` for quantities with names.
        """
        library("matplotlib", "[plots]")
        from cobre.report.figures import plot_table

        notebook.show_figures()
        return plot_table(self, table, column, entity)

    def to_arrow(self, name: str = "costs") -> "pa.Table":
        """Return one of the tables (`costs`, `hydros`, `thermals`, ...) as an Arrow table; the same as `table`."""
        return self.table(name)

    def to_pandas(self, name: str = "costs") -> Any:
        """Return one of the tables as a pandas DataFrame, with names and dates: `result.to_pandas("hydros")`.

        `hydro_name`, `bus_name`, ... follow the ids of entities, `stage_start` follows `stage_id`; `to_arrow` returns
        only the ids.
        """
        return as_pandas(with_names(self.table(name), self.facts))

    def to_polars(self, name: str = "costs") -> Any:
        """Return one of the tables as a polars DataFrame, with names and dates as `to_pandas` has them."""
        return as_polars(with_names(self.table(name), self.facts))

    def to_xarray(self, name: str = "costs") -> Any:
        """Return a table as an xarray Dataset: scenarios, stages, blocks and entities are its dimensions.

        Names of entities and dates of stages are coordinates: `data.hydro_name`, `data.stage_start`.
        """
        return as_xarray(self.table(name), self.facts)

    def _repr_html_(self) -> str:
        from cobre.report.notebook_html import simulation_html

        return simulation_html(self)

    def __repr__(self) -> str:
        return (
            f"<SimulationResult: {len(self.scenario_costs)} scenarios, mean cost {money(self.mean_cost)} "
            f"± {money(self.half_width)} $, tables {', '.join(self.tables)}>"
        )

from collections.abc import Callable, Sequence
from types import MemberDescriptorType
from typing import Any, NoReturn, overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Indices = NDArray[np.int64]

INTERFACE_DIGEST: str

class CallGuard:
    """Checks and records of the calls on a communicator. Methods return False if a call cannot be accepted."""

    def __init__(self, rank: int, size: int, reduce_op: type) -> None: ...
    def begin(self, operation: int, nbytes: int, label: str, /) -> bool: ...
    def barrier(self, hook: Callable[[], None], label: str, /) -> bool: ...
    def fence(self, hook: Callable[[], None], label: str, /) -> bool: ...
    def bind_barrier(self, hook: Callable[[], None], /) -> None: ...
    def allgatherv(
        self, hook: Callable[..., None], send: Any, recv: Any, counts: Any, displs: Any, label: str, /
    ) -> bool: ...
    def allreduce(self, hook: Callable[..., None], send: Any, recv: Any, op: Any, label: str, /) -> bool: ...
    def broadcast(self, hook: Callable[..., None], buffer: Any, root: Any, label: str, /) -> bool: ...
    def end(self) -> None: ...
    def fail(self) -> None: ...
    def close(self) -> bool: ...
    def recent(self) -> list[tuple[int, int, int, str, int, int]]: ...
    @property
    def state(self) -> str: ...
    @property
    def current(self) -> str: ...
    @property
    def sequence(self) -> int: ...

class GuardedMethod:
    """A method whose common case runs in the guard, without a Python frame between caller and hook."""

    def __init__(self, function: Callable[..., None], operation: int, guard_slot: MemberDescriptorType, /) -> None: ...
    def __call__(self, *arguments: Any, **named: Any) -> None: ...

class CollectiveFailure(Exception):
    """A failure that broke a transport: its kind, the ranks that failed, and a text."""

class JoinFailure(Exception):
    """A rank that cannot join: the reason as text."""

class ShmRegion:
    """Memory that all ranks map."""

    @property
    def id(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

class ShmSegment:
    """A shared memory object without a name, which other processes open by a descriptor."""

    @staticmethod
    def create(size: int, memory_limit_bytes: int) -> ShmSegment: ...
    @staticmethod
    def open(pid: int, descriptor: int, inode: int) -> ShmSegment: ...
    @property
    def descriptor(self) -> int: ...
    @property
    def inode(self) -> int: ...

class ShmTransport:
    """One rank's end of the shared-memory transport."""

    @overload
    def __init__(
        self,
        name: str,
        rank: int,
        size: int,
        timeout_s: float,
        connect_timeout_s: float,
        operation_timeout_s: float,
        condvar: bool,
        window_bytes: int,
        quota_cores: int,
        by_name: bool,
        progress_s: float,
        guard: CallGuard,
        on_wait: Callable[[float, list[str]], None],
    ) -> None: ...
    @overload
    def __init__(
        self,
        segment: ShmSegment,
        rank: int,
        world_ranks: list[int],
        timeout_s: float,
        connect_timeout_s: float,
        operation_timeout_s: float,
        quota_cores: int,
        progress_s: float,
        memory_limit_bytes: int,
        guard: CallGuard,
        on_wait: Callable[[float, list[str]], None],
    ) -> None: ...
    @overload
    def __init__(self, parent: ShmTransport, guard: CallGuard, on_wait: Callable[[float, list[str]], None]) -> None: ...
    def wait_for_all(self) -> None: ...
    def barrier(self) -> None: ...
    def allgatherv(
        self, send: NDArray[Any], recv: NDArray[Any], counts: Sequence[int], displs: Sequence[int], /
    ) -> None: ...
    def allreduce(self, send: NDArray[Any], recv: NDArray[Any], op: int, /) -> None: ...
    def broadcast(self, buffer: NDArray[Any], root: int, /) -> None: ...
    def broadcast_parts(
        self, buffer: NDArray[Any], counts: Sequence[int], displs: Sequence[int], root: int, /
    ) -> None: ...
    def describe_call(
        self, like: NDArray[Any] | None, count: int, total: int, parameter: int, counts_hash: int
    ) -> None: ...
    def enforce_operation_timeout(self, enforced: bool, /) -> None: ...
    def fence(self, region: ShmRegion, /) -> None: ...
    def create_region(self, nbytes: int, dtype: np.dtype[Any], /) -> ShmRegion: ...
    def abort(self, text: bytes, /) -> None: ...
    def close(self) -> None: ...
    @property
    def window_bytes(self) -> int: ...

def region_bytes(region: ShmRegion, writable: bool) -> NDArray[np.uint8]:
    """Return the memory of a region as bytes; the array keeps it mapped."""

def segment_bytes(size: int, window_bytes: int) -> int:
    """Return the size of the segment of a world; window_bytes: 0 for the default."""

def unlink_segment(name: str) -> bool:
    """Remove the name of a segment; False if there is none."""

def die_with_parent(parent_pid: int) -> None:
    """Let the kernel kill this process when its parent dies; exit at once if that has happened."""

def kill_group_with_parent(parent_pid: int, segment: str) -> None:
    """Let the whole process group of this leader be killed when its parent dies, or when it exits by itself.

    segment: the file to unlink before, "" for none.
    """

PARENT_DEATH_SIGNAL: int
MAX_RANKS: int
OPERATION_NAMES: list[str]
REDUCTION_NAMES: list[str]
FAILURE_NAMES: list[str]

def count_signal(number: int) -> None:
    """Count how often a signal arrives, until another handler is installed; the current one runs as before."""

def take_signal_count(number: int) -> int:
    """Return how often a counted signal has arrived since the last call."""

def kill_process_group() -> NoReturn:
    """Kill the process group that this process leads, else this process."""

def exit_without_teardown(code: int) -> NoReturn:
    """Exit with the C library's handlers, and without the teardown of the interpreter."""

def diagonalise(work: NDArray[np.float64], vectors: NDArray[np.float64], max_sweeps: int) -> None:
    """Rotate pairs of axes until `work` is diagonal, or `max_sweeps` are over.

    work: n x n, symmetric. vectors: n x n, turned along: the identity becomes eigenvectors as rows.
    """

def seed_streams(
    seeds: NDArray[np.uint64],
    high: NDArray[np.uint64],
    low: NDArray[np.uint64],
    increment_high: NDArray[np.uint64],
    increment_low: NDArray[np.uint64],
) -> None:
    """Fill in states and increments of PCG64 generators, in two words each: one generator for each seed."""

def siphash13(messages: NDArray[np.uint64], out: NDArray[np.uint64]) -> None:
    """Write SipHash-1-3, with both keys zero, of messages of words. messages: words x messages. out: messages."""

def add_rows(values: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Write the sums of columns, from the first row on. values: rows x columns. out: columns."""

def fewest_pairs(known: NDArray[np.bool_]) -> int:
    """Return how many rows the two columns share that share the fewest. known: rows x columns."""

def draw_normals(
    high: NDArray[np.uint64],
    low: NDArray[np.uint64],
    increment_high: NDArray[np.uint64],
    increment_low: NDArray[np.uint64],
    widths: NDArray[np.float64],
    heights: NDArray[np.float64],
    tail_start: float,
    out: NDArray[np.float64],
) -> None:
    """Draw standard normals by the ziggurat method and move the generators on.

    high, low, increment_high, increment_low: by stream, and changed. widths, heights: 257 numbers each. tail_start:
    where the tail begins. out: streams x draws.
    """

def fit_autoregressions(
    correlation: NDArray[np.float64],
    annual: NDArray[np.float64],
    has_annual: bool,
    std: NDArray[np.float64],
    count: NDArray[np.float64],
    annual_std: NDArray[np.float64],
    max_order: int,
    max_magnitude: float,
    quantile: float,
    coefficients: NDArray[np.float64],
    yearly: NDArray[np.float64],
) -> int:
    """Fit PAR(p) models, or PAR(p)-A models if `has_annual`; return the largest order.

    correlation: seasons x (max_order + 1) x hydros, lag 0 first. annual: with the mean of the last year, of the same
    shape. std, count, annual_std: seasons x hydros. max_magnitude: coefficients above it drop the model of a season;
    infinity: none. quantile: of the test of significance. coefficients: seasons x max_order x hydros, filled in; zeros
    before. yearly: seasons x hydros, likewise.
    """

def add_outer_products(vectors: NDArray[np.float64], scales: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Add scaled outer products of rows, one after another, to a matrix.

    vectors: terms x n. scales: terms. out: n x n.
    """

def mix(draws: NDArray[np.float64], transposed: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Write sums of rows, weighted by draws. draws: draws x n. transposed: n x columns. out: draws x columns."""

def periodic_correlations(
    coefficients: NDArray[np.float64],
    tolerance: float,
    max_years: int,
    diverged: float,
    correlations: NDArray[np.float64],
    has_diverged: NDArray[np.bool_],
) -> None:
    """Compute the correlations that PAR models imply, year by year until they change by at most `tolerance`.

    coefficients: seasons x order x hydros. diverged: magnitude from which on a process grows without bound, is flagged
    and counts as white noise. correlations: seasons x (order + 1) x hydros, filled in. has_diverged: hydros, set.
    """

def explained_variance(
    correlations: NDArray[np.float64], season: int, coefficients: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Write the share of the variance that the past explains in a season.

    correlations: seasons x lags x hydros. coefficients: order x hydros, with order below lags. out: hydros.
    """

def pair_products(
    values: NDArray[np.float64],
    known: NDArray[np.bool_],
    products: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """Write sums of products and of squares of deviations, for each pair of columns over the rows that both have.

    values, known: rows x columns; values that are not known are 0. products, squares: columns x columns; squares[i, j]
    is that of column i.
    """

class BoundList:
    """Bounds and costs of columns, or bounds of rows, as they come."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add(self, present: NDArray[np.bool_], parts: list[NDArray[np.float64]], index: NDArray[np.int64]) -> int: ...
    def copy(self, part: int, out: NDArray[np.float64]) -> None: ...

class EntryList:
    """Entries of a matrix as they come."""

    def __init__(self) -> None: ...
    def add(self, rows: NDArray[np.int64], columns: NDArray[np.int64], values: NDArray[np.float64]) -> None: ...
    def assemble(
        self, num_columns: int, start: NDArray[np.int32], index: NDArray[np.int32], value: NDArray[np.float64]
    ) -> int: ...
    def __len__(self) -> int: ...

def same_bytes(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Return whether two arrays have the same bytes."""

def scale_entries(
    start: NDArray[np.int32],
    index: NDArray[np.int32],
    row_scale: NDArray[np.float64],
    column_scale: NDArray[np.float64],
    value: NDArray[np.float64],
) -> None:
    """Multiply the entries of a matrix, stored by rows, by the scales of their rows and columns.

    start: rows + 1. index, value: entries.
    """

def power_of_two_scales(
    start: NDArray[np.int32],
    index: NDArray[np.int32],
    value: NDArray[np.float64],
    rounds: int,
    row_scale: NDArray[np.float64],
    column_scale: NDArray[np.float64],
) -> None:
    """Write scales that bring entries near one, alternating rows and columns for `rounds` rounds.

    start: rows + 1. index, value: entries of a matrix, stored by rows. row_scale, column_scale: filled in.
    """

def is_ordinary_json(text: str) -> bool:
    """Return whether valid JSON has nothing that Python must look at value by value."""

def widen_heap(size: int) -> None:
    """Make room in the heap, in huge pages, and keep freed memory; size: in bytes."""

def narrow_heap() -> None:
    """Return freed memory to the system again."""

def upper_facets(
    x: NDArray[np.float64], y: NDArray[np.float64], height: NDArray[np.float64], tolerance: float
) -> list[tuple[tuple[float, float, float], list[int]]]:
    """Return the upper facets of the convex hull of points: (constant, slope in x, slope in y), and their points.

    x, y, height: points. tolerance: how far a point on a facet may be from it.
    """

def fold(inputs: list[NDArray[Any]], out: NDArray[Any], op: int) -> None:
    """Reduce arrays in rank order, element by element: clause 8 of the contract of `Communicator`.

    inputs: by rank, of the same type and length. out: of that length too, may be one of them. op: a `ReduceOp`.
    """

CUTS_PER_BLOCK: int

def average_cuts(costs: Floats, weights: Floats, gradients: Floats, states: Floats) -> Floats:
    """Return one cut for each trial point: its intercept, then its coefficients.

    costs, weights: points x openings. gradients: (points x openings) x dimension. states: points x dimension.
    """

def cut_values(cuts: CutRows, states: Floats) -> Floats:
    """Return values of cuts (columns) at states (rows), added component by component, in order.

    Cuts of blocks without an active one are not evaluated: they give their intercepts.
    """

class HighestCuts:
    """The highest cut of each solve; -1 and the limit where none is above it."""

    @property
    def cut(self) -> Ints: ...
    @property
    def value(self) -> Floats: ...

def highest_cuts(
    cuts: CutRows,
    states: Floats,
    known: Floats,
    shared: Floats,
    limits: Floats,
    excluded: NDArray[np.uint8],
    is_screened: bool,
) -> HighestCuts:
    """Search as the solves of a chain do. For tests.

    The components of a state are those of `states` (a row for each solve), of `known` (likewise) and of `shared`.
    is_screened: search a copy in single precision first.
    """

class OpeningChains:
    """Two chains for each trial point, as `Chains` takes them."""

    @property
    def start(self) -> Ints: ...
    @property
    def realisation_index(self) -> Ints: ...
    @property
    def basis_index(self) -> Ints: ...
    @property
    def result_index(self) -> Ints: ...

class OpeningBlocks:
    """Openings block by block, in the order in which they are solved, and the size of each block."""

    @property
    def order(self) -> Ints: ...
    @property
    def sizes(self) -> Ints: ...

def opening_chains(order: Ints, sampled: Ints) -> OpeningChains:
    """Return two chains of solves for each trial point, away from the opening of its forward pass.

    order: openings from the driest to the wettest. sampled: by trial point, the position of its opening in that order.
    """

def opening_distances(openings: Floats, others: Floats) -> Floats:
    """Return how far other realisations are from openings: others x openings.

    openings, others: rows x components. Each component counts by the 3/4th power of its standard deviation.
    """

def opening_blocks(distances: Floats, sampled: int, limits: Ints) -> OpeningBlocks:
    """Return openings in blocks that are solved one after another, joined by savings from the opening `sampled`.

    distances: openings x openings, symmetric. limits: by block, the longest first, how many openings it may have; all
    may have one more if there are too few blocks of these sizes.
    """

def write_cuts(table: Floats, chunks: list[Floats], slot: int) -> None:
    """Write cuts, rows of 1 + components, into consecutive slots of a pool, from `slot` on."""

def take_unit(counter: Indices) -> int:
    """Return the next number of a counter that processes share."""

class Realisations:
    """What may happen in a stage: rows are realisations."""

    def __init__(self, inflow_m3s: Floats, load_mw: Floats, availability: Floats) -> None: ...
    @property
    def inflow_m3s(self) -> Floats:
        """Inflows, x hydros, without the part that follows from the lags."""
    @property
    def load_mw(self) -> Floats:
        """Loads, x buses."""
    @property
    def availability(self) -> Floats:
        """Availabilities, x sources, 0 to 1."""
    def take(self, rows: Ints | Indices) -> Realisations:
        """Return some of them, one for each entry of `rows`."""
    __match_args__: tuple[str, ...]

class Bases:
    """Starting bases of simplex: status of columns and rows, and the cuts that are active."""

    def __init__(self, status: NDArray[np.int8], cuts: Ints) -> None: ...
    @property
    def status(self) -> NDArray[np.int8]:
        """Bases x (columns + rows)."""
    @property
    def cuts(self) -> Ints:
        """Bases x (states + 1), filled up with -1."""

class CutRows:
    """The cuts of a stage: where they are stored, and which are active."""

    def __init__(
        self, chunks: list[Floats], count: int, active: NDArray[np.uint8], rows: Ints | None = None
    ) -> None: ...
    @property
    def chunks(self) -> list[Floats]:
        """Each rows x cuts, a multiple of `CUTS_PER_BLOCK` of them: intercepts, then components."""
    @property
    def count(self) -> int:
        """Number of cuts."""
    @property
    def active(self) -> NDArray[np.uint8]:
        """By cut: whether cut selection keeps it."""
    @property
    def rows(self) -> Ints | None:
        """By component: its row, -1 where no cut depends on it; None: 1 + component."""
    __match_args__: tuple[str, ...]

class Chains:
    """Trial points and what to solve them for; chain c is solved for realisation_index[start[c] : start[c + 1]]."""

    def __init__(
        self,
        states: Floats,
        start: Ints,
        realisations: Realisations,
        realisation_index: Ints,
        bases: Bases,
        basis_index: Ints,
        result_index: Ints | None = None,
        chains_per_point: int = 1,
        first_realisation: Ints | None = None,
    ) -> None: ...
    @staticmethod
    def single(states: Floats, realisations: Realisations, realisation_index: Ints, bases: Bases) -> Chains:
        """Solve every state for one realisation; all start from the first of the bases, or cold without any."""
    @property
    def states(self) -> Floats:
        """Trial points x dimension."""
    @property
    def start(self) -> Ints:
        """Of each chain, and the end of the last."""
    @property
    def realisations(self) -> Realisations:
        """What `realisation_index` points into."""
    @property
    def realisation_index(self) -> Ints:
        """By solve: the row of its realisation."""
    @property
    def bases(self) -> Bases:
        """What `basis_index` points into."""
    @property
    def basis_index(self) -> Ints:
        """By chain: the basis of its first solve; -1: a cold start."""
    @property
    def result_index(self) -> Ints | None:
        """By solve: the row of its results; None: in the order of the chains."""
    @property
    def chains_per_point(self) -> int:
        """Number of consecutive chains that have the same state."""
    @property
    def first_realisation(self) -> Ints | None:
        """By trial point: the realisation whose optimum its chains start from in a large stage.

        None: the first one of its first chain.
        """

class NewCuts:
    """Where the cuts of a backward pass go: one for each trial point, made by the thread that solves its last chain.

    Every trial point has the same number of consecutive chains, and all openings of the stage among them.
    """

    def __init__(self, spectral_weights: Floats, chunks: list[Floats], first_slot: int, rows: Ints | None) -> None: ...
    @property
    def spectral_weights(self) -> Floats:
        """By descending cost of the openings."""
    @property
    def chunks(self) -> list[Floats]:
        """As in `CutRows`, of the stage that gets the cuts."""
    @property
    def first_slot(self) -> int:
        """Slot of the first trial point's cut."""
    @property
    def rows(self) -> Ints | None:
        """As in `CutRows`."""

class SharedBatch:
    """Tables in memory that several ranks see, and the number of chains that any of them has taken.

    The ranks solve the same chains together: each takes the next one from the counter until none is left. A call
    returns when this rank finds none; others may still be solving theirs, so tables are read after a fence.
    """

    def __init__(
        self,
        counter: Indices,
        objective: Floats,
        gradient: Floats | None = None,
        finished: Indices | None = None,
        basis_status: NDArray[np.int8] | None = None,
        basis_cuts: Ints | None = None,
    ) -> None: ...
    @property
    def counter(self) -> Indices:
        """One number, 0 before the first chain."""
    @property
    def objective(self) -> Floats:
        """By solve."""
    @property
    def gradient(self) -> Floats | None:
        """Solves x dimension; None or empty: not wanted."""
    @property
    def finished(self) -> Indices | None:
        """Where cuts are made, by trial point: chains that are solved, 0 at first."""
    @property
    def basis_status(self) -> NDArray[np.int8] | None:
        """Solves x (columns + rows), of the optimal bases; None: not wanted."""
    @property
    def basis_cuts(self) -> Ints | None:
        """Solves x (decided states + 1): active cuts of these bases; None with `basis_status`."""

class Outputs:
    """Results of chains beyond objectives. With `shared`, its tables say what is wanted."""

    def __init__(
        self,
        *,
        basis: bool = False,
        solution: bool = False,
        gradient: bool = False,
        cuts: NewCuts | None = None,
        shared: SharedBatch | None = None,
    ) -> None: ...
    @property
    def basis(self) -> bool:
        """Optimal basis of each solve."""
    @property
    def solution(self) -> bool:
        """Primal and dual values."""
    @property
    def gradient(self) -> bool:
        """Slopes of the cost in the entering state."""
    @property
    def cuts(self) -> NewCuts | None:
        """Cuts that the solver makes from the gradients; only for a solver that `makes_cuts`."""
    @property
    def shared(self) -> SharedBatch | None:
        """Tables of the team; None: new ones, and this process solves everything."""

class Step:
    """One stage of a forward pass: path p is solved for row realisation_index[p] of `realisations`."""

    def __init__(
        self,
        stage: int,
        cuts: CutRows,
        realisations: Realisations,
        realisation_index: Ints,
        bases: Bases,
        carries_basis: bool = False,
        carried_from: Ints | None = None,
        basis_index: Ints | None = None,
    ) -> None: ...
    @property
    def stage(self) -> int:
        """Number of the program."""
    @property
    def cuts(self) -> CutRows:
        """The cuts of the stage."""
    @property
    def realisations(self) -> Realisations:
        """What `realisation_index` points into."""
    @property
    def realisation_index(self) -> Ints:
        """By path: the row of its realisation."""
    @property
    def bases(self) -> Bases:
        """What `basis_index` points into; without it one basis that all paths start from, or none: a cold start."""
    @property
    def carries_basis(self) -> bool:
        """Each path starts from its own optimal basis of the step before, which is kept, instead of from `bases`.

        Cuts keep their numbers. Without `carried_from` both stages must have the same shape.
        """
    @property
    def carried_from(self) -> Ints | None:
        """By column, then by row: the one of the step before whose status it takes over, -1: none; None: the same.

        Columns count first, rows after them, in both stages. Columns without one start at their lower bound, rows
        without one are inactive; where that makes no basis, slacks replace columns.
        """
    @property
    def basis_index(self) -> Ints | None:
        """By path: the basis that it starts from, -1: a cold start."""

class SharedPaths:
    """As `SharedBatch`, for paths through some stages: their counter, and the tables of the results.

    What is None, or an empty list, is not wanted. Shapes are those of `LpPathResults`.
    """

    def __init__(
        self,
        *,
        counter: Indices,
        objective: Floats,
        future_cost: Floats,
        states: Floats | None = None,
        leaving: Floats | None = None,
        basis_status: list[NDArray[np.int8]] = ...,
        basis_cuts: list[Ints] = ...,
        inflow: list[Floats] = ...,
        primal: list[Floats] = ...,
        dual: list[Floats] = ...,
    ) -> None: ...
    @property
    def counter(self) -> Indices: ...
    @property
    def objective(self) -> Floats: ...
    @property
    def future_cost(self) -> Floats: ...
    @property
    def states(self) -> Floats | None: ...
    @property
    def leaving(self) -> Floats | None: ...
    @property
    def basis_status(self) -> list[NDArray[np.int8]]: ...
    @property
    def basis_cuts(self) -> list[Ints]: ...
    @property
    def inflow(self) -> list[Floats]: ...
    @property
    def primal(self) -> list[Floats]: ...
    @property
    def dual(self) -> list[Floats]: ...

class PathOutputs:
    """Results of paths beyond costs and states. With `shared`, its tables say what is wanted."""

    def __init__(self, *, basis: bool = False, solution: bool = False, shared: SharedPaths | None = None) -> None: ...
    @property
    def basis(self) -> bool:
        """Optimal bases, by step and path."""
    @property
    def solution(self) -> bool:
        """Realised inflows, primal and dual values, by step and path."""
    @property
    def shared(self) -> SharedPaths | None:
        """Tables of the team; None: new ones, and this process solves everything."""

class LpFailure(Exception):
    """An LP that no setting of HiGHS solved, with everything that went into it: as `FailedInputs` of the contract."""

    stage: int
    chain: int
    item: int
    status: int
    realisation: int
    solved_before: int
    state: Floats
    basis_status: NDArray[np.int8] | None
    basis_cuts: Ints

class LpCounts:
    """What a call did, summed over its solves and threads: as `Work` of the contract."""

    @property
    def solves(self) -> int: ...
    @property
    def pivots(self) -> int: ...
    @property
    def library_solves(self) -> int: ...
    @property
    def retries(self) -> int: ...
    @property
    def refactorisations(self) -> int: ...
    @property
    def active_rows(self) -> int: ...
    @property
    def nucleus(self) -> int: ...
    @property
    def solve_seconds(self) -> float: ...

class LpChainResults(LpCounts):
    """Results by solve: as `Batch` of the contract."""

    @property
    def objective(self) -> Floats: ...
    @property
    def future_cost(self) -> Floats: ...
    @property
    def gradient(self) -> Floats: ...
    @property
    def decided(self) -> Floats: ...
    @property
    def inflow(self) -> Floats: ...
    @property
    def primal(self) -> Floats: ...
    @property
    def dual(self) -> Floats: ...
    @property
    def basis_status(self) -> NDArray[np.int8]: ...
    @property
    def basis_cuts(self) -> Ints: ...
    @property
    def has_stray_coefficients(self) -> bool: ...

class LpPathResults(LpCounts):
    """Results by step and path: as `PathBatch` of the contract."""

    @property
    def states(self) -> Floats: ...
    @property
    def objective(self) -> Floats: ...
    @property
    def future_cost(self) -> Floats: ...
    @property
    def leaving(self) -> Floats: ...
    @property
    def basis_status(self) -> list[NDArray[np.int8]]: ...
    @property
    def basis_cuts(self) -> list[Ints]: ...
    @property
    def inflow(self) -> list[Floats]: ...
    @property
    def primal(self) -> list[Floats]: ...
    @property
    def dual(self) -> list[Floats]: ...

class LpFactorisation:
    """A factorised basis by itself, on dense vectors. For tests."""

    def factorise(
        self, slack_is_basic: list[int], start: list[int], row: list[int], value: list[float]
    ) -> list[int]: ...
    def ftran(self, rhs: list[float]) -> list[float]: ...
    def btran(self, rhs: list[float]) -> list[float]: ...
    def update(self, slot: int, column: list[float]) -> None: ...
    def append_row(self, entries: list[float]) -> None: ...
    @property
    def nucleus(self) -> int: ...

MAX_DENSE_ROWS: int

class SimplexOptions:
    """Settings of the solver. Tolerances apply to scaled LPs."""

    def __init__(
        self,
        *,
        highs_feasibility_tolerance: float = ...,
        violation_tolerance: float = ...,
        max_added_per_round: int = ...,
        retry_attempts: int = ...,
        max_dense_rows: int = ...,
    ) -> None: ...
    @property
    def highs_feasibility_tolerance(self) -> float:
        """Primal and dual, of the solves that HiGHS does; those of our own simplex are constants of native code."""
    @property
    def violation_tolerance(self) -> float:
        """Of a cut, relative to the cost-to-go."""
    @property
    def max_added_per_round(self) -> int:
        """Violated cuts that enter an LP of HiGHS at once."""
    @property
    def retry_attempts(self) -> int:
        """Settings that HiGHS is tried with before a solve fails."""
    @property
    def max_dense_rows(self) -> int:
        """Stages with more rows are solved with a sparse factorisation of the basis, others with a dense inverse."""

class LpEngine:
    """Threads that solve the LPs of stages, which are loaded under numbers."""

    def __init__(self, library: str, threads: int, cores: int, settings: SimplexOptions) -> None: ...
    def load(self, stage: int, parts: dict[str, object]) -> None: ...
    def load_same(self, stage: int, loaded: int) -> None:
        """Give a stage the program of another one that was loaded."""

    def solve(
        self,
        stage: int,
        cuts: CutRows,
        chains: Chains,
        out: Outputs,
        ask: Callable[[], object] | None = None,
    ) -> LpChainResults: ...
    def solve_paths(
        self, steps: list[Step], states: Floats, out: PathOutputs, ask: Callable[[], object] | None = None
    ) -> LpPathResults: ...
    def save_failed(self, path: str, columns: list[str], rows: list[str]) -> None: ...
    @property
    def solves_done(self) -> int: ...
    @property
    def version(self) -> str: ...

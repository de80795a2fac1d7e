"""The LP of a stage, built from its numbers: columns, rows, scaling."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from cobre._native import same_bytes, scale_entries
from cobre.core.arrays import Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.lp.columns import Columns, add_columns
from cobre.sddp.lp.generic_rows import add_generic_rows
from cobre.sddp.lp.lp_builder import ABSENT, LpBuilder, power_of_two_scales
from cobre.sddp.lp.plan import StagePlan
from cobre.sddp.lp.rows import PowerRows, WaterRows, add_commitment_rows, add_power_rows, add_water_rows
from cobre.solver.program import Corrections, Names, StageProgram


@dataclass(frozen=True, slots=True)
class StageLp:
    """The program with the meaning of its columns and rows."""

    plan: StagePlan
    program: StageProgram
    columns: Columns
    water: WaterRows
    power: PowerRows
    cost: Floats  # $ per plain unit of every column; the future's column counts 0
    generic_slacks: Indices  # generic rows x 2: by how much one is short, and over
    deliveries: Indices  # J: the rows of thermal power that was decided ahead


def build_stage_lp(plan: StagePlan) -> StageLp:
    """Build the LP of one stage from its plan: columns, rows, inputs, scaling."""
    lp = LpBuilder()
    columns = add_columns(lp, plan)
    water = add_water_rows(lp, plan, columns)
    power = add_power_rows(lp, plan, columns)
    deliveries = add_commitment_rows(lp, plan, columns)
    slacks = add_generic_rows(lp, plan, columns)
    lower, upper, cost = lp.columns()
    program = _scaled(lp, (lower, upper, cost), plan, columns, power)
    cost[int(columns.future_cost)] = 0.0
    return StageLp(plan, program, columns, water, power, cost, slacks, deliveries)


# Fields of a stage's numbers that do not enter its LP: dates and the noise.
WITHOUT_EFFECT_ON_LP = {"stage", "delivery_date", "load_mean_mw", "load_std_mw", "mean", "std"}


def has_same_lp(plan: StagePlan, previous: StagePlan) -> bool:
    """Return whether two plans give the same LP: later years of many studies repeat earlier ones."""
    return previous.is_chronological == plan.is_chronological and _equal_bits(previous, plan)


def _equal_bits(old: Any, new: Any) -> bool:
    """Compare arrays bit by bit, and other values by `==`."""
    if old is new:
        return True
    if isinstance(new, np.ndarray):
        return _reuse_if_equal(old, new) is old
    if not is_dataclass(new):
        return bool(old == new)
    for item in fields(new):
        if item.name in WITHOUT_EFFECT_ON_LP:
            continue
        values = getattr(old, item.name), getattr(new, item.name)
        if item.name == "planes":  # a tuple of arrays
            if not all(map(_equal_bits, *values)):
                return False
        elif not _equal_bits(*values):
            return False
    return True


def share_equal_arrays(previous: StageLp, stage: StageLp) -> StageLp:
    """Return the stage with its arrays and names replaced by equal ones of a previous stage."""
    parts = ("program", "columns", "water", "power")
    shared = {name: _with_shared_fields(getattr(previous, name), getattr(stage, name)) for name in parts}
    names = _with_shared_fields(previous.program.names, stage.program.names)
    shared["program"] = replace(shared["program"], names=names)
    cost = _reuse_if_equal(previous.cost, stage.cost)
    return replace(stage, **shared, cost=cost)


def _with_shared_fields(previous: Any, record: Any) -> Any:
    """Return a record in which equal arrays and tuples are those of a previous one."""
    values = ((item.name, getattr(previous, item.name), getattr(record, item.name)) for item in fields(record))
    common = {name: old for name, old, new in values if old is not new and _reuse_if_equal(old, new) is old}
    return replace(record, **common) if common else record


def _reuse_if_equal(old: Any, new: Any) -> Any:
    """Return the old value if it is an array with the same bytes, or an equal tuple; otherwise the new one."""
    if isinstance(new, np.ndarray):
        is_same = old.dtype == new.dtype and old.shape == new.shape and same_bytes(old, new)
        return old if is_same else new
    return old if type(new) is tuple and old == new else new


def _scaled(
    lp: LpBuilder, bounds: tuple[Floats, Floats, Floats], plan: StagePlan, columns: Columns, power: PowerRows
) -> StageProgram:
    """Scale the LP by powers of two; `bounds`: lower and upper bounds and costs of all columns."""
    lower, upper, cost = bounds
    row_lower, row_upper = lp.rows()
    start, index, value = lp.matrix()
    row_scale, column_scale = power_of_two_scales(start, index, value, lp.num_columns)
    future_cost = int(columns.future_cost)
    column_scale[future_cost] = 1.0
    input_row, input_index, input_value = lp.inputs(plan.state_index.num_inputs)
    load = np.argwhere(power.balance != ABSENT)
    load_row = power.balance[load[:, 0], load[:, 1]].astype(np.int32)
    # Generation of a source is limited by its availability; the column `available` is fixed to it.
    source_column, source_index, available = _source_columns(plan, np.stack([columns.source, columns.available]))
    is_generation = np.arange(len(source_column)) < np.count_nonzero(columns.source != ABSENT)
    scale_entries(start, index, row_scale, column_scale, value)
    return StageProgram(
        cost=cost * column_scale / plan.options.cost_scale,
        column_lower=lower / column_scale,
        column_upper=upper / column_scale,
        row_lower=row_lower * row_scale,
        row_upper=row_upper * row_scale,
        row_start=start,
        column_index=index,
        value=value,
        column_scale=column_scale,
        row_scale=row_scale,
        future_cost=future_cost,
        state_column=np.concatenate([columns.storage[:, -1], columns.commitment, columns.in_transit]).astype(np.int32),
        autoregression=plan.autoregression,
        lag_from=plan.lag_from,
        lag_share=plan.lag_share,
        passed_from=plan.state_index.passed_from(),
        truncates=plan.options.truncates_inflow,
        input_row=input_row,
        input_index=input_index,
        input_value=input_value * row_scale[input_row],
        load_row=load_row,
        load_bus=load[:, 0].astype(np.int32),
        load_factor=plan.data.bus.load_factor[load[:, 0], load[:, 1]] * row_scale[load_row],
        source_column=source_column,
        source_index=source_index,
        source_factor=available / column_scale[source_column],
        source_is_pinned=(~(is_generation & plan.data.source.may_curtail[source_index])).astype(np.uint8),
        names=Names(tuple(lp.column_names), tuple(lp.row_names)),
        corrections=_corrections(plan, columns.inflow_slack, column_scale),
    )


def _corrections(plan: StagePlan, inflow_slack: Indices, column_scale: Floats) -> Corrections | None:
    if not plan.options.limits_inflow_slack:
        return None
    column = inflow_slack.astype(np.int32)
    return Corrections(column, 1.0 / column_scale[column], plan.options.fixes_inflow_slack)


def _source_columns(plan: StagePlan, columns: Indices) -> tuple[Ints, Ints, Floats]:
    """Return columns limited by availability, the source of each, and its MW at full availability."""
    kind, source, block = np.nonzero(columns != ABSENT)
    numbers = plan.data.source
    most: Floats = numbers.available_mw[source] * numbers.factor[source, block]
    return columns[kind, source, block].astype(np.int32), source.astype(np.int32), most

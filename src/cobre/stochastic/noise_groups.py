"""Stages that share their noise: neighbours in the same season of the same year.

A month that is cut into weeks has one draw of monthly noise, not four. Stages without a season never share.
"""

from collections.abc import Sequence

from cobre.core.temporal import Stage


def group_leaders(stages: Sequence[Stage]) -> tuple[int, ...]:
    """For each stage the index of the stage whose noise it uses: its own, or the first of its group."""
    leaders: list[int] = []
    for index, stage in enumerate(stages):
        shares = index > 0 and _key(stage) is not None and _key(stage) == _key(stages[index - 1])
        leaders.append(leaders[-1] if shares else index)
    return tuple(leaders)


def group_numbers(stages: Sequence[Stage]) -> tuple[int, ...]:
    """For each stage the number of its group, counted from 0."""
    leaders = group_leaders(stages)
    number = {leader: count for count, leader in enumerate(dict.fromkeys(leaders))}
    return tuple(number[leader] for leader in leaders)


def _key(stage: Stage) -> tuple[int, int] | None:
    return None if stage.season_id is None else (stage.season_id, stage.start_date.year)

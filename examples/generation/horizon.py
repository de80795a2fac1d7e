"""Months, blocks and seasons."""

import math
from dataclasses import dataclass
from datetime import date
from typing import Any

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of every month: its share of the hours, and its load and wind relative to the month's means."""

    name: str
    share: float
    load_factor: float
    wind_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Horizon:
    """Monthly stages from the first of January."""

    year: int
    stages: int
    openings: int
    blocks: tuple[Block, ...]
    annual_discount_rate: float

    def first_day(self, stage: int) -> date:
        """Return the first day of a stage; negative numbers are months before the study."""
        return date(self.year + stage // 12, 1 + stage % 12, 1)

    def document(self, *, has_memory: bool) -> dict[str, Any]:
        """Return the content of stages.json."""
        graph = {"type": "finite_horizon", "annual_discount_rate": self.annual_discount_rate}
        stages = [self._stage(number, has_memory=has_memory) for number in range(self.stages)]
        return {"policy_graph": graph, "stages": stages, "season_definitions": seasons()}

    def _stage(self, number: int, *, has_memory: bool) -> dict[str, Any]:
        begin, end = self.first_day(number), self.first_day(number + 1)
        hours = 24 * (end - begin).days
        blocks = [
            {"id": index, "name": block.name, "hours": round(hours * block.share, 4)}
            for index, block in enumerate(self.blocks)
        ]
        return {
            "id": number,
            "start_date": begin.isoformat(),
            "end_date": end.isoformat(),
            "season_id": number % 12,
            "blocks": blocks,
            "num_openings": self.openings,
            "state_variables": {"storage": True, "inflow_lags": has_memory},
        }


def seasons() -> dict[str, Any]:
    """Return the season definitions: the months of a year."""
    named = [{"id": index, "label": label, "month_start": index + 1} for index, label in enumerate(MONTHS)]
    return {"cycle_type": "monthly", "seasons": named}


def seasonal(swing: float, peak_month: int, stage: int) -> float:
    """Return a factor with mean 1 over a year, and `1 + swing` in the month of the peak."""
    return 1.0 + swing * math.cos(2.0 * math.pi * (stage % 12 + 1 - peak_month) / 12.0)

"""Numbers on the command line that must be finite."""

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A float within limits; NaN and infinity, which `click.FloatRange` lets through, are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; fails as click's own types do."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number

"""Convergence: the lower bound against the sampled upper bound with its confidence band."""

from cobre.report.bounds import Bounds
from cobre.report.chart import Band, Chart, Mark, Series
from cobre.report.palette import BLUE, ORANGE
from cobre.runs.formatting import money_in_words

BAND = 0.25


def legend_of(bounds: Bounds) -> tuple[Mark, ...]:
    """Lower bound, upper bound and its confidence band; an exact bound has no band."""
    band = () if bounds.is_exact else (Mark("its 95 % confidence band", ORANGE, "band", BAND),)
    return (Mark("lower bound", BLUE), Mark(bounds.upper_name, ORANGE), *band)


def bounds_chart(bounds: Bounds, key: str, title: str) -> Chart:
    """Chart of both bounds by iteration, with the band of the sampled one."""
    first, last = money_in_words(bounds.lower[0]), money_in_words(bounds.lower[-1])
    said = f"goes from {first} to {last} in {len(bounds)} iterations" if len(bounds) > 1 else f"is {last}"
    return Chart(
        key,
        title,
        f"The lower bound {said}.",
        "$",
        [f"iteration {number}" for number in bounds.iteration],
        (
            Series("lower bound", bounds.lower, BLUE),
            Series(bounds.upper_name, bounds.upper, ORANGE, "thin"),
            Series("± 95 %", bounds.half_width, drawing="none"),
            Series("low end of the band", bounds.upper - bounds.half_width, drawing="none"),
            Series("high end of the band", bounds.upper + bounds.half_width, drawing="none"),
        ),
        () if bounds.is_exact else (Band(4, 3, ORANGE, BAND),),
        legend_of(bounds),
        bounds.iteration.tolist(),
        "numbers",
        "iteration",
    )

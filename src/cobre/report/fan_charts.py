"""Percentiles over scenarios by stage."""

from cobre.report.chart import Band, Chart, Drawing, Mark, Series
from cobre.report.palette import BLUE
from cobre.report.scenario_statistics import PERCENTILES
from cobre.report.simulated import Fan
from cobre.runs.formatting import digits

OUTER, INNER = 0.18, 0.32


def fan_legend(colour: str) -> tuple[Mark, ...]:
    """Median and the two percentile bands, the inner one first."""
    return (
        Mark("median", colour),
        Mark("25 to 75 %", colour, "band", INNER + OUTER),
        Mark("5 to 95 % of the scenarios", colour, "band", OUTER),
    )


def fan_chart(fan: Fan, key: str, title: str, unit: str, colour: str = BLUE) -> Chart:
    """A chart of the median with bands of 25 to 75 % and 5 to 95 %."""
    middle = fan.percentiles[2]
    said = f"the median goes from {digits(middle[0])} {unit} in {fan.labels[0]} to {digits(middle[-1])} {unit}"
    bands = (Band(4, 0, colour, OUTER), Band(3, 1, colour, INNER))
    description = f"{title}: {said} in {fan.labels[-1]}."
    return Chart(key, title, description, unit, fan.labels, _series(fan, colour), bands, fan_legend(colour))


def _series(fan: Fan, colour: str) -> list[Series]:
    names = ["median" if percentile == 50 else f"{percentile} %" for percentile in PERCENTILES]
    drawn: tuple[Drawing, ...] = ("thin", "none", "line", "none", "thin")
    series = [
        Series(name, values, colour, drawing)
        for name, values, drawing in zip(names, fan.percentiles, drawn, strict=True)
    ]
    return [*series, Series("mean", fan.mean, drawing="none")]

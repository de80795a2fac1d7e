"""Percentiles over scenarios by stage."""

from cobre.report.chart import Band, Chart, Drawing, Mark, Series
from cobre.report.palette import BLUE
from cobre.report.scenario_statistics import PERCENTILES
from cobre.report.simulated import Fan
from cobre.runs.formatting import digits

OUTER, INNER = 0.18, 0.32


def fan_legend(colour: str) -> tuple[Mark, ...]:
    """Median, mean and the two percentile bands, the inner one first."""
    return (
        Mark("median", colour),
        Mark("mean", colour, "dash"),
        Mark("25 to 75 %", colour, "band", INNER + OUTER),
        Mark("5 to 95 % of the scenarios", colour, "band", OUTER),
    )


def fan_chart(fan: Fan, key: str, title: str, unit: str, colour: str = BLUE) -> Chart:
    """A chart of median and mean, with bands of 25 to 75 % and 5 to 95 %.

    Prices are near 0 in most scenarios and high in few: a median of 0 hides a mean of hundreds.
    """
    middle, mean = fan.percentiles[2], fan.mean
    said = (
        f"the median goes from {digits(middle[0])} {unit} (mean {digits(mean[0])}) in {fan.labels[0]} "
        f"to {digits(middle[-1])} {unit} (mean {digits(mean[-1])})"
    )
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
    return [*series, Series("mean", fan.mean, colour, "dash")]

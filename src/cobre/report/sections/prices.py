"""The section on spot prices by bus."""

from cobre.report.fan_charts import fan_chart
from cobre.report.palette import PURPLE
from cobre.report.run_folder import RunFolder
from cobre.report.section import Section
from cobre.report.simulated import Fan

MAX_BUSES = 6
INTRO = "The cost of one more MWh at a bus, averaged over the hours of a stage."
WORDS = "Wide bands mean that the price depends on uncertain inflows and loads."


def prices(run: RunFolder) -> Section | None:
    """A fan of the spot price for the first `MAX_BUSES` buses; the others are in the explorer."""
    simulated = run.simulated
    if simulated is None or not simulated.has("spot_price"):
        return None
    cube = simulated.cube("spot_price")
    named = [(run.study.entity_name("buses", id_), cube.of(id_)) for id_ in cube.entities[:MAX_BUSES]]
    parts = [
        fan_chart(
            Fan.over_scenarios(values, cube.labels), f"spot-price-{index}", f"Spot price, {name}", "$/MWh", PURPLE
        ).explained(WORDS)
        for index, (name, values) in enumerate(named)
    ]
    more = len(cube.entities) - len(parts)
    rest = f" {more} more buses are under Plants, buses and lines." if more > 0 else ""
    return Section("prices", "Prices", parts, INTRO + rest)

"""Stored water, and what it is worth."""

import numpy as np

from cobre.report.chart import Chart
from cobre.report.fan_charts import NamedFan, fan_chart, panels_chart
from cobre.report.palette import BLUE, GREEN, SKY
from cobre.report.run_folder import RunFolder
from cobre.report.section import Section
from cobre.report.sections.choice import MOST_PANELS, largest_first, what_is_shown
from cobre.report.simulated import Fan, Simulated
from cobre.report.study_facts import StudyFacts

INTRO = (
    "At the end of each stage, over the simulated scenarios. The value of water is what one more hm³ in the reservoir "
    "would save; a plant without storage has one too, of the water that passes it."
)

STORAGE_WORDS = "Half of the scenarios lie in the dark band, nine of ten in both bands."
INFLOW_WORDS = "Water that rivers bring to all plants together."
PLANT_WORDS = "Which reservoirs are filled and drawn down, and how far scenarios differ. The largest first."
VALUE_WORDS = "High where water is scarce, 0 or less where more would be spilled. The most valuable first."


def water(run: RunFolder) -> Section | None:
    """The whole system first, then plant by plant."""
    simulated = run.simulated
    if simulated is None or not simulated.has("storage"):
        return None
    cube = simulated.cube("storage")
    whole = Fan.over_scenarios(cube.total(), cube.labels)
    reservoirs = [named for named in largest_first(cube, "hydros", run.study) if _moves(named)]
    inflow = simulated.cube("inflow")
    arriving = Fan.over_scenarios(inflow.total(), inflow.labels)
    parts: list[Chart] = [
        fan_chart(whole, "storage", "Stored water, all reservoirs", "hm³").explained(STORAGE_WORDS),
        fan_chart(arriving, "inflow", "Natural inflow, all plants", "m³/s", SKY).explained(INFLOW_WORDS),
    ]
    if reservoirs:
        shown = reservoirs[:MOST_PANELS]
        note = what_is_shown(len(shown), len(reservoirs), "reservoirs whose storage changes", "hydros")
        chart = panels_chart(shown, "storage-plants", "Stored water by plant (hm³)", "hm³", BLUE, note)
        parts.append(chart.explained(PLANT_WORDS))
    parts += _values(simulated, run.study)
    return Section("water", "Water", parts, INTRO)


def _values(simulated: Simulated, study: StudyFacts) -> list[Chart]:
    fans = largest_first(simulated.cube("water_value"), "hydros", study)
    shown = fans[:MOST_PANELS]
    note = what_is_shown(len(shown), len(fans), "plants", "hydros")
    chart = panels_chart(shown, "water-values", "Water values by plant ($/hm³)", "$/hm³", GREEN, note)
    return [chart.explained(VALUE_WORDS)]


def _moves(named: NamedFan) -> bool:
    """Whether anything happens in it: run-of-river plants store the same at all times."""
    found = named.fan.percentiles[np.isfinite(named.fan.percentiles)]
    return bool(np.ptp(found) > 1e-9) if len(found) else False

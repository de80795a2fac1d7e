"""The section on stored water and inflow of all plants."""

from cobre.report.chart import Chart
from cobre.report.fan_charts import fan_chart
from cobre.report.palette import SKY
from cobre.report.run_folder import RunFolder
from cobre.report.section import Section
from cobre.report.simulated import Fan

INTRO = "At the end of each stage, over the simulated scenarios. Single plants are under Plants, buses and lines."
STORAGE_EXPLANATION = "Half of the scenarios lie in the dark band, 90 % in both bands."
INFLOW_EXPLANATION = "Natural inflow, summed over all plants."


def water(run: RunFolder) -> Section | None:
    """Stored water and natural inflow of the whole system; None without simulated hydro plants."""
    simulated = run.simulated
    if simulated is None or not simulated.has("storage"):
        return None
    cube = simulated.cube("storage")
    storage = Fan.over_scenarios(cube.total(), cube.labels)
    inflow = simulated.cube("inflow")
    arriving = Fan.over_scenarios(inflow.total(), inflow.labels)
    parts: list[Chart] = [
        fan_chart(storage, "storage", "Stored water, all reservoirs", "hm³").explained(STORAGE_EXPLANATION),
        fan_chart(arriving, "inflow", "Natural inflow, all plants", "m³/s", SKY).explained(INFLOW_EXPLANATION),
    ]
    return Section("water", "Water", parts, INTRO)

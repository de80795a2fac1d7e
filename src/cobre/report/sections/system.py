"""The section with the map of the system."""

from cobre.report.run_folder import RunFolder
from cobre.report.section import Section
from cobre.report.system_map import system_map

INTRO = (
    "Buses and lines (capacity in each direction), and below them the cascades; rivers flow to the right. A disc is a "
    "reservoir, sized by its volume; a ring is a run-of-river plant; colours are those of the buses. Click a plant, "
    "bus or line to see its results."
)
TOOLS = (
    '<div class="tools"><button type="button" class="link" data-zoom="1.4">Larger</button>'
    '<button type="button" class="link" data-zoom="0.714">Smaller</button>'
    '<button type="button" class="link" data-zoom="0">Fit</button></div>'
)


def system(run: RunFolder) -> Section | None:
    """The map of the system; None if study.json lists no entities."""
    drawn = system_map(run.study, with_links=True)
    if drawn is None:
        return None
    frame = '<div class="map-frame" tabindex="0" role="region" aria-label="Map of the system">'
    card = f'<figure class="card wide" id="system-map">{TOOLS}{frame}{drawn.svg}</div></figure>'
    return Section("system", "Map", [card], INTRO)

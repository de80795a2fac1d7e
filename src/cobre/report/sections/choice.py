"""Which plants get a fan of their own: those that move and are large, as many as a page bears."""

from cobre.report.fan_charts import NamedFan
from cobre.report.simulated import Cube, Fan
from cobre.report.study_facts import StudyFacts

MOST_PANELS = 18


def largest_first(cube: Cube, kind: str, study: StudyFacts) -> list[NamedFan]:
    """A fan for each entity; of equals, the lower id first."""
    fans = [
        NamedFan(study.entity_name(kind, id_), Fan.over_scenarios(cube.of(id_), cube.labels)) for id_ in cube.entities
    ]
    return sorted(fans, key=lambda named: -named.largest)


def what_is_shown(shown: int, present: int, noun: str, file: str) -> str:
    """Nothing is left out in silence."""
    if shown == present:
        return ""
    return f"Shown are the {shown} largest of {present} {noun}; all are in simulation/{file}.parquet."

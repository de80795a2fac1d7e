"""HTML tables that notebooks show for a case and for other objects; without scripts or external resources."""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cobre.core.case import Case

_HEAD = 'style="text-align:left;font-weight:500;opacity:.75"'
_CELL = 'style="text-align:left"'


def facts_html(title: str, facts: Mapping[str, str]) -> str:
    """A heading and a table of names and values, in the notebook's own colours."""
    return f'<div class="cobre-result"><strong>{escape(title)}</strong>{facts_table(facts)}</div>'


def facts_table(facts: Mapping[str, str]) -> str:
    """An HTML table of names and values; empty values are left out."""
    rows = "".join(
        f"<tr><th {_HEAD}>{escape(name)}</th><td {_CELL}>{escape(value)}</td></tr>"
        for name, value in facts.items()
        if value
    )
    return f'<table style="margin:4px 0">{rows}</table>'


def case_html(case: "Case") -> str:
    """A table of the main facts of a case: horizon, number of entities, storage, power, objective."""
    system, stages, training = case.system, case.horizon.stages, case.config.training
    storage = sum(hydro.reservoir.max_storage_hm3 for hydro in system.hydros)
    power = sum(plant.generation.max_mw for plant in system.thermals)
    facts = {
        "stages": f"{len(stages)}, from {stages[0].start_date} to {stages[-1].end_date}" if stages else "none",
        "hydro plants": _counted(len(system.hydros), f"{storage:,.0f} hm³ of storage"),
        "thermal plants": _counted(len(system.thermals), f"{power:,.0f} MW"),
        "wind, solar and other": _counted(len(system.non_controllable_sources)),
        "buses": _counted(len(system.buses)),
        "lines": _counted(len(system.lines)),
        "contracts": _counted(len(system.energy_contracts)),
        "pumping stations": _counted(len(system.pumping_stations)),
        "objective": "risk-averse" if case.is_risk_averse else "expected cost",
        "training": "" if training.enabled else "switched off",
    }
    return facts_html(f"Case {case.name}", facts)


def _counted(count: int, more: str = "") -> str:
    """A count with thousands separators and a remark; empty for zero."""
    return f"{count:,}" + (f", {more}" if more else "") if count else ""

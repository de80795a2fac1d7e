"""Plants: twelve months of evaporation, geometry where it is needed."""

from cobre.core.case import Case
from cobre.core.hydro import Evaporation, Hydro
from cobre.core.units import MONTHS_PER_YEAR
from cobre.io.input_files.entities import HYDROS
from cobre.io.input_files.table_formats import PRODUCTION_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, named

GEOMETRY_FILE = PRODUCTION_TABLES["geometry"].file


def evaporation_by_month(case: Case, findings: Findings) -> None:
    """One coefficient, and one reference volume, for each month."""
    for hydro in case.system.hydros:
        if hydro.evaporation is not None:
            _check_months(hydro, hydro.evaporation, findings)


def _check_months(hydro: Hydro, evaporation: Evaporation, findings: Findings) -> None:
    lists = {
        "coefficients_mm": evaporation.coefficients_mm,
        "reference_volumes_hm3": evaporation.reference_volumes_hm3,
    }
    for field, values in lists.items():
        if values is not None and len(values) != MONTHS_PER_YEAR:
            message = f"has {len(values)} numbers"
            findings.error(HYDROS, named("hydro", hydro), f"evaporation.{field}", message, "12, one for each month")


def geometry_for_evaporation(case: Case, findings: Findings) -> None:
    """Evaporation needs the area of the reservoir."""
    present = geometry_points(case)
    for hydro in case.system.hydros:
        if hydro.evaporation is not None and present.get(hydro.id, 0) == 0:
            message = "has evaporation, but no geometry"
            findings.error(GEOMETRY_FILE, named("hydro", hydro), "", message, "rows of volume, height and area")


def geometry_points(case: Case) -> dict[int, int]:
    """Rows of hydro_geometry.parquet by plant."""
    counts: dict[int, int] = {}
    table = case.production.geometry
    for hydro_id in [] if table is None else table["hydro_id"].tolist():
        counts[hydro_id] = counts.get(hydro_id, 0) + 1
    return counts


RULES: tuple[Rule, ...] = (evaporation_by_month, geometry_for_evaporation)

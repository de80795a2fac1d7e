"""initial_conditions.json: storages, past inflows, releases and commitments at the start of the study."""

from cobre.core.anticipation import PastCommitment
from cobre.core.case import InflowObservation, InitialConditions
from cobre.core.travel_time import PastRelease
from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.json_files import JsonFile, decode
from cobre.io.findings.duplicates import report_duplicates
from cobre.io.findings.problems import Problems
from cobre.records import dataclass

FILE = "initial_conditions.json"


@dataclass(frozen=True, slots=True)
class StorageRecord:
    """The initial volume of a reservoir, hm3."""

    hydro_id: int
    value_hm3: float


class InitialConditionsFile(JsonFile):
    """All of initial_conditions.json."""

    storage: tuple[StorageRecord, ...]
    filling_storage: tuple[StorageRecord, ...]
    recent_observations: tuple[InflowObservation, ...] = ()
    past_defluences: tuple[PastRelease, ...] = ()
    past_anticipated_commitments: tuple[PastCommitment, ...] = ()


def read_initial_conditions(document: Document | None, problems: Problems) -> InitialConditions | None:
    """The initial conditions; rows in order of entity and date. None after errors."""
    file = decode(document, InitialConditionsFile, problems)
    if file is None:
        return None
    report_duplicates(FILE, "storage of hydro", [row.hydro_id for row in file.storage], problems, "hydro_id")
    report_duplicates(
        FILE, "filling storage of hydro", [row.hydro_id for row in file.filling_storage], problems, "hydro_id"
    )
    return InitialConditions(
        storage_hm3=_by_hydro(file.storage),
        filling_storage_hm3=_by_hydro(file.filling_storage),
        recent_observations=tuple(sorted(file.recent_observations, key=lambda row: (row.hydro_id, row.start_date))),
        past_releases=tuple(sorted(file.past_defluences, key=lambda row: (row.hydro_id, row.start_date))),
        past_commitments=tuple(
            sorted(file.past_anticipated_commitments, key=lambda row: (row.thermal_id, row.start_date))
        ),
    )


def _by_hydro(rows: tuple[StorageRecord, ...]) -> dict[int, float]:
    return {row.hydro_id: row.value_hm3 for row in sorted(rows, key=lambda row: row.hydro_id)}

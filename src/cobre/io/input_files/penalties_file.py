"""penalties.json: default costs of violations."""

from cobre.core.penalties import BusPenalties, HydroPenalties, LinePenalties, NonControllablePenalties, Penalties
from cobre.io.decoding.json_documents import Document, rewritten
from cobre.io.decoding.json_files import JsonFile, decode
from cobre.io.findings.problems import Problems

FILE = "penalties.json"


class PenaltiesFile(JsonFile):
    """All of penalties.json."""

    bus: BusPenalties
    line: LinePenalties
    hydro: HydroPenalties
    non_controllable_source: NonControllablePenalties


def read_penalties(document: Document | None, problems: Problems) -> Penalties | None:
    """The costs; a null inflow_nonnegativity_cost means its default. None after errors."""
    file = decode(_without_null_default(document), PenaltiesFile, problems)
    return None if file is None else Penalties(file.bus, file.line, file.hydro, file.non_controllable_source)


def _without_null_default(document: Document | None) -> Document | None:
    key = "inflow_nonnegativity_cost"
    hydro = document.content.get("hydro") if document and isinstance(document.content, dict) else None
    if document is None or not isinstance(hydro, dict) or hydro.get(key, 0.0) is not None:
        return document
    given = {name: value for name, value in hydro.items() if name != key}
    return rewritten(document, {**document.content, "hydro": given})

"""Correlations and block factors as JSON documents."""

from collections.abc import Iterator
from typing import Any

from cobre.core.case import Correlation, CorrelationGroup, ScenarioTables
from cobre.io.input_files.block_factors import LOAD_FILE, SOURCE_FILE, Factors
from cobre.io.input_files.correlation_file import FILE as CORRELATION_FILE


def scenario_documents(scenarios: ScenarioTables) -> Iterator[tuple[str, Any]]:
    """Names of files, and their content; empty files are left out."""
    if scenarios.correlation is not None:
        yield CORRELATION_FILE, correlation_document(scenarios.correlation)
    if scenarios.load_factors:
        yield LOAD_FILE, {"load_factors": _factors("bus_id", scenarios.load_factors)}
    if scenarios.non_controllable_factors:
        factors = _factors("ncs_id", scenarios.non_controllable_factors)
        yield SOURCE_FILE, {"non_controllable_factors": factors}


def correlation_document(correlation: Correlation) -> dict[str, Any]:
    """The content of scenarios/correlation.json."""
    profiles = {
        name: {"correlation_groups": [_group(group) for group in groups]}
        for name, groups in correlation.profiles.items()
    }
    document: dict[str, Any] = {"method": "spectral", "profiles": profiles}
    if correlation.schedule:
        document["schedule"] = [
            {"stage_id": stage_id, "profile_name": name} for stage_id, name in correlation.schedule.items()
        ]
    return document


def _group(group: CorrelationGroup) -> dict[str, Any]:
    entities = [{"type": kind, "id": id_} for kind, id_ in group.entities]
    return {"name": group.name, "entities": entities, "matrix": group.matrix.tolist()}


def _factors(key: str, factors: Factors) -> list[dict[str, Any]]:
    return [
        {
            key: entity_id,
            "stage_id": stage_id,
            "block_factors": [{"block_id": block, "factor": factor} for block, factor in enumerate(values)],
        }
        for (entity_id, stage_id), values in factors.items()
    ]

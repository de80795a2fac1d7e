"""Checks of the parts of a hydro plant whose fields depend on their `type`."""

from collections.abc import Mapping
from dataclasses import replace

from cobre.core.hydro import Hydro
from cobre.io.findings.duplicates import report_duplicates
from cobre.io.findings.problems import Layer, Problems


def check_hydro_forms(hydro: Hydro, file: str, problems: Problems) -> None:
    """Add an error for each field that a part lacks or must not have, and for missing or duplicate unit groups."""
    entity = f"hydro {hydro.id} ({hydro.name})"
    if hydro.tailrace is not None:
        fields = {"coefficients": hydro.tailrace.coefficients, "points": hydro.tailrace.points}
        own = "coefficients" if hydro.tailrace.type == "polynomial" else "points"
        _check_form(f"tailrace ({hydro.tailrace.type})", fields, own, file, entity, problems)
    if hydro.hydraulic_losses is not None:
        losses = hydro.hydraulic_losses
        own = "value" if losses.type == "factor" else "value_m"
        values = {"value": losses.value, "value_m": losses.value_m}
        _check_form(f"hydraulic_losses ({losses.type})", values, own, file, entity, problems)
    if hydro.travel_time_hours is not None and hydro.travel_time_hours < 0.0:
        message = f"is {hydro.travel_time_hours:g}"
        problems.error(Layer.SCHEMA, file, entity, "travel_time_hours", message, "at least 0, or null")
    if not hydro.unit_groups:
        problems.error(Layer.SCHEMA, file, entity, "unit_groups", "there is none", "at least one group")
    groups = [group.id for group in hydro.unit_groups]
    report_duplicates(file, f"{entity}, unit group", groups, problems)


def in_order_of_groups(hydro: Hydro) -> Hydro:
    """The plant with its unit groups by id."""
    return replace(hydro, unit_groups=tuple(sorted(hydro.unit_groups, key=lambda group: group.id)))


def _check_form(form: str, fields: Mapping[str, object], own: str, file: str, entity: str, problems: Problems) -> None:
    part = form.split(" ", maxsplit=1)[0]
    for name, value in fields.items():
        if name == own and value is None:
            problems.error(Layer.SCHEMA, file, entity, f"{part}.{name}", "is missing", f"{form} needs it")
        elif name != own and value is not None:
            problems.error(Layer.SCHEMA, file, entity, f"{part}.{name}", f"is not a field of {form}", f"use `{own}`")

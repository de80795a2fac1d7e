"""Compatibility with cobre-python: an overview of a case."""

from cobre.core.system_overview import (
    Bus,
    EnergyContract,
    Hydro,
    Line,
    NonControllableSource,
    PumpingStation,
    System,
    Thermal,
    system_of,
)

__all__ = [
    "Bus",
    "EnergyContract",
    "Hydro",
    "Line",
    "NonControllableSource",
    "PumpingStation",
    "System",
    "Thermal",
    "system_of",
]

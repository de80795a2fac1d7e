"""An overview of a case, under the name that scripts for cobre-python use."""

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

"""The power system of an example, before it is written to the files of a case."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bus:
    """A region: its mean load, MW, its seasonal variation, and the month of the peak."""

    name: str
    load_mw: float
    load_swing: float = 0.0
    peak_month: int = 1
    load_variation: float = 0.0  # standard deviation as a share of the mean


@dataclass(frozen=True, slots=True)
class Line:
    """A connection between two buses, by their numbers."""

    source: int
    target: int
    direct_mw: float
    reverse_mw: float


@dataclass(frozen=True, slots=True)
class ThermalPlant:
    """A thermal plant."""

    name: str
    bus: int
    cost_per_mwh: float
    max_mw: float
    min_mw: float = 0.0


@dataclass(frozen=True, slots=True)
class WindFarm:
    """A wind farm: mean availability, as a share of the capacity, with its seasonal variation."""

    name: str
    bus: int
    max_mw: float
    mean_share: float
    swing: float
    peak_month: int
    variation: float


@dataclass(frozen=True, slots=True)
class Inflow:
    """The incremental inflow of a plant: annual mean, seasonal variation, standard deviation and autocorrelation."""

    mean_m3s: float
    swing: float
    peak_month: int
    variation: float
    memory: tuple[float, ...] = ()  # standardised autoregressive coefficients, lag 1 first


@dataclass(frozen=True, slots=True)
class ProductionPlane:
    """An upper bound of the power: MW at zero, and by each hm3 stored, each m3/s turbined and each m3/s spilled."""

    gamma_0: float
    gamma_v: float
    gamma_q: float
    gamma_s: float


@dataclass(frozen=True, slots=True)
class HydroPlant:
    """A reservoir with turbines; `downstream` is the number of the plant below it.

    planes: bounds of its power; empty: the power is the flow times the productivity.
    """

    name: str
    bus: int
    downstream: int | None
    min_storage_hm3: float
    max_storage_hm3: float
    initial_storage_hm3: float
    max_turbined_m3s: float
    productivity_mw_per_m3s: float
    min_outflow_m3s: float
    inflow: Inflow
    planes: tuple[ProductionPlane, ...] = ()

    @property
    def max_generation_mw(self) -> float:
        """Return the power, MW, at full flow and, with planes, at full head."""
        return round(self.max_turbined_m3s * self.productivity_mw_per_m3s, 3)


@dataclass(frozen=True, slots=True)
class System:
    """All entities; the id of an entity is its index in its list."""

    buses: tuple[Bus, ...]
    hydros: tuple[HydroPlant, ...]
    thermals: tuple[ThermalPlant, ...]
    lines: tuple[Line, ...] = ()
    winds: tuple[WindFarm, ...] = ()

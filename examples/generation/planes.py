"""Production planes: tangents of a concave production function, which increases with turbined flow and head."""

from dataclasses import replace

from generation.system import HydroPlant, ProductionPlane, System

FLOW_EXPONENT = 0.85  # of the turbined flow: more water raises the tailrace and costs head
HEAD_EXPONENT = 1.0 - FLOW_EXPONENT  # both add up to one, so that the function is concave and lies below its tangents
EMPTY_HEAD = 0.55  # of the head of a full reservoir
SPILLAGE_SHARE = 0.02  # of the power of 1 m3/s: loss by the higher tailrace level if it is spilled
LOWEST_FLOW = 0.1  # share of the maximum flow at which the first tangents touch
DIGITS = 9


def with_planes(system: System, count: int) -> System:
    """Return the same system with `count` planes for each hydro plant instead of a constant productivity."""
    return replace(system, hydros=tuple(replace(plant, planes=_planes(plant, count)) for plant in system.hydros))


def _planes(plant: HydroPlant, count: int) -> tuple[ProductionPlane, ...]:
    """Return a plane through zero flow, then tangents at points spread evenly over flow and volume."""
    through_zero = ProductionPlane(0.0, 0.0, round(plant.productivity_mw_per_m3s / EMPTY_HEAD, DIGITS), 0.0)
    tangents = [_tangent(plant, (index + 0.5) / (count - 1), _halton(index + 1)) for index in range(count - 1)]
    return (through_zero, *tangents)


def _tangent(plant: HydroPlant, flow_place: float, volume_place: float) -> ProductionPlane:
    """Return the tangent at a point of `productivity * flow^a * flow_at_full_load^(1 - a) * head^(1 - a)`, in MW."""
    full_m3s, full_hm3 = plant.max_turbined_m3s, plant.max_storage_hm3
    flow = LOWEST_FLOW + (1.0 - LOWEST_FLOW) * flow_place
    volume = volume_place * full_hm3
    slope = (1.0 - EMPTY_HEAD) / full_hm3
    head = EMPTY_HEAD + slope * volume
    power = plant.productivity_mw_per_m3s * full_m3s * flow**FLOW_EXPONENT * head**HEAD_EXPONENT
    by_flow = FLOW_EXPONENT * power / (flow * full_m3s)
    by_volume = HEAD_EXPONENT * power / head * slope
    at_zero = power - by_flow * flow * full_m3s - by_volume * volume
    spilled = -SPILLAGE_SHARE * plant.productivity_mw_per_m3s
    return ProductionPlane(*(round(value, DIGITS) for value in (at_zero, by_volume, by_flow, spilled)))


def _halton(index: int) -> float:
    """Return the radical inverse in base two: evenly distributed for any count."""
    value, weight = 0.0, 0.5
    while index:
        value += weight * (index & 1)
        index >>= 1
        weight /= 2.0
    return value

"""Hypothesis strategies: small systems with a little of everything, and always a feasible plan."""

from hypothesis import strategies as st
from small_system import (
    SmallContract,
    SmallHydro,
    SmallLine,
    SmallPump,
    SmallSource,
    SmallSystem,
    SmallThermal,
)


def whole(low: int, high: int) -> st.SearchStrategy[float]:
    """Draw whole numbers as floats: a failing example is then easy to read."""
    return st.integers(low, high).map(float)


def quarters(low: int, high: int) -> st.SearchStrategy[float]:
    return st.integers(4 * low, 4 * high).map(lambda number: number / 4.0)


@st.composite
def hydros(draw: st.DrawFn, count: int, buses: int, *, may_remember: bool) -> tuple[SmallHydro, ...]:
    remembers = may_remember and draw(st.booleans())
    return tuple(draw(hydro(index, count, buses, remembers=remembers)) for index in range(count))


@st.composite
def hydro(draw: st.DrawFn, index: int, count: int, buses: int, *, remembers: bool) -> SmallHydro:
    """Draw a plant; spread and memory are small enough for every inflow to be positive."""
    below = draw(st.one_of(st.none(), st.integers(index + 1, count - 1))) if index + 1 < count else None
    least, room = draw(whole(0, 20)), draw(whole(5, 300))
    mean = draw(whole(5, 60))
    return SmallHydro(
        bus=draw(st.integers(0, buses - 1)),
        downstream=below,
        min_hm3=least,
        max_hm3=least + room,
        first_hm3=least + round(room * draw(st.integers(0, 10)) / 10.0, 1),
        max_turbined=draw(whole(20, 150)),
        productivity=draw(quarters(1, 2)),
        min_outflow=draw(whole(0, 10)),
        mean_inflow=mean,
        std_inflow=round(mean * draw(st.integers(1, 4)) / 20.0, 3),
        memory=draw(st.integers(1, 6)) / 10.0 if remembers else None,
        last_inflow=round(mean * draw(st.integers(9, 11)) / 10.0, 3) if remembers else 0.0,
    )


@st.composite
def thermals(draw: st.DrawFn, buses: int) -> tuple[SmallThermal, ...]:
    plants = []
    for _ in range(draw(st.integers(1, 3))):
        most = draw(whole(5, 80))
        least = draw(st.sampled_from((0.0, 0.0, most / 4.0)))
        plants.append(SmallThermal(draw(st.integers(0, buses - 1)), draw(whole(10, 300)), least, most))
    return tuple(plants)


@st.composite
def lines(draw: st.DrawFn, buses: int, *, may_lose: bool) -> tuple[SmallLine, ...]:
    losses = st.sampled_from((0.0, 0.0, 4.0)) if may_lose else st.just(0.0)
    return tuple(
        SmallLine(target - 1, target, draw(whole(5, 60)), draw(whole(5, 60)), draw(losses))
        for target in range(1, buses)
    )


def noise(stages: int, openings: int, hydros: int) -> st.SearchStrategy[tuple[tuple[tuple[float, ...], ...], ...]]:
    values = st.tuples(*[quarters(-2, 2)] * hydros)
    return st.tuples(*[st.tuples(*[values] * openings)] * stages)


@st.composite
def extras(draw: st.DrawFn, buses: int, hydros: int) -> dict[str, object]:
    """Draw rewards, trade and pumps: costs may be negative."""
    bus = st.integers(0, buses - 1)
    source = st.builds(SmallSource, bus, whole(5, 40), quarters(0, 20).map(lambda reward: reward + 0.5))
    contract = st.builds(SmallContract, bus, st.sampled_from((1, -1)), whole(-80, 150), whole(5, 30))
    found: dict[str, object] = {
        "sources": tuple(draw(st.lists(source, max_size=1))),
        "contracts": tuple(draw(st.lists(contract, max_size=2))),
    }
    if hydros > 1 and draw(st.booleans()):
        found["pumps"] = (SmallPump(draw(bus), hydros - 1, 0, draw(quarters(1, 2)), draw(whole(5, 30))),)
    return found


@st.composite
def small_systems(draw: st.DrawFn, *, is_plain: bool = False, is_averse: bool = False) -> SmallSystem:
    """Draw up to three plants, two buses, four stages, three openings. plain: as the Rust program models them."""
    stages, openings = draw(st.sampled_from(((2, 3), (3, 2), (3, 3), (4, 2)) if not is_averse else ((2, 4), (3, 3))))
    buses, count = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    blocks = draw(st.sampled_from((((730.0,), (1.0,)), ((200.0, 530.0), (1.25, 0.9)))))
    return SmallSystem(
        loads=draw(st.tuples(*[st.tuples(*[whole(20, 120)] * buses)] * stages)),
        noise=draw(noise(stages, openings, count)),
        hours=blocks[0],
        load_factors=blocks[1],
        hydros=draw(hydros(count, buses, may_remember=True)),
        thermals=draw(thermals(buses)),
        lines=draw(lines(buses, may_lose=not is_plain)),
        is_chronological=draw(st.booleans()),
        discount_rate=draw(st.sampled_from((0.0, 0.1))),
        risk=draw(risks()) if is_averse else None,
        **({} if is_plain else draw(extras(buses, count))),
    )


def risks() -> st.SearchStrategy[tuple[float, float]]:
    """Draw tails of whole openings, and tails that split one."""
    return st.tuples(st.sampled_from((0.25, 0.3, 0.5, 0.8)), st.sampled_from((0.2, 0.5, 1.0)))

"""A system in which nothing can be decided: what every path costs is plain arithmetic."""

from small_system import SmallHydro, SmallSystem, SmallThermal

HOURS = 730.0
CHEAP, DEAR = 20.0, 150.0
CHEAP_MW = 40.0

# A plant without a reservoir worth the name: what flows in is turbined. The loads are above what it can give.
RIVER = SmallHydro(
    bus=0,
    downstream=None,
    min_hm3=0.0,
    max_hm3=0.0,
    first_hm3=0.0,
    max_turbined=200.0,
    productivity=1.0,
    min_outflow=0.0,
    mean_inflow=40.0,
    std_inflow=8.0,
)
SYSTEM = SmallSystem(
    loads=((90.0,), (110.0,), (120.0,)),
    noise=(
        ((-1.5,), (-0.5,), (0.25,), (2.0,)),
        ((-2.0,), (-0.25,), (1.0,), (1.5,)),
        ((1.75,), (0.0,), (0.5,), (-2.0,)),
    ),
    hours=(HOURS,),
    load_factors=(1.0,),
    hydros=(RIVER,),
    thermals=(SmallThermal(0, CHEAP, 0.0, CHEAP_MW), SmallThermal(0, DEAR, 0.0, 500.0)),
    discount_rate=0.1,
)

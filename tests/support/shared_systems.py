"""Two small systems that several tests share: a river without decisions, and reservoirs in a cascade."""

from dataclasses import replace

from small_system import SmallHydro, SmallSystem, SmallThermal

# A river without decisions: the cost of every path is plain arithmetic.

HOURS = 730.0
CHEAP, DEAR = 20.0, 150.0
CHEAP_MW = 40.0

# A plant with a negligible reservoir turbines its inflow. The loads exceed its capacity.
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

# Reservoirs whose bounds can be checked against the extensive form.

LOWER = SmallHydro(
    bus=0,
    downstream=None,
    min_hm3=10.0,
    max_hm3=200.0,
    first_hm3=80.0,
    max_turbined=80.0,
    productivity=0.9,
    min_outflow=5.0,
    mean_inflow=40.0,
    std_inflow=12.0,
)
UPPER = replace(LOWER, downstream=0, max_hm3=120.0, first_hm3=60.0, mean_inflow=20.0, std_inflow=6.0, max_turbined=60.0)
OPENINGS = ((-1.5, -0.5, 0.25, 2.0), (-2.0, -0.25, 1.0, 1.5), (1.75, 0.0, 0.5, -2.0), (1.2, -1.0, 0.3, -0.7))


def reservoirs(risk=(0.3, 0.6), memory=None):
    """Return two reservoirs in a cascade over four stages of four openings. memory: of a first-order inflow model."""
    noise = tuple(tuple(zip(stage, reversed(stage), strict=True)) for stage in OPENINGS)
    return SmallSystem(
        loads=((90.0,), (110.0,), (120.0,), (100.0,)),
        noise=noise,
        hours=(500.0, 230.0),
        load_factors=(1.1, 0.8),
        hydros=(replace(LOWER, memory=memory, last_inflow=35.0), replace(UPPER, memory=memory, last_inflow=15.0)),
        thermals=(SmallThermal(0, 20.0, 0.0, 30.0), SmallThermal(0, 150.0, 0.0, 25.0)),
        discount_rate=0.1,
        risk=risk,
    )

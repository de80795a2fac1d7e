"""A plant with everything that a production function needs."""

from datetime import date

import numpy as np

from cobre.core.hydro import (
    Efficiency,
    HydraulicLosses,
    Hydro,
    HydroGeneration,
    Outflow,
    Reservoir,
    Tailrace,
    UnitGroup,
)
from cobre.sddp.hydro_models.reservoir import ReservoirGeometry

GEOMETRY = ReservoirGeometry(
    np.array([0.0, 50.0, 120.0, 200.0]), np.array([300.0, 320.0, 338.0, 350.0]), np.array([1.0, 1.5, 1.8, 2.0])
)
HYDRO = Hydro(
    id=0,
    name="H0",
    operational_start_date=date(2024, 1, 1),
    reservoir=Reservoir(0.0, 200.0),
    outflow=Outflow(0.0),
    generation=HydroGeneration("fpha", 0.0, 50.0, 0.0, 60.0),
    unit_groups=(UnitGroup(0, "a", 0, 0.0, 50.0, 0.0, 60.0),),
    tailrace=Tailrace("polynomial", coefficients=(250.0, 0.05, 0.0002)),
    hydraulic_losses=HydraulicLosses("factor", value=0.03),
    efficiency=Efficiency("constant", 0.92),
)

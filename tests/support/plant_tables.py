"""Plants and their tables that several small systems share."""

from small_cases import thermal

THERMALS = [thermal(0, 20.0, 20.0), thermal(1, 60.0, 25.0), thermal(2, 180.0, 15.0)]
GEOMETRY = [
    {"hydro_id": number, "volume_hm3": volume, "height_m": height, "area_km2": area}
    for number in (0, 1)
    for volume, height, area in ((0.0, 100.0, 1.0), (40.0, 110.0, 3.0), (100.0, 120.0, 8.0))
]
PLANES = [
    {"hydro_id": 0, "plane_id": number, "gamma_0": constant, "gamma_v": v, "gamma_q": q, "gamma_s": s, "kappa": kappa}
    for number, (constant, v, q, s, kappa) in enumerate(
        ((1.0, 0.02, 0.8, -0.01, 1.0), (6.0, 0.05, 0.5, 0.0, 0.9), (10.0, 0.06, 0.2, -0.02, 0.95))
    )
]
PRODUCTIVITY = [
    {
        "hydro_id": 0,
        "stage_id": None,
        "equivalent_productivity_mw_per_m3s": 1.0,
        "reference_outflow_m3s": None,
        "specific_productivity_mw_per_m3s_per_m": None,
    }
]

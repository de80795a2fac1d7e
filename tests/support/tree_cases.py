"""Trees of nodes, drawn with a seed."""

from dataclasses import replace

import numpy as np
from crafted_case import CraftedCase, Period

EXTERNAL = {"seed": 1, "inflow": {"scheme": "external"}}
ENUMERATED = {"method": "enumerated"}
LIMIT = ({"type": "iteration_limit", "limit": 25},)


def drawn_tree(seed: int, *, branches: tuple[int, ...], plants: int = 1, **rest) -> CraftedCase:
    """Draw a tree with these numbers of children by stage; ids are shuffled, probabilities and inflows random."""
    random = np.random.default_rng(seed)
    levels, nodes, edges, external = [[0]], [{"id": 0, "stage_id": 0, "scenario_id": 0}], [], []
    fresh = iter(random.permutation(np.arange(1, 400)).tolist())
    for stage, count in enumerate(branches, start=1):
        here = []
        for parent in levels[-1]:
            shares = random.dirichlet(np.full(count, 2.0))
            for share in shares:
                child = next(fresh)
                nodes.append({"id": child, "stage_id": stage, "scenario_id": len(here)})
                edges.append({"source_id": parent, "target_id": child, "probability": float(share)})
                here.append(child)
        levels.append(here)
    for stage, here in enumerate(levels):
        for scenario in range(len(here)):
            external += [(stage, scenario, plant, float(random.uniform(5.0, 110.0))) for plant in range(plants)]
    periods = [Period(f"2024-{m:02}-01", f"2024-{m + 1:02}-01", openings=None) for m in range(1, len(levels) + 1)]
    case = CraftedCase(
        periods=periods,
        nodes=nodes,
        transitions=edges,
        external=external,
        plants=plants,
        load_mw=150.0 * (1.0 + 0.6 * (plants - 1)),
        selection=ENUMERATED,
        source=EXTERNAL,
        rules=LIMIT,
        simulation={"selection": ENUMERATED},
    )
    return replace(case, **rest)


def with_risk(case: CraftedCase, alpha: float, share: float) -> CraftedCase:
    return replace(case, periods=[replace(period, risk=(alpha, share)) for period in case.periods])


def with_loads(case: CraftedCase, seed: int) -> CraftedCase:
    """Add external loads, as many as there are inflows."""
    random = np.random.default_rng(seed)
    keys = sorted({row[:2] for row in case.external})
    loads = [(*key, 0, float(random.uniform(110.0, 190.0))) for key in keys]
    return replace(case, external_load=loads, load_std=10.0, source=EXTERNAL | {"load": {"scheme": "external"}})


TREES = {
    "fan": drawn_tree(1, branches=(4,)),
    "binary": drawn_tree(2, branches=(2, 2, 2)),
    "late fan": drawn_tree(3, branches=(1, 1, 5)),
    "cascade": drawn_tree(4, branches=(3, 2), plants=2),
    "discounted": drawn_tree(5, branches=(2, 3), discount_rate=0.12),
    "averse": with_risk(drawn_tree(6, branches=(3, 3)), 0.4, 0.6),
    "very averse": with_risk(drawn_tree(7, branches=(4, 2)), 0.1, 1.0),
    "averse cascade": with_risk(drawn_tree(8, branches=(2, 2, 2), plants=2, discount_rate=0.08), 0.5, 0.3),
    "loads": with_loads(drawn_tree(9, branches=(2, 3)), 9),
    "chain": drawn_tree(10, branches=(1, 1, 1)),
}

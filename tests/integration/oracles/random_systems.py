"""Random systems of three to six features, trained and compared with the optimum of their whole scenario tree.

    make oracle                  # 200 systems
    make oracle SEED=7 COUNT=50  # others, and fewer

The extensive form (`tests/support/extensive_form.py`) is written from the entities alone and solved as one LP by HiGHS;
nothing of the package made it. Every line has the seed of its system: `SEED` of that line and `COUNT=1` repeat it.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

import numpy as np
from extensive_form import optimum
from shuffled_case import shuffled_case, write_shuffled
from small_system import (
    HM3_PER_M3S_HOUR,
    SmallContract,
    SmallHydro,
    SmallLine,
    SmallNode,
    SmallPump,
    SmallSource,
    SmallSystem,
    SmallThermal,
    write_case,
)

import cobre

TOLERANCE = 1e-6  # relative; costs below ten thousand $ count as ten thousand
SMALL_COST = 10_000.0
PASSES, ITERATIONS, MORE_ITERATIONS = 6, 30, 200


def base(draw: random.Random) -> SmallSystem:
    """Draw two or three reservoirs and thermal plants on one bus, a few stages and openings."""
    stages, openings = draw.choice(((2, 3), (3, 2), (3, 3), (4, 2)))
    count = draw.randint(2, 3)
    return SmallSystem(
        loads=tuple((float(draw.randint(20, 120)),) for _ in range(stages)),
        noise=tuple(
            tuple(tuple(draw.randint(-8, 8) / 4.0 for _ in range(count)) for _ in range(openings))
            for _ in range(stages)
        ),
        hours=(730.0,),
        load_factors=(1.0,),
        hydros=tuple(_hydro(draw) for _ in range(count)),
        thermals=tuple(_thermal(draw) for _ in range(draw.randint(1, 3))),
    )


def _hydro(draw: random.Random) -> SmallHydro:
    """Draw a plant; spread and memory are small enough for every inflow to be positive."""
    least, room, mean = float(draw.randint(0, 20)), float(draw.randint(5, 300)), float(draw.randint(5, 60))
    return SmallHydro(
        bus=0,
        downstream=None,
        min_hm3=least,
        max_hm3=least + room,
        first_hm3=least + round(room * draw.randint(0, 10) / 10.0, 1),
        max_turbined=float(draw.randint(20, 150)),
        productivity=draw.randint(4, 8) / 4.0,
        min_outflow=0.0,
        mean_inflow=mean,
        std_inflow=round(mean * draw.randint(1, 4) / 20.0, 3),
    )


def _thermal(draw: random.Random) -> SmallThermal:
    return SmallThermal(0, float(draw.randint(10, 300)), 0.0, float(draw.randint(5, 80)))


def memory(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Give inflows a lag of one stage."""
    return _with_hydros(
        system, lambda hydro: {"memory": draw.randint(1, 6) / 10.0, "last_inflow": hydro.mean_inflow * 1.05}
    )


def cascade(system: SmallSystem, draw: random.Random) -> SmallSystem:
    below = [draw.randint(index + 1, len(system.hydros) - 1) for index in range(len(system.hydros) - 1)]
    plants = zip(system.hydros, [*below, None], strict=True)
    return replace(system, hydros=tuple(replace(hydro, downstream=target) for hydro, target in plants))


def outflow(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Add minimum outflows, at a price."""
    return _with_hydros(system, lambda _: {"min_outflow": float(draw.randint(1, 30))})


def network(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Add a second bus behind a line, with losses in half of the draws; plants are on both."""
    line = SmallLine(0, 1, float(draw.randint(5, 60)), float(draw.randint(5, 60)), draw.choice((0.0, 4.0)))
    return replace(
        _with_hydros(system, lambda _: {"bus": draw.randint(0, 1)}),
        loads=tuple((*loads, float(draw.randint(10, 60))) for loads in system.loads),
        thermals=tuple(replace(plant, bus=draw.randint(0, 1)) for plant in system.thermals),
        lines=(line,),
    )


def blocks(system: SmallSystem, draw: random.Random) -> SmallSystem:
    return replace(system, hours=(200.0, 530.0), load_factors=(1.0 + draw.randint(1, 4) / 10.0, 0.9))


def chronological(system: SmallSystem, draw: random.Random) -> SmallSystem:
    return replace(blocks(system, draw), is_chronological=True)


def minimum_generation(system: SmallSystem, _: random.Random) -> SmallSystem:
    return replace(system, thermals=tuple(replace(plant, min_mw=plant.max_mw / 4.0) for plant in system.thermals))


def wind(system: SmallSystem, draw: random.Random) -> SmallSystem:
    source = SmallSource(0, float(draw.randint(5, 40)), draw.randint(0, 80) / 4.0 + 0.5)
    return replace(system, sources=(source,))


def contracts(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Add an import and an export contract; prices may be negative."""
    both = (SmallContract(0, sign, float(draw.randint(-80, 150)), float(draw.randint(5, 30))) for sign in (1, -1))
    return replace(system, contracts=tuple(both))


def pump(system: SmallSystem, draw: random.Random) -> SmallSystem:
    last = len(system.hydros) - 1
    return replace(system, pumps=(SmallPump(0, last, 0, draw.randint(4, 8) / 4.0, float(draw.randint(5, 30))),))


def discount(system: SmallSystem, draw: random.Random) -> SmallSystem:
    return replace(system, discount_rate=draw.choice((0.05, 0.12, 0.5)))


def risk(system: SmallSystem, draw: random.Random) -> SmallSystem:
    return replace(system, risk=(draw.choice((0.25, 0.3, 0.5, 0.8)), draw.choice((0.2, 0.5, 1.0))))


def thermal_bounds(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Change capacities and prices in some stages."""
    pairs = [(plant, stage) for plant in range(len(system.thermals)) for stage in range(len(system.loads))]
    rows = [
        (plant, stage, system.thermals[plant].min_mw + draw.randint(0, 60), float(draw.randint(5, 400)))
        for plant, stage in draw.sample(pairs, len(pairs) // 2)
    ]
    return replace(system, thermal_rows=tuple(rows))


def hydro_bounds(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Remove machines in some stages, and storage at the end of others."""
    pairs = [(plant, stage) for plant in range(len(system.hydros)) for stage in range(len(system.loads))]
    fewer = draw.sample(pairs, len(pairs) // 2)  # rows may lower the declared limit of the plant, not raise it
    turbines = [(*pair, round(system.hydros[pair[0]].max_turbined * draw.random(), 1)) for pair in fewer]
    others = [pair for pair in pairs if pair not in {row[:2] for row in turbines}]
    volumes = [(*pair, _lower(system.hydros[pair[0]], draw)) for pair in others]
    return replace(system, turbine_rows=tuple(turbines), storage_rows=tuple(volumes))


def _lower(hydro: SmallHydro, draw: random.Random) -> float:
    return hydro.min_hm3 + round((hydro.max_hm3 - hydro.min_hm3) * draw.randint(2, 10) / 10.0, 1)


def generic_constraint(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Constrain all thermal plants together, with a slack."""
    return replace(system, floor=(float(draw.randint(5, 90)), float(draw.randint(20, 500))))


def planes(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Limit production by planes that rise with the volume and the flow, and fall with spillage."""

    def of_plant(hydro: SmallHydro) -> dict:
        first, second = hydro.productivity, hydro.productivity * 0.7
        by_volume = [draw.randint(0, 4) / 100.0 for _ in range(2)]
        by_spillage = -draw.randint(0, 3) / 100.0
        knee = hydro.max_turbined * draw.randint(2, 8) / 10.0
        one = (float(draw.randint(0, 2)), by_volume[0], first, by_spillage)
        return {"planes": (one, (one[0] + (first - second) * knee, by_volume[1], second, by_spillage))}

    return _with_hydros(system, of_plant)


def evaporation(system: SmallSystem, draw: random.Random) -> SmallSystem:
    def of_plant(_: SmallHydro) -> dict:
        small = float(draw.randint(1, 10))
        return {"evaporation_mm": float(draw.randint(20, 250)), "area": (small, small + draw.randint(1, 20))}

    return _with_hydros(system, of_plant)


def travel_times(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Add travel times of a fraction of a stage up to several stages; the last plant has none."""
    system = cascade(system, draw) if all(hydro.downstream is None for hydro in system.hydros) else system
    return _with_hydros(
        system,
        lambda hydro: (
            {}
            if hydro.downstream is None
            else {"travel_hours": float(draw.randint(50, 1800)), "released_before": float(draw.randint(0, 20))}
        ),
    )


def anticipated(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Let the first thermal plant commit one or two stages ahead."""
    plant, lead = system.thermals[0], draw.randint(1, 2)
    most = min(system.thermal(0, stage)[0] for stage in range(system.num_stages))
    order = min(most, plant.min_mw + round((most - plant.min_mw) * draw.randint(0, 10) / 10.0, 1))
    return replace(system, thermals=(replace(plant, lead=lead, order_mw=order), *system.thermals[1:]))


def external(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Take inflows from a file of scenarios; openings get noise with its means and deviations.

    Two stages only: a forward path keeps its scenario and never sees the later stages of other scenarios.
    """
    system = replace(system, loads=system.loads[:2], noise=system.noise[:2])
    shape = system.num_stages, system.num_openings, len(system.hydros)
    library = np.array([draw.randint(2, 60) for _ in range(int(np.prod(shape)))], float).reshape(shape)
    mean, std = library.mean(axis=1, keepdims=True), library.std(axis=1, keepdims=True)
    noise = (library - mean) / np.where(std > 0.0, std, 1.0)
    as_tuples = [
        tuple(tuple(tuple(opening) for opening in stage) for stage in values.tolist()) for values in (library, noise)
    ]
    return replace(system, library=as_tuples[0], noise=as_tuples[1])


def tree(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Replace openings by a tree of nodes, each with its inflow and probability."""
    nodes = [SmallNode(0, -1, 1.0, _inflows(system, draw))]
    for stage in range(1, system.num_stages):
        count = draw.randint(1, 3)
        for parent in [at for at, node in enumerate(nodes) if node.stage == stage - 1]:
            shares = [draw.randint(1, 9) for _ in range(count)]
            nodes += [SmallNode(stage, parent, share / sum(shares), _inflows(system, draw)) for share in shares]
    return replace(system, noise=(), tree=tuple(nodes))


def _inflows(system: SmallSystem, draw: random.Random) -> tuple[float, ...]:
    return tuple(float(draw.randint(2, 60)) for _ in system.hydros)


def filling(system: SmallSystem, draw: random.Random) -> SmallSystem:
    """Fill the dead volume of a plant for the first time; before that, water may pass where its dam will be.

    Skip plants of pumping stations and of arcs with travel time, which must exist in all stages.
    """
    has_station, travels = bool(system.pumps), any(hydro.travel_hours for hydro in system.hydros)
    start = 0 if has_station or travels else draw.randint(0, min(1, system.num_stages - 2))
    entry = draw.randint(start + 1, system.num_stages - 1)
    at = 0 if has_station else draw.randrange(len(system.hydros))
    plant = system.hydros[at]
    dead = max(plant.min_hm3, 1.0)
    first = round(dead * draw.randint(0, 8) / 10.0, 1)
    hm3_per_m3s = (entry - start) * HM3_PER_M3S_HOUR * sum(system.hours)
    rate = (dead - first) / hm3_per_m3s * draw.choice((1.001, 1.3, 3.0))
    filled = replace(plant, min_hm3=dead, first_hm3=first, filling=(start, entry, rate))
    return replace(system, hydros=(*system.hydros[:at], filled, *system.hydros[at + 1 :]))


def _with_hydros(system: SmallSystem, change) -> SmallSystem:
    return replace(system, hydros=tuple(replace(hydro, **change(hydro)) for hydro in system.hydros))


SYSTEM_FEATURES = (
    external,
    memory,
    cascade,
    outflow,
    network,
    blocks,
    chronological,
    wind,
    contracts,
    pump,
    discount,
    risk,
    minimum_generation,
    thermal_bounds,
    hydro_bounds,
    generic_constraint,
    planes,
    evaporation,
    travel_times,
    anticipated,
    tree,
    filling,
)
"""In the order in which they are applied: bounds by stage know the limits that came before."""
# Volumes within a stage, and water under way by the hour, have no meaning that all of these share.
APART = (
    {blocks, chronological},
    {chronological, planes},
    {chronological, evaporation},
    {chronological, travel_times},
    {blocks, travel_times},
    {memory, external},
    {memory, tree},
    {external, tree},
)


def level1(case, draw):
    return _with_selection(case, {"method": "level1", "check_frequency": draw.randint(1, 4)})


def lml1(case, draw):
    return _with_selection(case, {"method": "lml1", "check_frequency": draw.randint(1, 4)})


def dynamic(case, _):
    return _with_selection(case, {"method": "dynamic"})


def other_order(case, draw):
    """Write the files with declarations in another order."""
    return write_shuffled(case, case.parent / "shuffled", draw.randint(0, 1000))


def in_memory(case, draw):
    """Return a case in memory with entities, rows and mappings in another order."""
    return shuffled_case(cobre.load_case(case), draw)


def _with_selection(case, selection):
    config = json.loads((case / "config.json").read_text())
    config["training"]["cut_selection"] = {"selection": selection}
    (case / "config.json").write_text(json.dumps(config))
    return case


CASE_FEATURES = (level1, lml1, dynamic, other_order, in_memory)
"""How the case is given and trained; in this order, the last ones change its form."""


def draw_system(seed: int):
    """Draw the system of a seed; return it, the names of its features, and the features that change its files."""
    draw = random.Random(seed)
    while True:
        chosen = set(draw.sample((*SYSTEM_FEATURES, *CASE_FEATURES), draw.randint(3, 6)))
        if not any(pair <= chosen for pair in APART) and len(chosen & {level1, lml1, dynamic}) < 2:
            break
    system = base(draw)
    for feature in SYSTEM_FEATURES:
        if feature in chosen:
            system = feature(system, draw)
    later = [feature for feature in CASE_FEATURES if feature in chosen]
    return system, sorted(feature.__name__ for feature in chosen), later, draw


def distance(bound: float, best: float) -> float:
    return (bound - best) / max(SMALL_COST, abs(best))


def check(seed: int) -> tuple[list[str], str]:
    """Train the system of a seed; return the names of its features, and the error or ""."""
    system, names, later, draw = draw_system(seed)
    best = optimum(system)
    folder = Path(tempfile.mkdtemp())
    try:
        for iterations in (ITERATIONS, MORE_ITERATIONS):
            (folder / str(iterations)).mkdir()
            case = write_case(folder / str(iterations) / "case", system, PASSES, iterations)
            for feature in later:
                case = feature(case, draw)
            history = cobre.train(case, threads=1).history
            above = max(distance(record.lower_bound, best) for record in history)
            if above > TOLERANCE:
                return names, f"a lower bound is above the optimum {best:.6f} by {above:.3e}"
            if distance(history[-1].lower_bound, best) >= -TOLERANCE:
                return names, ""
        return (
            names,
            f"the lower bound stays below the optimum {best:.6f}: {distance(history[-1].lower_bound, best):.3e}",
        )
    finally:
        shutil.rmtree(folder)


def main() -> int:
    """Check systems one after the other; return 1 if a bound is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the first system; others follow")
    parser.add_argument("--count", type=int, default=200)
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    failures = []
    for seed in range(given.seed, given.seed + given.count):
        try:
            names, problem = check(seed)
        except Exception:  # noqa: BLE001 - a crash is a finding like any other
            names, problem = draw_system(seed)[1], traceback.format_exc()
        counts.update(names)
        if problem:
            failures.append(seed)
        print(f"seed {seed}: {', '.join(names)}: {problem or 'equal'}", flush=True)
    print(
        f"{given.count - len(failures)} of {given.count} systems equal to the extensive form (relative {TOLERANCE:g})"
    )
    print("features:", ", ".join(f"{name} {counts[name]}" for name in sorted(counts)))
    if failures:
        print(f"failed: {', '.join(f'SEED={seed}' for seed in failures)} (COUNT=1)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

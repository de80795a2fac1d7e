"""A DECOMP deck with official results, run here and compared: `python benchmarks/decomp_comparison.py DECK.zip`.

The weeks of the first month are run with a cost-to-go behind them: by default the official program's own cuts after
the last week (dec_fcf_cortes_NNN), with --no-fcf none. Printed beside the
official results, stage by stage: generation by subsystem and source, useful storage, interchange, marginal cost, cost.

The cost-to-go of NEWAVE behind the second month is not published, so the stage of that month is left out.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import cobre
from cobre.bridge.archive import unpacked_deck
from cobre.bridge.conversion import DeckRequest, convert_deck_quietly
from cobre.bridge.environment import bridge_at, managed_bridge

ROOT = Path(__file__).resolve().parents[1]
THOUSAND = 1000.0  # official costs are in 1000 $
COST_SCALE = 1.0e6
GAP, MAX_ITERATIONS = 1e-5, 40  # of a cost that is nearly all cost-to-go
WHOLE_STAGE = "-"  # in the column of blocks: the mean of a stage
TREES = {"scenarios/load_factors.json", "scenarios/non_controllable_factors.json"}
Key = tuple[str, int, str]  # quantity, stage from 1, entity
Values = dict[Key, float]


def official_rows(path: Path) -> Iterator[dict[str, str]]:
    """Read the rows of an official table: fields separated by semicolons, below a line of names."""
    names: list[str] = []
    for line in path.read_text(encoding="latin-1").splitlines():
        cells = [cell.strip() for cell in line.split(";")]
        if len(cells) > 5 and cells[0] in ("IPER", "ITER"):
            names = cells
        elif names and len(cells) >= len(names) - 1 and cells[0].isdigit():
            yield dict(zip(names, cells, strict=False))


def official_values(deck: Path, stages: int) -> Values:
    """Read the results of the official program for the first stages."""
    numbers: Values = defaultdict(float)
    sources = {"hydro": "Ghid", "thermal": "Gter", "other": "GerPeq", "load": "Demanda", "marginal cost": "CMO"}
    for row in official_rows(deck / "dec_oper_sist.csv"):
        stage = int(row["IPER"])
        if stage <= stages and row["IPAT"] == WHOLE_STAGE:
            for quantity, column in sources.items():
                numbers[quantity, stage, row["Nome Sist"]] = _number(row[column])
    for row in official_rows(deck / "dec_oper_interc.csv"):
        stage = int(row["IPER"])
        if stage <= stages and row["IPAT"] == WHOLE_STAGE:
            ends = (row["Sist Origem"], row["Sist Destino"])
            sign, pair = (1.0, ends) if ends[0] < ends[1] else (-1.0, ends[::-1])
            numbers["interchange", stage, "-".join(pair)] += sign * _number(row["Int.Origem"])
    for row in official_rows(deck / "dec_oper_usih.csv"):
        stage = int(row["IPER"])
        if stage <= stages and row["IPAT"] == WHOLE_STAGE:
            numbers["storage", stage, row["Nome Sist"]] += _number(row["VutilFim"])
    numbers.update({("cost", stage, ""): cost for stage, cost in enumerate(official_costs(deck)[:stages], 1)})
    return dict(numbers)


def official_costs(deck: Path) -> list[float]:
    """Read the cost of operation of each stage at its own prices, in $, from the report (relato)."""
    words = "Custo total de operacao no estagio:"
    path = next(path for path in sorted(deck.iterdir()) if path.name.lower().startswith("relato."))
    lines = path.read_text(encoding="latin-1").splitlines()
    return [
        THOUSAND * float(line.split(":")[1].split()[0]) for line in lines if words in line and "presente" not in line
    ]


def _number(text: str) -> float:
    return float(text) if text not in ("", "-") else 0.0


def first_weeks(case: Path, target: Path) -> int:
    """Copy a case with the stages of its first month alone, which have no branches; returns their number."""
    shutil.copytree(case, target)
    path = target / "stages.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    graph = document["policy_graph"]
    sources = [entry["source_id"] for entry in graph["transitions"]]
    branching = {node["stage_id"] for node in graph["nodes"] if sources.count(node["id"]) > 1}
    kept = {stage["id"] for stage in document["stages"] if stage["id"] <= min(branching, default=-1)}
    document["stages"] = [stage for stage in document["stages"] if stage["id"] in kept]
    graph["nodes"] = [node for node in graph["nodes"] if node["stage_id"] in kept]
    ids = {node["id"] for node in graph["nodes"]}
    graph["transitions"] = [entry for entry in graph["transitions"] if {entry["source_id"], entry["target_id"]} <= ids]
    path.write_text(json.dumps(document), encoding="utf-8")
    for table in target.rglob("*.parquet"):
        _keep_rows(table, kept)
    for name in (*TREES, "constraints/generic_parameters.json"):
        if (target / name).exists():
            content = json.loads((target / name).read_text(encoding="utf-8"))
            (target / name).write_text(json.dumps(_without_stages(content, kept)), encoding="utf-8")
    _drop_empty_constraints(target / "constraints")
    return len(kept)


def _keep_rows(path: Path, stages: set[int]) -> None:
    table = pq.ParquetFile(path).read()
    if "stage_id" in table.column_names:
        is_kept = [stage is None or stage in stages for stage in table["stage_id"].to_pylist()]
        pq.write_table(table.filter(pa.array(is_kept)), path)


def _without_stages(content: Any, stages: set[int]) -> Any:
    """Return the document without the entries of stages that are left out."""
    if isinstance(content, list):
        kept = [entry for entry in content if not isinstance(entry, dict) or entry.get("stage_id", 0) in stages]
        return [_without_stages(entry, stages) for entry in kept]
    if isinstance(content, dict):
        if str(content.get("kind")).startswith("per_stage"):  # rows of a parameter: stage, perhaps block, value
            return content | {"values": [row for row in content["values"] if row[0] in stages]}
        return {name: _without_stages(value, stages) for name, value in content.items()}
    return content


def _drop_empty_constraints(folder: Path) -> None:
    """Remove constraints without bounds, which only apply in the second month."""
    path, bounds = folder / "generic_constraints.json", folder / "generic_constraint_bounds.parquet"
    if path.exists() and bounds.exists():
        bounded = set(pq.ParquetFile(bounds).read()["constraint_id"].to_pylist())
        content = json.loads(path.read_text(encoding="utf-8"))
        content["constraints"] = [entry for entry in content["constraints"] if entry["id"] in bounded]
        path.write_text(json.dumps(content), encoding="utf-8")


def write_official_boundary(deck: Path, case: Path, stages: int) -> int:
    """Turn the official cuts after the last week into the case's boundary policy; returns how many there are.

    They are functions of useful volumes, of water under way and of ordered gas. The last two are taken at the points
    where the cuts were made.
    """
    hydros = json.loads((case / "system" / "hydros.json").read_text(encoding="utf-8"))["hydros"]
    least = {hydro["name"].strip(): hydro["reservoir"]["min_storage_hm3"] for hydro in hydros}
    slopes: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    constants: dict[int, float] = defaultdict(float)
    (path,) = deck.glob(f"dec_fcf_cortes_{stages:03d}.*")
    for row in official_rows(path):
        cut, kind, value = int(row["ITER"]), row["TP.COEF"], THOUSAND * _number(row["Val.Coef"])
        point = _number(list(row.values())[9])
        if kind == "RHS":
            constants[cut] += value
        elif kind == "VARM" and row["NomeEntid"] in least:
            slopes[cut][row["NomeEntid"]] += value
            constants[cut] -= value * least[row["NomeEntid"]]
        elif kind in ("QDEFP", "GTERF"):
            constants[cut] += value * point
    end = json.loads((case / "stages.json").read_text(encoding="utf-8"))["stages"][-1]["end_date"]
    cuts = [
        {
            "slot_index": at,
            "iteration": cut,
            "forward_pass_index": 0,
            "intercept": constants[cut],
            "coefficients": [slopes[cut][hydro["name"].strip()] for hydro in hydros],
            "is_active": True,
        }
        for at, cut in enumerate(sorted(constants))
    ]
    manifest = [{"entity_type": 0, "entity_id": hydro["id"], "subindex": 0, "was_active": True} for hydro in hydros]
    pool = {"stage_id": stages - 1, "state_dimension": len(hydros), "entity_manifest": manifest, "cuts": cuts}
    pool |= {"priced_state_date": int(end.replace("-", "")), "cost_scale_factor": COST_SCALE}
    producer = {"completed_iterations": len(cuts), "cost_scale_factor": COST_SCALE}
    cobre.write_policy_checkpoint(case / "boundary" / "policy", [pool], {"producer": producer})
    return len(cuts)


def configure(case: Path, boundary: str | None) -> None:
    """Train until the bounds meet, simulate, and end on the boundary policy."""
    path = case / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config.pop("policy", None)
    if boundary is not None:
        config["policy"] = {"boundary": {"path": str(boundary)}}
    config["training"]["stopping_rules"] = [
        {"type": "gap", "relative_tolerance": GAP},
        {"type": "iteration_limit", "limit": MAX_ITERATIONS},
    ]
    path.write_text(json.dumps(config), encoding="utf-8")


def our_values(case: Path, run: Path) -> Values:
    """Read the same quantities from our simulation, which has a single scenario."""
    system = {
        name: {entry["id"]: entry for entry in json.loads((case / "system" / f"{name}.json").read_text())[name]}
        for name in ("buses", "hydros", "thermals", "lines", "non_controllable_sources")
        if (case / "system" / f"{name}.json").exists()
    }
    stages = json.loads((case / "stages.json").read_text(encoding="utf-8"))["stages"]
    hours = {(stage["id"], block["id"]): block["hours"] for stage in stages for block in stage["blocks"]}
    total = {stage["id"]: sum(block["hours"] for block in stage["blocks"]) for stage in stages}
    bus_name = {id_: bus["name"].strip() for id_, bus in system["buses"].items()}
    numbers: Values = defaultdict(float)

    def add(quantity: str, table: str, column: str, name_of: Any) -> None:
        for row in pq.ParquetFile(run / "simulation" / f"{table}.parquet").read().to_pylist():
            share = hours[row["stage_id"], row["block_id"]] / total[row["stage_id"]]
            numbers[quantity, row["stage_id"] + 1, name_of(row)] += share * row[column]

    add("hydro", "hydro_bus_generation", "generation_mw", lambda row: bus_name[row["bus_id"]])
    add("thermal", "thermals", "generation_mw", lambda row: bus_name[system["thermals"][row["thermal_id"]]["bus_id"]])
    others = system["non_controllable_sources"]
    add(
        "other",
        "non_controllables",
        "generation_mw",
        lambda row: bus_name[others[row["non_controllable_id"]]["bus_id"]],
    )
    add("load", "buses", "load_mw", lambda row: bus_name[row["bus_id"]])
    add("marginal cost", "buses", "spot_price", lambda row: bus_name[row["bus_id"]])
    for row in pq.ParquetFile(run / "simulation" / "exchanges.parquet").read().to_pylist():
        line = system["lines"][row["line_id"]]
        ends = (bus_name[line["source_bus_id"]], bus_name[line["target_bus_id"]])
        sign, pair = (1.0, ends) if ends[0] < ends[1] else (-1.0, ends[::-1])
        share = hours[row["stage_id"], row["block_id"]] / total[row["stage_id"]]
        numbers["interchange", row["stage_id"] + 1, "-".join(pair)] += sign * share * row["net_flow_mw"]
    _add_storage(numbers, run, system["hydros"], bus_name)
    for row in pq.ParquetFile(run / "simulation" / "costs.parquet").read().to_pylist():
        numbers["cost", row["stage_id"] + 1, ""] += row["thermal_cost"]
    return dict(numbers)


def _add_storage(
    numbers: Values, run: Path, hydros: Mapping[int, Mapping[str, Any]], bus_name: Mapping[int, str]
) -> None:
    """Add useful volumes at the end of each stage, hm3, by the plant's subsystem."""
    table = pq.ParquetFile(run / "simulation" / "hydros.parquet").read().to_pylist()
    last = max(row["block_id"] for row in table)
    for row in table:
        plant = hydros[row["hydro_id"]]
        if row["block_id"] == last:
            useful = row["storage_final_hm3"] - plant["reservoir"]["min_storage_hm3"]
            numbers["storage", row["stage_id"] + 1, bus_name[_bus_of(plant)]] += useful


def _bus_of(plant: Mapping[str, Any]) -> int:
    """Return the bus of a plant, or of its first unit group."""
    groups = plant.get("unit_groups") or ()
    return int(groups[0]["bus_id"] if plant.get("bus_id") is None else plant["bus_id"])


@dataclass(frozen=True, slots=True)
class Line:
    """A quantity of an entity: means over the stages, and the largest difference of one stage."""

    quantity: str
    entity: str
    official: float
    ours: float
    worst: float


def summary(official: Values, ours: Values, stages: int) -> list[Line]:
    """Compare each quantity and entity that both programs report."""
    names = sorted({(quantity, entity) for quantity, _, entity in official} & {(name, who) for name, _, who in ours})
    lines = []
    for quantity, entity in names:
        pairs = [
            (official.get((quantity, stage, entity), 0.0), ours.get((quantity, stage, entity), 0.0))
            for stage in range(1, stages + 1)
        ]
        means = [sum(values) / stages for values in zip(*pairs, strict=True)]
        lines.append(Line(quantity, entity, *means, max(abs(one - other) for one, other in pairs)))
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert, run and compare; returns 0 unless the run fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("deck", type=Path, help="archive or folder with the deck and its official results")
    parser.add_argument("--bridge", type=Path, help="an environment that has novomodelo-bridge")
    parser.add_argument("--no-fcf", action="store_true", help="without a cost-to-go")
    parser.add_argument("--output", type=Path, help="directory of the case, the run and comparison.json")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch, unpacked_deck(options.deck) as deck:
        folder = options.output or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        bridge = bridge_at(options.bridge) if options.bridge else managed_bridge(print)
        request = DeckRequest("decomp", deck, Path(scratch) / "whole", has_boundary_policy=False, is_repaired=True)
        convert_deck_quietly(bridge, request)
        stages = first_weeks(request.case, folder / "case")
        boundary = None
        if not options.no_fcf:
            count = write_official_boundary(deck, folder / "case", stages)
            print(f"cost-to-go: {count} official cuts after stage {stages}")
            boundary = "boundary"
        configure(folder / "case", boundary)
        command = [sys.executable, "-m", "cobre.cli", "run", folder / "case", "--output", folder / "run", "--no-report"]
        if subprocess.run([*map(str, command), "--quiet", "--workers", "1"], check=False).returncode:
            return 1
        lines = summary(official_values(deck, stages), our_values(folder / "case", folder / "run"), stages)
        print(f"means of {stages} stages")
        print(f"{'':26}{'official':>18}{'ours':>18}{'difference':>16}{'worst stage':>16}")
        for line in lines:
            numbers = (line.official, line.ours, line.ours - line.official, line.worst)
            print(
                f"{line.quantity:16}{line.entity:10}"
                + "".join(f"{n:>{w},.1f}" for n, w in zip(numbers, (18, 18, 16, 16), strict=True))
            )
        rows = [{name: getattr(line, name) for name in Line.__slots__} for line in lines]
        (folder / "comparison.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

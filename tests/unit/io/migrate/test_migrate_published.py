"""Whole cases, put back into the older form and migrated, are what they were: examples, and published cases."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import cobre
from cobre.io.migrate import migrate_case

ROOT = Path(__file__).resolve().parents[4]
CASES = ROOT.parent / "shared" / "cases"
NAMES = [path.parent.name for path in sorted(CASES.glob("*/config.json"))]


def as_it_was(documents, tables):
    """The older form of a case of today: the inverse of a migration, for what the published cases use."""
    training, simulation = documents["config.json"]["training"], documents["config.json"]["simulation"]
    training["forward_passes"] = training.pop("selection")["forward_passes"]
    simulation["num_scenarios"] = simulation.pop("selection")["num_scenarios"]
    for stage in documents["stages.json"]["stages"]:
        stage["num_scenarios"] = stage.pop("num_openings")
        stage.pop("state_variables", None)
    prices = documents["penalties.json"]["hydro"]
    prices["fpha_turbined_cost"] = prices.pop("turbined_cost")
    for name, array in (("buses", "buses"), ("lines", "lines"), ("thermals", "thermals"), ("hydros", "hydros")):
        for entity in documents[f"system/{name}.json"][array]:
            del entity["operational_start_date"]
    make_plants_old(documents)
    conditions = documents["initial_conditions.json"]
    if "recent_observations" in conditions:
        observed = conditions.pop("recent_observations")
        conditions["past_inflows"] = [
            {"hydro_id": row["hydro_id"], "values_m3s": [row["value_m3s"]]} for row in observed
        ]
    tables.pop("system/hydro_energy_productivity.parquet", None)


def make_plants_old(documents):
    models = documents.pop("system/hydro_production_models.json", {"production_models": []})["production_models"]
    choices = {model["hydro_id"]: model["stage_ranges"][0] for model in models}
    for hydro in documents["system/hydros.json"]["hydros"]:
        (group,) = hydro.pop("unit_groups")
        hydro["bus_id"] = group["bus_id"]
        choice = choices[hydro["id"]]
        if choice["model"] != "fpha":
            hydro["generation"]["productivity_mw_per_m3s"] = choice["productivity_mw_per_m3s"]
            if hydro.get("penalties") == {"turbined_cost": 0.0}:
                del hydro["penalties"]
        else:
            ranges = [{key: value for key, value in choice.items() if key != "productivity_mw_per_m3s"}]
            record = {"hydro_id": hydro["id"], "selection_mode": "stage_ranges", "stage_ranges": ranges}
            documents.setdefault("system/hydro_production_models.json", {"production_models": []})
            documents["system/hydro_production_models.json"]["production_models"].append(record)


def read(folder):
    documents = {path.relative_to(folder).as_posix(): json.loads(path.read_text()) for path in folder.rglob("*.json")}
    tables = {path.relative_to(folder).as_posix(): parquet.read_table(path) for path in folder.rglob("*.parquet")}
    return documents, tables


def write(folder, documents, tables):
    for name, content in documents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    for name, table in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, folder / name)


def sorted_rows(table):
    return sorted(repr(sorted(row.items(), key=lambda item: item[0])) for row in table.to_pylist())


@pytest.mark.parametrize("name", ["two_reservoirs", "large"])
def test_an_example_is_trained_to_the_same_bits(tmp_path, name):
    """In the older form plants of constant productivity paid nothing for turbining: here they do not from the start."""
    documents, tables = read(ROOT / "examples" / name)
    documents["penalties.json"]["hydro"]["turbined_cost"] = 0.0
    write(tmp_path / "new", documents, tables)
    as_it_was(documents, tables)
    write(tmp_path / "old", documents, tables)
    assert not migrate_case(tmp_path / "old", tmp_path / "back").problems
    new, back = (cobre.train(tmp_path / folder, iterations=2, threads=1) for folder in ("new", "back"))
    assert back.digest == new.digest


@pytest.mark.parametrize("name", NAMES)
def test_published_case_survives_a_round_trip(tmp_path, name):
    documents, tables = read(CASES / name)
    as_it_was(documents, tables)
    write(tmp_path / "old", documents, tables)
    report = migrate_case(tmp_path / "old", tmp_path / "new")
    assert [str(problem) for problem in report.problems if not problem.is_warning] == []
    wanted_documents, wanted_tables = read(CASES / name)
    found_documents, found_tables = read(tmp_path / "new")
    guessed = "system/hydro_energy_productivity.parquet"
    assert found_documents.keys() == wanted_documents.keys()
    for file, wanted in wanted_documents.items():
        assert found_documents[file] == wanted, file
    assert found_tables.keys() == wanted_tables.keys()
    for file, table in wanted_tables.items():
        if file != guessed:
            assert sorted_rows(found_tables[file]) == sorted_rows(table), file
    assert found_tables.get(guessed, pa.table({})).num_rows == wanted_tables.get(guessed, pa.table({})).num_rows

"""cobre.io.load_case and cobre.io.validate."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from all_kinds_case import write_all_kinds
from click.testing import CliRunner

import cobre
from cobre.cli.main import main
from cobre.core.entities import ContractLimits, EnergyContract, PumpingFlow, PumpingStation

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def test_system_overview_has_counts_and_entities():
    system = cobre.io.load_case(EXAMPLES / "four_regions")
    assert repr(system) == "System(n_buses=4, n_lines=4, n_hydros=8, n_thermals=20, n_stages=24)"
    assert system.buses[0].deficit_segments[-1] == {"depth_mw": None, "cost_per_mwh": 4000.0}
    assert system.lines[0].exchange_cost > 0
    assert repr(system.hydros[0]) == "Hydro(id=0, name='Highlands 1.1')"
    assert system.hydros[0].downstream_id == 1
    assert system.non_controllable_sources[0].operational_start_date == "2030-01-01"
    assert (system.contracts, system.pumping_stations) == ([], [])


def test_loaded_entities_are_read_only():
    bus = cobre.io.load_case(EXAMPLES / "two_reservoirs").buses[0]
    with pytest.raises(AttributeError):
        bus.name = "other"


def test_overview_has_contracts_and_pumping_stations():
    case = cobre.load_case(EXAMPLES / "two_reservoirs")
    station = PumpingStation(
        0, "pump", case.system.buses[0].operational_start_date, 0, 1, 0, 0.5, PumpingFlow(0.0, 9.0)
    )
    contract = EnergyContract(3, "deal", station.operational_start_date, 0, "export", -40.0, ContractLimits(0.0, 20.0))
    changed = cobre.changed(case, {"system.pumping_stations": (station,), "system.energy_contracts": (contract,)})
    system = cobre.model.system_of(changed)
    assert (system.pumping_stations[0].max_flow_m3s, system.pumping_stations[0].source_hydro_id) == (9.0, 1)
    assert (system.contracts[0].contract_type, system.contracts[0].max_mw) == ("export", 20.0)


def test_missing_folder_raises(tmp_path):
    with pytest.raises(OSError, match="does not exist"):
        cobre.io.load_case(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(cobre.errors.CaseIoError, match="is not a directory"):
        cobre.io.load_case(tmp_path / "file")


@pytest.fixture
def broken(tmp_path):
    folder = shutil.copytree(EXAMPLES / "two_reservoirs", tmp_path / "case")
    path = folder / "system" / "thermals.json"
    content = json.loads(path.read_text())
    content["thermals"][0]["bus_id"] = 77
    path.write_text(json.dumps(content))
    return folder


def test_invalid_case_is_a_validation_error(broken):
    with pytest.raises(cobre.errors.ValidationError, match="77"):
        cobre.io.load_case(broken)
    with pytest.raises(ValueError, match="77"):
        cobre.Study(broken)


def test_findings_are_plain_values(broken):
    found = cobre.io.validate(broken)
    assert found["valid"] is False
    [error] = found["errors"]
    assert error["file"] == "system/thermals.json"
    assert error["kind"] == "references"
    assert "77" in error["message"]
    assert json.dumps(found)


def test_valid_case_accepts_overrides():
    assert cobre.io.validate(EXAMPLES / "two_reservoirs")["valid"] is True
    overridden = cobre.io.validate(EXAMPLES / "two_reservoirs", {"training.nonsense": 1})
    assert overridden["valid"] is False


def test_missing_case_is_invalid(tmp_path):
    found = cobre.io.validate(tmp_path / "nowhere", output_dir=tmp_path)
    assert found["valid"] is False
    assert "does not exist" in found["errors"][0]["message"]


def test_every_entry_point_rejects_invalid_cases(tmp_path):
    """Use an explosive inflow model, which no single-file check detects."""
    folder = write_all_kinds(tmp_path / "case", "generated")
    path = folder / "scenarios" / "inflow_ar_coefficients.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(3, "coefficient", pa.array([1.7] * len(table))), path)
    with pytest.raises(cobre.errors.CobreError, match="variance"):
        cobre.train(folder, iterations=1)
    found = cobre.io.validate(folder)
    assert found["valid"] is False
    assert "variance" in found["errors"][0]["message"]
    assert cobre.Study(folder).validate() == found
    assert cobre.validate(folder).as_cobre_python() == found
    assert cobre.validate(cobre.load_case(folder)).as_cobre_python() == found
    answer = CliRunner().invoke(main, ["validate", str(folder), "--json"])
    assert answer.exit_code != 0
    assert len(json.loads(answer.stdout)["errors"]) == len(found["errors"])

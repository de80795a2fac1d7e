"""Rules declare their inputs: they read no others, and run only if these are valid."""

import pytest
from validation_case import findings_after, valid_documents, valid_tables, write_case

from cobre.core.file_names import (
    BUSES_FILE,
    CONDITIONS_FILE,
    CONFIG_FILE,
    CONSTRAINT_BOUNDS_FILE,
    CONSTRAINTS_FILE,
    CONTRACTS_FILE,
    CORRELATION_FILE,
    HYDROS_FILE,
    LINES_FILE,
    LOAD_FACTORS_FILE,
    PARAMETERS_FILE,
    PENALTIES_FILE,
    POST_STUDY_FILE,
    PRODUCTION_FILE,
    SOURCE_FACTORS_FILE,
    SOURCES_FILE,
    STAGES_FILE,
    STATIONS_FILE,
    THERMALS_FILE,
)
from cobre.io.case import read_case
from cobre.io.findings import Findings
from cobre.io.validation import GROUPS
from cobre.io.validation.rules import OVERRIDES, PRODUCTIONS, SCENARIOS

RULES = [each for group in GROUPS for each in group]

# By part of a case: the input that it comes from.
INPUTS = {
    "config": CONFIG_FILE,
    "horizon": STAGES_FILE,
    "is_risk_averse": STAGES_FILE,
    "initial_conditions": CONDITIONS_FILE,
    "penalties": PENALTIES_FILE,
    "post_study": POST_STUDY_FILE,
    "system": {
        "buses": BUSES_FILE,
        "lines": LINES_FILE,
        "hydros": HYDROS_FILE,
        "thermals": THERMALS_FILE,
        "non_controllable_sources": SOURCES_FILE,
        "pumping_stations": STATIONS_FILE,
        "energy_contracts": CONTRACTS_FILE,
    },
    "production": {"by_hydro": PRODUCTION_FILE, "stages_by_choice": PRODUCTION_FILE, **PRODUCTIONS},
    "scenarios": {
        "correlation": CORRELATION_FILE,
        "load_factors": LOAD_FACTORS_FILE,
        "non_controllable_factors": SOURCE_FACTORS_FILE,
        **SCENARIOS,
    },
    "overrides": OVERRIDES,
    "generic_constraints": {
        "constraints": CONSTRAINTS_FILE,
        "parameters": PARAMETERS_FILE,
        "bounds": CONSTRAINT_BOUNDS_FILE,
    },
}


class Recorder:
    """A case that records which of its inputs are read."""

    def __init__(self, record, inputs, seen):
        self._record, self._inputs, self._seen = record, inputs, seen

    def __getattr__(self, name):
        value = getattr(self._record, name)
        source = self._inputs[name]
        if isinstance(source, str):
            self._seen.add(source)
            return value
        return Recorder(value, source, self._seen)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    write_case(folder, valid_documents(), valid_tables())
    return read_case(folder, Findings())


@pytest.mark.parametrize("each", RULES, ids=lambda rule: rule.check.__name__)
def test_rule_reads_declared_inputs_only(sound, each):
    seen = set()
    each(Recorder(sound, INPUTS, seen), Findings())
    assert seen <= each.inputs


def test_rules_are_run_once_and_are_documented():
    assert len({each.check for each in RULES}) == len(RULES)
    assert all(each.check.__doc__ for each in RULES)


FILES = [*valid_documents(), *valid_tables()]


@pytest.mark.parametrize("file", FILES)
def test_undecodable_file_stops_only_rules_that_need_it(tmp_path, file):
    documents, tables = valid_documents(), valid_tables()
    documents["system/thermals.json"]["thermals"][0]["cost_per_mwh"] = -1.0
    write_case(tmp_path, documents, tables)
    (tmp_path / file).write_bytes(b"{")
    findings = Findings()
    assert read_case(tmp_path, findings) is None
    codes = {(finding.file, finding.code.name) for finding in findings.errors}
    assert file in {name for name, _ in codes}
    if file != "system/thermals.json":
        assert ("system/thermals.json", "negative-value") in codes
    assert not any(
        finding.file == file and finding.code.layer.value in ("dimensions", "meaning") for finding in findings
    )


@pytest.mark.parametrize(
    ("file", "array", "field"),
    [
        ("system/thermals.json", "thermals", "bus_id"),
        ("system/lines.json", "lines", "source_bus_id"),
        ("system/hydros.json", "hydros", "downstream_id"),
        ("system/pumping_stations.json", "pumping_stations", "destination_hydro_id"),
        ("system/energy_contracts.json", "contracts", "bus_id"),
        ("system/hydro_production_models.json", "production_models", "hydro_id"),
        ("scenarios/load_factors.json", "load_factors", "stage_id"),
        ("scenarios/non_controllable_factors.json", "non_controllable_factors", "ncs_id"),
        ("initial_conditions.json", "storage", "hydro_id"),
        ("initial_conditions.json", "recent_observations", "hydro_id"),
    ],
)
def test_dangling_reference_raises_no_exception_and_hides_no_finding(tmp_path, file, array, field):
    def corrupt(documents, tables):
        documents[file][array][0][field] = 99
        documents["penalties.json"]["bus"]["excess_cost"] = -1.0

    codes = {finding.code.name for finding in findings_after(tmp_path, corrupt).errors}
    assert {"unknown-reference", "value-not-positive"} <= codes


@pytest.mark.parametrize("name", [name for name in valid_tables() if "id" in "".join(valid_tables()[name])])
def test_rows_of_unknown_entities_raise_no_exception(tmp_path, name):
    column = next(iter(valid_tables()[name]))

    def corrupt(documents, tables):
        tables[name][column][0] = 99

    codes = {finding.code.name for finding in findings_after(tmp_path, corrupt).errors}
    assert "unknown-reference" in codes


def test_findings_about_an_unknown_entity_are_not_repeated(tmp_path):
    def corrupt(documents, tables):
        documents["initial_conditions.json"]["filling_storage"] = [{"hydro_id": 99, "value_hm3": -5.0}]

    findings = findings_after(tmp_path, corrupt)
    assert [finding.code.name for finding in findings.errors] == ["unknown-reference"]

"""A boundary policy whose study numbers its plants differently: states and past inflows are matched by name."""

import json

import pytest
from boundary_cases import with_boundary
from click.testing import CliRunner
from small_cases import SmallCase, hydro, thermal

import cobre
import cobre.run
from cobre.cli.main import main
from cobre.errors import CobreError
from cobre.io.case import load_case
from cobre.io.policies.policy_source import new_ids, source_of
from cobre.study.preparation.prepare import prepare

LONG, SHORT = 4, 2
SEASONS = [{"id": month, "label": f"M{month}", "month_start": month + 1} for month in range(12)]
BEFORE = (("2023-11-01", "2023-12-01"), ("2023-12-01", "2024-01-01"))
UPPER, LOWER, GATE, LATER = "A. UPPER", "Lower", "Gate", "Later"
OBSERVED = {UPPER: (31.0, 24.0), LOWER: (9.0, 17.0), GATE: (0.0, 0.0), LATER: (3.0, 2.0)}
INITIAL = {UPPER: 40.0, LOWER: 25.0, GATE: 12.0, LATER: 5.0}
LIMITS = {GATE: (12.0, 12.0)}  # hm3; others: 0 to 100


def write(folder, names, stages, *, is_observed=True, memory=True, spread=4.0):
    """Write a cascade of plants in the given order."""
    number = {name: at for at, name in enumerate(names)}
    downstream = {name: number.get(LOWER) if name != LOWER else None for name in names}
    case = SmallCase(
        hydros=[
            hydro(number[name], downstream=downstream[name], storage=LIMITS.get(name, (0.0, 100.0))) for name in names
        ],
        thermals=[thermal(0, 10.0, 20.0), thermal(1, 90.0, 90.0)],
        stages=stages,
        openings=3,
        load={0: 70.0},
        inflow={number[name]: [(14.0, spread if memory else 0.0)] * stages for name in names},
        storage={number[name]: INITIAL[name] for name in names},
        forward_passes=2,
        iterations=30,
        stage_fields={
            stage: {"season_id": stage, "state_variables": {"storage": True, "inflow_lags": memory}}
            for stage in range(stages)
        },
    )
    if memory:
        months = [(-2, 14.0, spread), (-1, 14.0, spread), *((stage, 14.0, spread) for stage in range(stages))]
        case.tables["scenarios/inflow_seasonal_stats"] = [
            {"hydro_id": plant, "stage_id": stage, "mean_m3s": mean, "std_m3s": std}
            for plant in number.values()
            for stage, mean, std in months
        ]
        case.tables["scenarios/inflow_ar_coefficients"] = [
            {"hydro_id": plant, "stage_id": stage, "lag": lag, "coefficient": 0.3}
            for plant in number.values()
            for stage in range(stages)
            for lag in (1, 2, 3)[: 2 + (stage >= SHORT)]
        ]
    case.write(folder)
    edit(
        folder / "system" / "hydros.json", lambda found: [one.update(name=names[one["id"]]) for one in found["hydros"]]
    )
    before = [
        {"id": at - 2, "start_date": days[0], "end_date": days[1], "season_id": 10 + at}
        for at, days in enumerate(BEFORE)
    ]
    edit(
        folder / "stages.json",
        lambda found: found.update(
            season_definitions={"cycle_type": "monthly", "seasons": SEASONS}, pre_study_stages=before
        ),
    )
    observed = [
        {"hydro_id": number[name], "start_date": start, "end_date": end, "value_m3s": OBSERVED[name][at]}
        for name in names
        for at, (start, end) in enumerate(BEFORE)
    ]
    edit(
        folder / "initial_conditions.json",
        lambda found: found.update(recent_observations=observed if is_observed else []),
    )
    return folder


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    """Return the output of a run of the long study, with a gate of one volume."""
    folder = tmp_path_factory.mktemp("long")
    cobre.run.run(write(folder / "case", (GATE, UPPER, LOWER), LONG), folder / "run", threads=1)
    return folder / "run"


def bound(case):
    return cobre.train(case, threads=1).lower_bound


def notes_of(case):
    return [note for note in prepare(load_case(case)).notes if note.startswith("policy.boundary")]


def test_study_record_has_names_volumes_and_past_inflows(long_run):
    source = source_of(long_run / "policy" / "policy.bin")
    assert source.hydros == {0: GATE, 1: UPPER, 2: LOWER}
    assert source.volumes == {0: 12.0}
    known = {(one.hydro_id, one.start_date.isoformat()): one.value_m3s for one in source.past}
    assert known[1, "2023-12-01"] == OBSERVED[UPPER][1]
    assert known[2, "2023-11-01"] == OBSERVED[LOWER][0]


def test_renumbered_plants_cost_the_same(tmp_path, long_run):
    """Number plants as in the policy; then in another order, with names written differently, without observations."""
    alike = with_boundary(write(tmp_path / "alike", (GATE, UPPER, LOWER), SHORT, memory=False), long_run)
    cost = bound(alike)
    assert notes_of(alike) == []
    other = write(tmp_path / "other", (LOWER, UPPER, GATE), SHORT, memory=False, is_observed=False)
    edit(other / "system" / "hydros.json", lambda found: found["hydros"][1].update(name=" a Upper"))
    assert bound(with_boundary(other, long_run)) == pytest.approx(cost, rel=1e-9)
    [note] = notes_of(other)
    assert "3 of 3 hydros are matched by name" in note
    assert bound(write(tmp_path / "without", (LOWER, UPPER, GATE), SHORT, memory=False)) < 0.9 * cost


def test_value_of_constant_storage_is_added_to_intercepts(tmp_path, long_run):
    """The value of water does not depend on the gate, whose volume is a constant of the policy's cuts."""
    with_gate, without = (
        prepare(load_case(with_boundary(write(tmp_path / str(at), names, SHORT, memory=False), long_run)))
        for at, names in enumerate([(LOWER, UPPER, GATE), (LOWER, UPPER)])
    )
    values = []
    for study in (with_gate, without):
        table = study.boundary.chunks[0][:, : study.boundary.count]
        values.append(table[0] + study.problem.initial_state @ table[1:])
    # Lags of the gate count as well if it exists; they are 0 before the study.
    assert values[1] == pytest.approx(values[0], rel=1e-9)
    assert any("they count as zero: Gate" in note for note in without.notes)


def test_reservoir_unknown_to_policy_is_an_error(tmp_path, long_run):
    case = with_boundary(write(tmp_path / "case", (LATER, LOWER, UPPER), SHORT, memory=False), long_run)
    report = cobre.validate(case)
    assert [problem for problem in report.errors if "does not price the water of hydro 0 (Later)" in str(problem)]


def test_strict_matching_rejects_unmatched_plants(tmp_path, long_run):
    case = with_boundary(write(tmp_path / "case", (LOWER, UPPER), SHORT, memory=False), long_run, strict=True)
    with pytest.raises(CobreError, match="values plants that this study does not have: Gate"):
        prepare(load_case(case))


def test_command_reports_boundary_policy(tmp_path, long_run):
    case = write(tmp_path / "case", (LOWER, UPPER, GATE), SHORT, memory=False, is_observed=False)
    arguments = ["run", str(case), "--boundary", str(long_run), "--output", str(tmp_path / "out"), "--quiet", "--json"]
    done = CliRunner().invoke(main, [*arguments, "--workers", "1", "--threads", "1"])
    assert done.exit_code == 0, done.output
    expected = bound(with_boundary(case, long_run))
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["lower_bound"] == expected


class Plant:
    """Any entity with an id and a name."""

    def __init__(self, number, name):
        self.id, self.name = number, name


def test_plants_are_matched_by_id_unless_a_name_has_another_number():
    names = {0: "A", 1: "B", 2: "C"}
    assert new_ids(names, [Plant(0, "A"), Plant(1, "renamed"), Plant(2, "C")]) is None
    assert new_ids(names, [Plant(0, "B"), Plant(1, "C"), Plant(2, "D")]) == {1: 0, 2: 1}
    assert new_ids(names, [Plant(5, "B"), Plant(6, "B"), Plant(0, "A")]) is None  # two plants of that name

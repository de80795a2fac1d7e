"""The kit's checks reject what is wrong: values of cases, reports of survivors, plans that cannot be carried out."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fault_plans import plan, table
from fault_plans.plan import NotPermittedError, PlanError, PlanProcess, fault

from cobre.comm.testing.case import Depth, all_cases, case, find_case
from cobre.comm.testing.harness import CellSetting
from cobre.comm.testing.profiles import profile
from cobre.comm.testing.report import Outcome

SHM = profile("shm")
FUTEX = CellSetting(SHM, SHM.variants[0], 2)
BROKEN = {"state": "broken", "later": ["CommunicatorBrokenError"]}
TESTS = Path(__file__).resolve().parents[1]
FAULT_TABLE, MUTATION = str(TESTS / "faults" / "fault_table.py"), str(TESTS / "conformance" / "mutation.py")
MISMATCH = "rank 0: barrier, rank 1: allreduce"


def abort_value(first, **changes):
    later = dict.fromkeys(("allgatherv", "allreduce", "broadcast", "barrier"), "CommunicatorBrokenError")
    causes = ["CommunicatorBrokenError", "AbortedError"]
    return {"first": first, "later": later, "causes": causes, "states": ["broken", "closed"]} | changes


def mismatch_value(**changes):
    first = {"error": "MismatchedCallError", "message": MISMATCH, "sequence": 2} | changes.pop("first", {})
    causes = ["CommunicatorBrokenError", "MismatchedCallError"]
    return {"first": first, "untouched": True, "causes": causes} | changes


def left_value(**changes):
    return {"first": {"error": "PeerLostError", "operation": "allreduce", "sequence": 2, "ranks": [1]} | changes}


GONE = {"pid": 7, "host": "here"}
WRONG = [
    ("failures/abort", {}, [abort_value({}), abort_value({"error": "", "message": ""})], "rank 1 got"),
    ("failures/abort", {}, [abort_value({}, states=["open", "closed"])], "rank 0 afterwards"),
    ("failures/early_close", {}, [left_value(ranks=[0]), GONE], "expected {'error': 'PeerLostError'"),
    ("failures/early_close", {}, [left_value(pids=[8], hosts=["here"]), GONE], "names ['here'] [8]"),
    ("mismatch/calls", {"about": "operation"}, [mismatch_value(first={"error": ""})], "expected MismatchedCallError"),
    ("mismatch/calls", {"about": "operation"}, [mismatch_value(first={"message": "no"})], "a rank on each side"),
    ("mismatch/calls", {"about": "operation"}, [mismatch_value(first={"sequence": 3})], "expected call #2, got #3"),
    ("mismatch/calls", {"about": "operation"}, [mismatch_value(untouched=False)], "data was delivered"),
    ("mismatch/calls", {"about": "operation"}, [mismatch_value(causes=[])], "afterwards: []"),
    (
        "lifecycle/identity",
        {},
        [{"rank": rank, "size": 2, "state": "open", "repr": f"rank {rank} of 2", "pid": 1} for rank in range(2)],
        "two ranks are one process",
    ),
    ("regions/distributed", {"elements": 3}, [{"node": [0], "seen": "zeros"}], "rank 0 on node [0]"),
]


@pytest.mark.parametrize("identifier,params,values,words", WRONG)
def test_wrong_value_is_rejected_with_a_reason(identifier, params, values, words):
    assert words in find_case(identifier).judge(params, values)


def test_duplicate_case_names_raise():
    with pytest.raises(ValueError, match="two cases named gather/"):
        case(next(name for name in all_cases() if name.startswith("gather/")), (1,))(lambda comm, params: True)


@pytest.fixture
def fake_rank():
    """Start a process in the place of a rank that reports these events, and ends or stays."""
    processes = []

    def start(*events, stays=False, limit_s=30.0):
        program = f"import sys, time; print(sys.argv[1], flush=True); time.sleep({1000 if stays else 0})"
        text = "\n".join(map(json.dumps, events))
        command = [sys.executable, "-c", program, text]
        processes.append(PlanProcess(0, command, os.environ, time.monotonic() + limit_s))
        return processes[-1]

    yield start
    for process in processes:
        process.end()


def observed(**fields):
    good = {"error": "PeerLostError", "ranks": [0], "operation": "barrier", "sequence": 2, "own_sequence": 2}
    return {"event": "saw", "message": "", "pids": [], "hosts": [], **good, **BROKEN, **fields}


def test_reports_of_survivors_are_judged(fake_rank):
    failed = fake_rank()
    for event, words in [
        (observed(error=""), "expected PeerLostError about rank 0"),
        (observed(operation="fence"), "operation should be one of ('barrier',), not fence"),
        (observed(own_sequence=3), "call #3 failed, but the error says #2"),
        (observed(state="open"), "after the failure the communicator is open"),
        (observed(), "the message does not say 'rank 0'"),
    ]:
        assert words in "\n".join(plan.check_failure(fake_rank(event), "PeerLostError", failed, ("barrier",)))
    assert "expected AbortedError, got" in plan.check_message(fake_rank(observed()), "AbortedError", ())[0]
    refused = {"event": "refused", "error": "InvalidBackendError", "message": ""}
    assert (
        "expected MissingConfigurationError"
        in plan.check_refused(fake_rank(refused), "MissingConfigurationError", ())[0]
    )


def test_rank_that_does_not_report_or_end_stops_its_plan(fake_rank):
    ended = fake_rank({"event": "joined"})
    for _ in range(2):
        with pytest.raises(PlanError, match=r"ended without 'saw': {\"event\": \"joined\"}"):
            ended.wait_for("saw")
    silent = fake_rank(stays=True, limit_s=1.0)
    with pytest.raises(PlanError, match="never reported 'saw': no output"):
        silent.wait_for("saw")
    with pytest.raises(PlanError, match="does not end"):
        silent.wait_for_end()
    with pytest.raises(PlanError, match="never went to sleep"):
        silent.wait_until_asleep()


@pytest.fixture
def fake_plans(monkeypatch):
    monkeypatch.setattr(plan, "_registry", {})

    @fault("never", (5,))
    def never(ranks, params):
        """Fail to start a rank."""
        raise PlanError("rank 0 is missing")

    @fault("forbidden", (5,))
    def forbidden(ranks, params):
        """Not here."""
        raise NotPermittedError("needs a moon")

    @fault("found", (5,))
    def found(ranks, params):
        """Something is wrong."""
        return ["the wrong rank was named"]


def test_plan_outcomes(fake_plans):
    results = list(table.run_plans(FUTEX, Depth.QUICK))
    assert [(result.outcome, result.message) for result in results] == [
        (Outcome.ERROR, "rank 0 is missing"),
        (Outcome.SKIPPED, "needs a moon"),
        (Outcome.FAIL, "the wrong rank was named"),
    ]
    assert [result.cell.case for result in table.run_plans(FUTEX, Depth.QUICK, "found")] == ["faults/found"]


def run_program(*words):
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


@pytest.mark.parametrize(
    ("program", "least", "entry"),
    [
        (("-m", "cobre.comm.testing"), 40, ["callers/second_thread", "6"]),
        ((FAULT_TABLE,), 20, ["faults/kill", "4,5"]),
    ],
)
def test_programs_list_cases_and_plans_with_their_clauses(program, least, entry):
    done = run_program(*program, "--list")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) > least
    assert any(line.split()[:2] == entry for line in lines)


@pytest.mark.parametrize(
    "words",
    [
        ("-m", "cobre.comm.testing", "--ranks", "2", "--case", "lifecycle/identity"),
        (FAULT_TABLE, "--ranks", "1", "--case", "shm_variables"),
        (MUTATION, "--ranks", "4", "--case", "WrongRank"),
    ],
)
def test_programs_run_only_selected_cells(words):
    done = run_program(*words, "--quick", "--backend", "shm", "--variant", "futex")
    assert done.returncode == 0 and " cells in " in done.stdout and ", 0 failed" in done.stdout, (
        done.stdout + done.stderr
    )

"""Tests of the kit's harness: verdicts, crashes, hangs and leaks."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cobre.comm.backends.local import LocalCommunicator
from cobre.comm.testing import case as case_module
from cobre.comm.testing import harness, leaks, report
from cobre.comm.testing.case import Depth, case
from cobre.comm.testing.harness import CellSetting, run_cells, run_setting
from cobre.comm.testing.profiles import Profile, Variant, profile
from cobre.comm.testing.report import Cell, Outcome, Result


def in_this_process(function, size, args, *, environment, timeout_s):
    """Run one rank in this process: the starter of a user's own backend."""
    with LocalCommunicator() as comm:
        return [function(comm, *args)]


OWN = CellSetting(Profile("own", in_this_process, max_size=1), Variant(), 1)


@pytest.fixture
def extra_cases(monkeypatch):
    """Register additional cases during a test."""
    case_module.all_cases()
    monkeypatch.setattr(case_module, "_registry", dict(case_module._registry))

    @case("own/right", (1,), expect=lambda params, size: [params["number"]] * size)
    def right(comm, params):
        return params["number"]

    @case("own/wrong", (1,), expect=lambda _params, size: [1] * size)
    def wrong(comm, params):
        return 2

    @case("own/odd", (1,), judge=lambda _params, values: "" if values[0]["number"] else "none")
    def odd(comm, params):
        return 3

    @case("own/raises", (1,))
    def raises(comm, params):
        raise ZeroDivisionError("out of step")

    @case("own/unavailable", (1,), skip_reason=lambda: "no moon tonight")
    def unavailable(comm, params):
        return True


def outcomes(results):
    return [(result.cell.case, result.outcome) for result in results if result.cell.group == "own"]


def test_custom_starter_starts_worlds():
    results = list(run_setting(OWN, Depth.QUICK, "gather/*"))
    assert len(results) > 50
    assert all(result.outcome is Outcome.PASS for result in results), report.failures(results)


def test_wrong_value_fails_and_world_continues(extra_cases):
    cells = [OWN.cell("own/right", {"number": 1}), OWN.cell("own/wrong"), OWN.cell("own/right", {"number": 2})]
    results = list(run_cells(OWN, cells))
    assert outcomes(results) == [
        ("own/right", Outcome.PASS),
        ("own/wrong", Outcome.FAIL),
        ("own/right", Outcome.PASS),
    ]
    assert "expected 1, got 2" in report.failures(results)


def test_exception_of_judge_fails_the_case(extra_cases):
    (result,) = [result for result in run_cells(OWN, [OWN.cell("own/odd")]) if result.cell.group == "own"]
    assert result.outcome is Outcome.FAIL and "the values cannot be judged: TypeError" in result.message


def test_case_that_raises_does_not_affect_others(extra_cases):
    cells = [OWN.cell("own/right", {"number": 1}), OWN.cell("own/raises"), OWN.cell("own/right", {"number": 2})]
    results = list(run_cells(OWN, cells))
    assert outcomes(results) == [
        ("own/right", Outcome.PASS),
        ("own/raises", Outcome.ERROR),
        ("own/right", Outcome.PASS),
    ]
    assert "ZeroDivisionError: out of step" in report.failures(results)


def test_unrunnable_cells_are_skipped_with_a_reason(extra_cases):
    results = list(run_setting(OWN, Depth.QUICK, "own/unavailable"))
    assert [(result.outcome, result.message) for result in results] == [(Outcome.SKIPPED, "no moon tonight")]
    assert "no moon tonight" in report.skips(results)


def test_worlds_that_never_start_are_errors(extra_cases):
    def broken_starter(*args, **options):
        raise OSError("no more processes")

    setting = CellSetting(Profile("broken", broken_starter), Variant(), 2)
    results = list(
        run_cells(setting, [setting.cell("own/right", {"number": n}) for n in range(harness.MAX_RESTARTS + 3)])
    )
    errors = [result for result in results if result.outcome is Outcome.ERROR]
    assert len(errors) == harness.MAX_RESTARTS + 3
    assert "no more processes" in errors[0].message
    assert "not run" in errors[-1].message


def test_wrong_ranks_and_sizes_are_reported(extra_cases):
    def confused_starter(function, size, args, **options):
        in_this_process(function, size, args, **options)
        return [(1, 1)]

    setting = CellSetting(Profile("confused", confused_starter), Variant(), 1)
    results = list(run_cells(setting, [setting.cell("own/right", {"number": 1})]))
    assert [result.cell.case for result in results if result.is_bad] == ["world/end"]


@pytest.mark.parametrize(("what", "words"), [("crash", "code 17"), ("hang", "Timeout")])
def test_rank_that_crashes_or_hangs_is_reported_in_its_case(what, words):
    program = f"import bad_worlds; bad_worlds.main({what!r})"
    ran = run_python("-c", program, cwd=Path(__file__).parent)
    assert ran.returncode == 0, ran.stderr
    results = [result for result in json.loads(ran.stdout) if result["case"].startswith("bad/")]
    assert [(result["case"], result["outcome"]) for result in results] == [
        (f"bad/{what}", "error"),
        ("bad/after", "pass"),
    ]
    assert words in results[0]["message"]


def test_leak_check_sees_processes_descriptors_and_segments():
    check = leaks.LeakCheck()
    assert check.leaks(0) == []
    segment = leaks.SHM_FOLDER / f"{leaks.SHM_PREFIX}-leak-test-{os.getpid()}"
    child = subprocess.Popen(["sleep", "60"], env={**os.environ, **check.environment})
    descriptor = os.open(segment, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        output = " ".join(check.leaks(0))
    finally:
        child.kill()
        child.wait()
        os.close(descriptor)
        segment.unlink()
    assert f"process {child.pid}" in output
    assert f"descriptor {descriptor}" in output
    assert "shared memory cobre-leak-test" in output
    assert check.leaks(0) == []


MAKE_SEGMENT = """
import os, sys
sys.stdin.readline()
descriptor = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o600)
print("made", flush=True)
sys.stdin.read()
"""


def test_leak_check_ignores_segments_of_other_programs():
    """Another run's segment is not ours: neither while its process lives, nor when it dies and leaves it behind."""
    segment = leaks.SHM_FOLDER / f"{leaks.SHM_PREFIX}-other-run-{os.getpid()}"
    command = [sys.executable, "-c", MAKE_SEGMENT, str(segment)]
    stranger = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        check = leaks.LeakCheck()
        stranger.stdin.write(b"go\n")
        stranger.stdin.flush()
        assert stranger.stdout.readline() == b"made\n"
        assert check.leaks(0) == []
        stranger.communicate()
        assert segment.exists() and check.leaks(0) == []
    finally:
        segment.unlink()


def test_leak_check_ignores_segments_younger_than_the_world():
    check = leaks.LeakCheck()
    old, young = (leaks.SHM_FOLDER / f"{leaks.SHM_PREFIX}-{age}-{os.getpid()}" for age in ("old", "young"))
    try:
        old.touch()
        ended = old.stat().st_ctime
        while not young.exists() or young.stat().st_ctime <= ended:
            young.unlink(missing_ok=True)
            young.touch()
        assert check._look(ended) == [f"shared memory {old.name}"]
    finally:
        old.unlink()
        young.unlink()


def test_no_leaks_raises_on_leak():
    with pytest.raises(AssertionError, match="left behind: descriptor"), leaks.no_leaks(settle_s=0):
        reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)


def test_cells_print_the_command_that_repeats_them():
    cell = Cell("shm", "condvar", 4, "gather/layouts", {"dtype": "int8", "elements": 3})
    assert cell.name == "gather/layouts:dtype=int8,elements=3"
    assert cell.command().endswith(
        "--backend shm --variant condvar --ranks 4 --case 'gather/layouts:dtype=int8,elements=3'"
    )
    assert cell.matches("gather/*")
    assert cell.matches(cell.name)
    assert not cell.matches("reduce/*")


def test_table_counts_by_group_and_setting():
    def result(case_id, size, outcome):
        return Result(Cell("shm", "futex", size, case_id, {}), outcome, "why")

    text = report.table([result("gather/a", 1, Outcome.PASS), result("gather/b", 2, Outcome.FAIL)])
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["shm", "futex", "x1", "shm", "futex", "x2"]
    assert lines[1] == ["gather", "1", "0,", "1", "FAILED"]


def run_python(*arguments, cwd=None):
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=False, cwd=cwd, capture_output=True, text=True, timeout=100)


def test_command_line_runs_cases_and_writes_json(tmp_path):
    results = tmp_path / "results.json"
    ran = run_python(
        "-m", "cobre.comm.testing", "--backend", "local", "--quick", "--case", "broadcast/*", "--json", str(results)
    )
    assert ran.returncode == 0, ran.stderr
    assert "broadcast" in ran.stdout
    assert "0 failed" in ran.stdout
    assert {row["outcome"] for row in json.loads(results.read_text())} == {"pass"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--backend", "local", "--case", "no/such"], 1, "no case matches"),
        (["--ranks", "two"], 2, "numbers of ranks"),
        (["--ranks", "0"], 2, "numbers of ranks"),
        (["--backend", "pigeon"], 2, "invalid choice"),
    ],
)
def test_command_line_reports_errors(arguments, code, words):
    ran = run_python("-m", "cobre.comm.testing", *arguments)
    assert ran.returncode == code
    assert words in ran.stdout + ran.stderr


def test_profiles_limit_world_sizes():
    assert profile("local").sizes([1, 2, 4]) == [1]
    assert profile("local").sizes([2]) == [1]
    assert profile("shm").sizes([1, 2]) == [1, 2]


ASKS = "from cobre.comm.testing.case import find_case; print(find_case('callers/forked_child').skip_reason())"


def test_case_is_skipped_with_reason_under_address_sanitizer():
    compiler = shutil.which("gcc")
    name = compiler and subprocess.check_output([compiler, "-print-file-name=libasan.so"], text=True).strip()
    if not name or not Path(name).is_absolute():
        pytest.skip("gcc and its address sanitizer are not installed")
    reasons = []
    for environ in ({}, {"LD_PRELOAD": name, "ASAN_OPTIONS": "detect_leaks=0"}):
        output = subprocess.check_output([sys.executable, "-c", ASKS], env=os.environ | environ, text=True)
        reasons.append(output.strip())
    assert reasons[0] == ""
    assert "a fork may copy while another thread holds it" in reasons[1]

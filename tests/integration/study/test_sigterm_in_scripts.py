"""SIGTERM during `cobre.train` in a script: the result is returned, and the process ends before it starts more work."""

import textwrap
from pathlib import Path

import pytest
from processes import printed, run_python

CASE = str(Path(__file__).resolve().parents[3] / "examples" / "two_reservoirs")

# The signal comes in the second iteration of the first training.
START = """
    import os, signal, sys
    import cobre

    case, workers = sys.argv[1], int(sys.argv[2])

    def terminate(event):
        if event.iteration == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    def train(callback=None):
        return cobre.train(case, iterations=500, num_workers=workers, progress_callback=callback, progress=False)
"""
ENDED = "SIGTERM ended the last training: this process exits instead of starting more work"

NEXT_CALLS = {
    "train": "train()",
    "simulate": "cobre.simulate(case, result.policy, scenarios=4)",
    "bound": "cobre.bound(case, result.policy, paths=4)",
    "run": "cobre.run.run(case, sys.argv[3])",
    "Study": "cobre.Study(case, sys.argv[3]).train()",
}


def script(start, *lines):
    return "\n".join([textwrap.dedent(start), *map(textwrap.dedent, lines)])


def run_script(program, workers, *arguments):
    """Return exit code, stdout, and the lines of stderr."""
    code, out, err = run_python("-c", program, CASE, workers, *arguments)
    return code, out, printed(err)


@pytest.mark.parametrize("workers", [1, 2])
def test_script_that_trains_in_a_loop_ends(workers):
    """The script can save the result of the stopped training, and its open files are flushed."""
    program = script(
        START,
        """
        try:
            for number in range(3):
                result = train(terminate)
                print(number, result.stop_kind, result.iterations < 500, flush=True)
        finally:
            print("cleaned up")
        """,
    )
    assert run_script(program, workers) == (143, "0 terminated True\ncleaned up\n", [ENDED])


@pytest.mark.parametrize("call", NEXT_CALLS.values(), ids=NEXT_CALLS)
def test_next_call_after_sigterm_exits_process(tmp_path, call):
    program = script(START, "result = train(terminate)", call, "print('went on')")
    assert run_script(program, 1, tmp_path / "output") == (143, "", [ENDED])
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_script_handler_replaces_exit(workers):
    program = script(
        START,
        """
        taken = []
        signal.signal(signal.SIGTERM, lambda number, frame: taken.append(number))
        result = train(terminate)
        print(result.stop_kind, taken)
        print(cobre.train(case, iterations=3, progress=False).stop_kind, taken)
        """,
    )
    assert run_script(program, workers) == (0, "terminated [15]\niteration_limit [15]\n", [])


def test_handler_that_raises_ends_the_call():
    program = script(
        START,
        """
        def stop(number, frame):
            raise SystemExit(7)

        signal.signal(signal.SIGTERM, stop)
        train(terminate)
        print("went on")
        """,
    )
    assert run_script(program, 1) == (7, "", [])


@pytest.mark.parametrize("disposition", ["signal.SIG_IGN", "lambda number, frame: None"])
def test_script_that_handles_sigterm_after_training_continues(disposition):
    program = script(
        START,
        f"""
        result = train(terminate)
        signal.signal(signal.SIGTERM, {disposition})
        print(cobre.train(case, iterations=3, progress=False).stop_kind)
        """,
    )
    assert run_script(program, 1) == (0, "iteration_limit\n", [])


def test_script_after_last_training_ends_normally():
    assert run_script(script(START, "print(train(terminate).stop_kind)"), 1) == (0, "terminated\n", [])


def test_next_call_works_after_caught_exit():
    """A notebook shows SystemExit and continues."""
    program = script(
        START,
        """
        result = train(terminate)
        try:
            train()
        except SystemExit as end:
            print(end.code)
        print(cobre.train(case, iterations=3, progress=False).stop_kind)
        """,
    )
    assert run_script(program, 1) == (0, "143\niteration_limit\n", [ENDED])

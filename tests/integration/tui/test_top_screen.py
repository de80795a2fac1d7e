"""`cobre top`, drive by keys: it follows a run, reacts to keys, and fits small terminals."""

import asyncio
import json
import signal
import time

import pytest

pytest.importorskip("textual", reason="the live view is an extra")

from cli_runs import LIMIT_S, ONE_PROCESS, QUICK_CASE, TerminalRun, cobre
from textual.widgets import RichLog, Static

from cobre.runs.run_state import RunState
from cobre.runs.view import RunView
from cobre.tui.app import WatchApp
from cobre.tui.panels import BoundsPlot, PlotRange, figures


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    output = tmp_path_factory.mktemp("finished") / "out"
    done = cobre("run", QUICK_CASE, "-o", output, "--iterations", 6, "--workers", 2, "--no-report")
    assert done.returncode == 0, done.stderr
    return output


def drive(folder, act, size=(110, 34)):
    """Run the app without a terminal and act on it."""

    async def run():
        app = WatchApp(folder)
        async with app.run_test(size=size) as pilot:
            deadline = time.monotonic() + LIMIT_S
            while not app.is_ready and time.monotonic() < deadline:
                await pilot.pause(0.01)
            await pilot.pause()
            app.poll()
            await pilot.pause()
            return await act(app, pilot)

    return asyncio.run(run())


def shown(app, name):
    return str(app.query_one(f"#{name}", Static).render())


def lines(app):
    return [strip.text.rstrip() for strip in app.query_one("#log", RichLog).lines]


async def do_nothing(app, pilot):
    return app, {name: shown(app, name) for name in ("status", "figures", "ranks")}, lines(app)


def test_finished_run_is_shown(finished_run):
    _, text, log = drive(finished_run, do_nothing)
    summary = json.loads((finished_run / "summary.json").read_text())
    assert text["status"].strip().startswith("finished")
    assert "6 of 6" in text["figures"]
    assert f"{summary['lower_bound']:,.2f} $" in text["figures"]
    assert "backward" in text["figures"]
    assert [line.split()[0:2] for line in text["ranks"].splitlines()[:2]] == [["rank", "0"], ["rank", "1"]]
    assert any("simulated 200 scenarios" in line for line in log)
    assert any("iteration limit of 6" in line for line in log)


def test_keys_change_view(finished_run):
    async def act(app, pilot):
        plot = app.query_one(BoundsPlot)
        await pilot.press("z")
        assert plot.shown is PlotRange.ALL
        await pilot.press("g")
        assert plot.shows_gap
        with_iterations = len(lines(app))
        await pilot.press("i")
        await pilot.pause()
        assert 0 < len(lines(app)) < with_iterations
        await pilot.press("p")
        await pilot.pause()
        assert "paused" in shown(app, "status")
        await pilot.press("question_mark")
        await pilot.pause()
        assert "Quit; the run continues" in str(app.screen.query_one("#keys", Static).render())
        await pilot.press("q")  # only ends the explanation
        await pilot.pause()
        assert not app.screen.query("#keys")
        assert app.is_ready
        assert app.return_code is None
        await pilot.press("q")
        await pilot.pause()
        assert app.return_code == 0

    drive(finished_run, act)


def test_screen_lists_keys(finished_run):
    async def act(app, pilot):
        labels = [
            binding.binding.description for binding in app.screen.active_bindings.values() if binding.binding.show
        ]
        return labels, app.export_screenshot()

    labels, picture = drive(finished_run, act)
    for label in ("Quit", "Zoom", "Gap", "Log", "Pause", "Keys"):
        assert label in labels
        assert label in picture


@pytest.mark.parametrize("size", [(40, 24), (40, 12), (20, 10), (80, 24), (200, 60)])
def test_layout_fits_terminal_sizes(finished_run, size):
    _, text, log = drive(finished_run, do_nothing, size)
    assert "6 of 6" in text["figures"]
    assert max(map(len, text["ranks"].splitlines())) <= max(size[0], 22)
    assert log


def copy_of(finished_run, folder, lines):
    """Copy a run as it was after `lines` events; return all lines.

    Progress events, which only slow machines emit, are removed.
    """
    folder.mkdir()
    lines_read = (finished_run / "events.jsonl").read_text().splitlines(keepends=True)
    content = [line for line in lines_read if json.loads(line)["event"] not in ("preparation", "progress", "estimate")]
    (folder / "events.jsonl").write_text("".join(content[:lines]))
    return content


def test_live_view_follows_the_event_file(finished_run, tmp_path):
    folder = tmp_path / "out"
    content = copy_of(finished_run, folder, 5)

    async def act(app, pilot):
        assert "2 of 6" in shown(app, "figures")
        with (folder / "events.jsonl").open("a") as stream:
            stream.write(content[5] + content[6][:20])
            stream.flush()
            app.poll()
            assert app.view.last["iteration"] == 3
            stream.write(content[6][20:])
            stream.flush()
            app.poll()
            assert app.view.last["iteration"] == 4
        (folder / "events.jsonl").write_text(content[0])
        app.poll()
        await pilot.pause()
        assert app.view.last is None
        assert "no iteration yet" in shown(app, "figures")

    drive(folder, act)


def test_killed_run_is_reported_as_killed(finished_run, tmp_path):
    copy_of(finished_run, tmp_path / "out", 6)
    _, text, _ = drive(tmp_path / "out", do_nothing)
    assert "ended unexpectedly" in text["status"]
    assert "the run was killed" in text["figures"]


def test_simulation_of_stored_policy_is_shown(tmp_path):
    """Show a run without training, which will have no iteration."""
    events = [
        {"event": "run_started", "time": 1.0, "case": "my_case", "ranks": 2, "backend": "shm"},
        {"event": "phase", "time": 2.0, "name": "simulation"},
        {"event": "simulation_finished", "time": 3.0, "scenarios": 50, "mean_cost": 7.4e9, "half_width": 3e8},
        {"event": "run_finished", "time": 3.0, "seconds": 2.0},
    ]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in events))
    _, text, _ = drive(tmp_path, do_nothing)
    assert text["status"].strip().startswith("finished")
    assert "stored policy, no training" in text["figures"]
    assert "7,400,000,000.00 $" in text["figures"]
    assert "no iteration yet" not in text["figures"] + text["ranks"]


def test_incomplete_directory_is_tolerated(tmp_path):
    (tmp_path / "events.jsonl").write_text('{"event": "run_sta')
    _, text, _ = drive(tmp_path, do_nothing)
    assert "no iteration yet" in text["figures"]


def test_running_study_is_shown_from_other_terminal(tmp_path):
    """Watch a real run on a real terminal; leaving the view does not affect the run."""
    output = tmp_path / "out"
    study = TerminalRun("run", QUICK_CASE, "-o", output, "--iterations", 100000, *ONE_PROCESS, "--no-report")
    try:
        study.wait_for(r"iteration \d+ of 100000")
        view = TerminalRun("top", output, columns=100, rows=30)
        view.wait_for(r"running")
        view.wait_for(r"rank 0")
        view.type("q")
        assert view.end().code == 0
        assert study.process.poll() is None
    finally:
        study.process.send_signal(signal.SIGINT)
        study.end()


def test_progress_and_gap_fit_a_narrow_panel():
    bounds = {"lower_bound": 100.0, "upper_bound": 130.0, "half_width": 9.0, "gap": 0.18, "cuts": 4, "solves": 9}
    cost = {"policy_cost": 118.0, "policy_cost_half_width": 4.64, "policy_cost_paths": 12, "policy_gap": 0.18}
    now = {"iteration": 2, "elapsed_s": 9.0, "solves": 48, "total_solves": 100, "pass": "backward", "stage": 17}
    view = RunView()
    view.take_all(
        [
            {"event": "phase", "time": 0.0, "name": "training", "iteration_limit": 9},
            {"event": "iteration", "time": 1.0, "iteration": 1, "elapsed_s": 1.0, "load": [], **bounds, **cost},
            {"event": "progress", "time": 9.0, "solves_per_s": 5.0, "seconds_left": 9.0, **now},
        ]
    )
    assert "now         backward, stage 17, 48 %" in figures(view, RunState.RUNNING, 36).plain.splitlines()
    assert "gap         18.00 %, at most 22.64 %" in figures(view, RunState.RUNNING, 36).plain.splitlines()
    assert "gap         18.00 %, ≤ 22.64 %" in figures(view, RunState.RUNNING, 34).plain.splitlines()

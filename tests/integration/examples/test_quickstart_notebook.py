"""The quickstart notebook in a real kernel: training with workers, progress, figures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
QUICKSTART = HERE.parents[2] / "examples" / "quickstart.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Return the code cells as (source, outputs), after they ran next to a copy of the case."""
    folder = tmp_path_factory.mktemp("notebook")
    (folder / QUICKSTART.name).write_text(QUICKSTART.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "two_reservoirs").symlink_to(QUICKSTART.parent / "two_reservoirs")
    paths = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path if entry)
    environ = {**os.environ, "PYTHONPATH": paths, "IPYTHONDIR": str(folder / "ipython")}
    command = [sys.executable, HERE / "run_notebook.py", folder / QUICKSTART.name, folder / "executed.ipynb"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    notebook = json.loads((folder / "executed.ipynb").read_text(encoding="utf-8"))
    return [("".join(cell["source"]), cell["outputs"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def outputs_of(executed, words):
    [found] = [outputs for source, outputs in executed if words in source]
    return found


def html_of(outputs):
    return ["".join(output["data"].get("text/html", "")) for output in outputs if "data" in output]


def test_notebook_is_stored_without_outputs():
    cells = json.loads(QUICKSTART.read_text(encoding="utf-8"))["cells"]
    assert all(
        cell["outputs"] == [] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code"
    )


def test_progress_shows_below_the_cell_that_trains(executed):
    shown, result = html_of(outputs_of(executed, "num_workers=2)\nresult"))
    assert "cobre-progress" in shown
    assert "30 of 30" in shown
    assert "busy" in shown  # there are two workers
    assert "cobre-result" in result


@pytest.mark.parametrize("call", ["result.plot_bounds()", 'simulation.plot_fan("storage")'])
def test_notebook_draws_figures(executed, call):
    [output] = outputs_of(executed, call)
    assert "<svg" in "".join(output["data"]["image/svg+xml"])


def test_changed_case_costs_more(executed):
    [words] = [output["text"] for output in outputs_of(executed, "save_case") if "text" in output]
    assert "$ more" in "".join(words)


def test_study_with_a_callback_shows_no_progress_of_its_own(executed):
    outputs = outputs_of(executed, "on_iteration")
    assert html_of(outputs) == []
    assert "summary.json" in "".join("".join(output["text"]) for output in outputs)

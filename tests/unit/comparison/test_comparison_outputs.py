"""A comparison on the terminal, as JSON, as a page, in Python."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner
from compared_studies import NEW_PLANT

import cobre
from cobre.cli.main import main
from cobre.runs.content import IncompleteRunError


def invoke(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def test_first_line_is_about_bits_and_money_follows(runs):
    done = invoke(*runs)
    lines = done.output.splitlines()
    assert done.exit_code == 1
    assert lines[0].startswith("first difference in ")
    assert re.search(r"^B costs [\d.,]+ ± [\d.,]+ \w+ \$ less than A \(\N{MINUS SIGN}", done.output, re.M)
    assert f"Only in B: {NEW_PLANT} (thermal plant" in done.output
    for words in ("Cost", "Thermal generation", "Marginal cost of energy", "Storage at the end", "Water value"):
        assert re.search(rf"^{words} +\S+.* ± ", done.output, re.M), words
    assert re.search(r"^2030-01 ", done.output, re.M)


def test_identical_runs_have_two_lines(runs):
    done = invoke(runs[0], runs[0])
    assert done.exit_code == 0
    assert re.fullmatch(r"identical\ndigest [0-9a-f]{64} of bounds, cuts, policy file and simulation\n", done.output)


def test_table_with_another_checksum_is_not_compared(runs, tmp_path):
    copy = shutil.copytree(runs[1], tmp_path / "copy")
    content = bytearray((copy / "simulation" / "hydros.parquet").read_bytes())
    content[len(content) // 3] ^= 0x40
    (copy / "simulation" / "hydros.parquet").write_bytes(content)
    done = invoke(runs[0], copy)
    assert done.exit_code == 8
    assert "hydros.parquet is not the file that the manifest describes" in done.output
    with pytest.raises(cobre.errors.CobreError, match=r"hydros\.parquet is not the file"):
        cobre.compare(runs[0], copy)


def test_page_needs_no_library_of_figures(runs, tmp_path):
    program = "import sys; sys.modules['matplotlib'] = None; from cobre.cli.main import main; main()"
    command = [sys.executable, "-c", program, "compare", *runs, "--html", tmp_path / "page.html"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "")  # the runs differ
    assert 'data-chart="compare-cost"' in (tmp_path / "page.html").read_text()


def test_option_bits_compares_bits_only(runs):
    done = invoke(*runs, "--bits")
    assert done.exit_code == 1
    assert "B costs" not in done.output


def test_json_has_bits_and_money(runs, comparison):
    answer = json.loads(invoke(*runs, "--json").output)
    assert answer["identical"] is False
    assert len(answer["digests"]) == 2
    money = answer["money"]
    assert money["summary"][0]["difference"] == comparison.summary["difference"][0].as_py()
    assert money["only_in_b"][0]["name"] == NEW_PLANT
    assert {row["quantity"] for row in money["stages"]} >= {"cost", "marginal_cost", "storage"}
    assert json.loads(invoke(runs[0], runs[0], "--json").output)["identical"] is True


def test_page_is_one_file_with_escaped_names(runs, tmp_path):
    target = tmp_path / "changes.html"
    assert invoke(*runs, "--html", target).exit_code == 1
    page = target.read_text()
    assert not re.search(r'<[^>]*(?:src|href)="(?!#|data:)', page)
    assert "<new>" not in page
    assert "Peaker &lt;new&gt; &amp; $5" in page
    numbers = json.loads(re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL)[1])
    assert {"compare-cost", "difference-cost", "compare-storage", "difference-marginal_cost"} <= set(numbers["charts"])
    assert "Only in B" in page


def test_page_that_cannot_be_written_is_an_error(runs, tmp_path):
    done = invoke(*runs, "--html", tmp_path)
    assert done.exit_code == 5
    assert "it is a directory" in done.output


def test_runs_without_simulation_are_compared_in_bits(runs, tmp_path):
    copy = shutil.copytree(runs[0], tmp_path / "bare")
    shutil.rmtree(copy / "simulation")
    summary = json.loads((copy / "summary.json").read_text())
    (copy / "summary.json").write_text(json.dumps(summary | {"simulation_digest": None}))
    found = cobre.compare(copy, runs[1])
    assert found.money is None
    assert "no simulation" in str(found)
    assert found.summary.num_rows == 0
    assert "no simulation" in found._repr_html_()


def test_directory_without_run_is_an_error(runs, tmp_path):
    with pytest.raises(IncompleteRunError):
        cobre.compare(runs[0], tmp_path)
    assert issubclass(IncompleteRunError, cobre.errors.CobreError)


def test_comparison_in_python_equals_command(runs, comparison):
    found = cobre.compare(str(runs[0]), runs[1])
    assert isinstance(found, cobre.StudyComparison)
    assert list(found.to_pandas().columns[:4]) == ["quantity", "title", "unit", "component"]
    assert found.to_polars("stages").height == comparison.stages.num_rows
    assert len(repr(found)) < 120
    html = found._repr_html_()
    assert "cobre-compare" in html
    assert "<svg" in html
    with pytest.raises(KeyError, match="summary, stages, entities"):
        found.table("plants")


def test_comparison_plots_both_studies(comparison):
    figure = comparison.plot("storage")
    upper, lower = figure.axes
    assert len(upper.lines) == 2
    assert len(lower.patches) == len(comparison.money.stages)
    assert comparison.plot("cost", "Thermal generation").axes
    assert comparison.plot("water_value", 0).axes
    with pytest.raises(ValueError, match="marginal_cost"):
        comparison.plot("happiness")
    with pytest.raises(ValueError, match="there are"):
        comparison.plot("storage", "nowhere")

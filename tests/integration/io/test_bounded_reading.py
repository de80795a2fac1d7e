"""Input that would take gigabytes or overflow the stack: a clear error, in a process with little memory."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from studies import QUICK_CASE, must_run

import cobre
from cobre.cli.main import main

LIMITED = """
import json, resource, sys
import cobre, pyarrow.parquet
from cobre.io.findings import Findings
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
report = cobre.validate(sys.argv[1])
print(json.dumps([str(error) for error in report.errors]))
"""
ADDRESS_SPACE = 3 << 30  # part of it reserved by libraries and threads


def errors_of(case):
    """Validate in a process whose address space is limited."""
    command = [sys.executable, "-c", LIMITED, str(case), str(ADDRESS_SPACE)]
    environ = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=environ)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture
def case(tmp_path):
    return Path(shutil.copytree(QUICK_CASE, tmp_path / "case", ignore=shutil.ignore_patterns("output")))


@pytest.mark.parametrize("file", ["stages.json", "config.json", "system/hydros.json"])
@pytest.mark.parametrize("levels", [150, 500, 900, 3000])
def test_deeply_nested_json_is_refused(case, file, levels):
    text = (case / file).read_text().rstrip()
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        inside = opening * levels + "1" + closing * levels
        (case / file).write_text(f'{text[:-1]}, "extra": {inside}}}')
        report = cobre.validate(case)
        assert [str(error) for error in report.errors if error.file == file] == [
            f"{file}: is nested too deeply (expected a JSON object of the case format)"
        ]


@pytest.mark.parametrize("matrix", [[], [[1.0]] * 16_000], ids=["no matrix", "short rows"])
def test_correlation_group_of_16000_entities_is_refused(case, matrix):
    entities = [{"type": "inflow", "id": number} for number in range(16_000)]
    group = {"name": "all", "entities": entities, "matrix": matrix}
    document = {"method": "spectral", "profiles": {"default": {"correlation_groups": [group]}}}
    (case / "scenarios" / "correlation.json").write_text(json.dumps(document))
    [error] = [error for error in errors_of(case) if "correlation" in error]
    assert "group all, entities: has 16000 entities (expected at most 4000 in a group)" in error


def test_correlation_matrix_of_other_size_is_refused(case):
    """The matrix in the file is a small placeholder."""
    entities = [{"type": "inflow", "id": number} for number in range(3_900)]
    group = {"name": "all", "entities": entities, "matrix": [[1.0]]}
    document = {"method": "spectral", "profiles": {"default": {"correlation_groups": [group]}}}
    (case / "scenarios" / "correlation.json").write_text(json.dumps(document))
    assert any(
        "the matrix is not square with one row for each of the 3900 entities" in text for text in errors_of(case)
    )


def test_table_unpacking_to_gigabytes_is_refused(case):
    """Equal rows, 200 million of them, in a file of a megabyte."""
    path = case / "scenarios" / "load_seasonal_stats.parquet"
    piece = {"bus_id": np.zeros(10**7, np.int32), "stage_id": np.zeros(10**7, np.int32)}
    rows = pa.table(piece | {"mean_mw": np.full(10**7, 5.0), "std_mw": np.zeros(10**7)})
    with pq.ParquetWriter(path, rows.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(rows)
    assert path.stat().st_size < 4e6
    [error] = [error for error in errors_of(case) if path.name in error]
    assert "200,000,000 rows take 6.4 GB in memory" in error


def test_oversized_document_is_refused(case):
    (case / "penalties.json").write_text('{"a": [' + "0," * (36 << 20) + "0]}")
    [error] = [error for error in errors_of(case) if "penalties" in error]
    assert "at most 67108864 are read" in error


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bounded") / "run"
    must_run(QUICK_CASE, folder, "--iterations", "2", "--backend", "local")
    return folder


DAMAGED = {
    "not JSON": "{",
    "list": "[]",
    "stages": '{"stages": 5}',
    "entities": '{"entities": [1]}',
    "plants": '{"entities": {"hydros": [3]}}',
    "ids": '{"entities": {"hydros": [{"id": "x"}]}}',
    "nested": "[" * 900 + "]" * 900,
}


@pytest.mark.parametrize("layout", ["csv", "cobre-python"])
def test_export_reports_damaged_study_file(run, tmp_path, layout):
    copy = shutil.copytree(run, tmp_path / "run")
    for content in DAMAGED.values():
        (copy / "study.json").write_text(content)
        done = CliRunner().invoke(main, ["export", str(copy), "--to", layout, "--output", str(tmp_path / "out")])
        assert done.exit_code != 0
        assert done.exception is None or isinstance(done.exception, SystemExit), (content[:40], done.exception)
        assert "study.json cannot be read" in done.output, (content[:40], done.output[-1500:])

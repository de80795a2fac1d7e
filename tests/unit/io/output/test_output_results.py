"""Directories of results: whole, or without a manifest."""

import json
import subprocess
import sys
import textwrap

import pyarrow as pa
import pytest
from pyarrow import parquet

from cobre.io.output import ResultsError, read_manifest, read_results, write_results
from cobre.io.output.results import digest_of
from cobre.io.storage.atomic import WriteError

HYDROS = pa.table({"stage_id": pa.array([0, 1], pa.int32()), "storage_final_hm3": [1.5, None]})
CONVERGENCE = pa.table({"iteration": pa.array([1], pa.int32()), "lower_bound": [2.0]})
TABLES = {"hydros": HYDROS, "training/convergence": CONVERGENCE}


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_results_have_tables_and_manifest(tmp_path):
    write_results(tmp_path / "out", TABLES, {"case": "toy", "lower_bound": 2.0})
    assert files(tmp_path / "out") == ["hydros.parquet", "manifest.json", "training/convergence.parquet"]
    manifest = read_manifest(tmp_path / "out")
    assert manifest["run"] == {"case": "toy", "lower_bound": 2.0}
    entry = manifest["tables"]["hydros"]
    path = tmp_path / "out" / "hydros.parquet"
    assert entry == {
        "file": "hydros.parquet",
        "rows": 2,
        "columns": [{"name": "stage_id", "type": "int32"}, {"name": "storage_final_hm3", "type": "double"}],
        "bytes": path.stat().st_size,
        "sha256": digest_of(path),
    }
    assert {"python", "numpy", "pyarrow"} <= manifest["software"].keys()
    assert parquet.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"


def test_results_read_back_unchanged(tmp_path):
    write_results(tmp_path, TABLES, {})
    found = read_results(tmp_path)
    assert found.keys() == TABLES.keys()
    assert all(found[name].equals(table) for name, table in TABLES.items())


def test_same_results_are_the_same_files(tmp_path):
    for name in ("a", "b"):
        tables = {key: TABLES[key] for key in sorted(TABLES, reverse=name == "b")}
        write_results(tmp_path / name, tables, {"x": 1, "y": 2} if name == "a" else {"y": 2, "x": 1})
    for file in files(tmp_path / "a"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_empty_table_keeps_its_columns(tmp_path):
    write_results(tmp_path, {"contracts": HYDROS.slice(0, 0)}, {})
    assert read_results(tmp_path)["contracts"].schema == HYDROS.schema


def test_earlier_results_are_removed_and_other_files_kept(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "other.parquet").write_bytes(b"mine")
    write_results(tmp_path, TABLES, {"run": 1})
    write_results(tmp_path, {"thermals": HYDROS}, {"run": 2})
    assert files(tmp_path) == ["manifest.json", "notes.txt", "other.parquet", "thermals.parquet"]


@pytest.mark.parametrize("name", ["../hydros", "/etc/hydros", "Hydros", "a//b", "", "a b"])
def test_names_of_tables_cannot_leave_the_directory(tmp_path, name):
    with pytest.raises(ValueError, match="is not a table name"):
        write_results(tmp_path / "out", {name: HYDROS}, {})
    assert not (tmp_path / "out").exists()


def test_unserialisable_metadata_raises_before_writing(tmp_path):
    write_results(tmp_path, TABLES, {})
    before = {file: (tmp_path / file).read_bytes() for file in files(tmp_path)}
    for facts in ({"x": object()}, {"x": float("inf")}):
        with pytest.raises((TypeError, ValueError)):
            write_results(tmp_path, {"hydros": CONVERGENCE}, facts)
    assert {file: (tmp_path / file).read_bytes() for file in files(tmp_path)} == before


def test_unwritable_folder_raises_write_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="a part of its path is a file"):
        write_results(tmp_path / "file" / "out", TABLES, {})


def test_interrupted_write_keeps_old_results(tmp_path):
    write_results(tmp_path / "out", TABLES, {"run": 1})
    program = textwrap.dedent(f"""
        import resource, signal
        from pathlib import Path
        import numpy as np, pyarrow as pa
        from cobre.io.storage.atomic import WriteError
        from cobre.io.output import write_results
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        noise = pa.table({{"x": np.random.default_rng(1).normal(size=200_000)}})
        try:
            write_results(Path({str(tmp_path / "out")!r}), {{"hydros": noise}}, {{}})
        except WriteError as error:
            print(error)
    """)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"cannot write {tmp_path / 'out'}" in ran.stdout
    assert read_manifest(tmp_path / "out")["run"] == {"run": 1}
    assert read_results(tmp_path / "out")["hydros"].equals(HYDROS)
    assert files(tmp_path / "out") == ["hydros.parquet", "manifest.json", "training/convergence.parquet"]


def test_results_without_manifest_are_incomplete(tmp_path):
    write_results(tmp_path, TABLES, {})
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(ResultsError, match=r"manifest.json is missing"):
        read_results(tmp_path)


def test_error_names_missing_table(tmp_path):
    write_results(tmp_path, TABLES, {})
    (tmp_path / "hydros.parquet").unlink()
    with pytest.raises(ResultsError, match=r"hydros.parquet is missing"):
        read_results(tmp_path)


def test_error_names_changed_table(tmp_path):
    write_results(tmp_path, TABLES, {})
    content = bytearray((tmp_path / "hydros.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "hydros.parquet").write_bytes(bytes(content))
    with pytest.raises(ResultsError, match="its checksum differs"):
        read_results(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read"),
        ("[]", "it is not a JSON object"),
        (json.dumps({"format_version": 7}), "format version 7"),
    ],
)
def test_invalid_manifests_raise(tmp_path, text, words):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ResultsError, match=words):
        read_manifest(tmp_path)

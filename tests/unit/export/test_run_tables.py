"""Exports read back by the libraries that people use, and compared with the run's own tables."""

import csv
import datetime
import json
import shutil
import sys
from pathlib import Path

import duckdb
import numpy as np
import openpyxl
import pyarrow as pa
import pytest
import xarray as xr
from click.testing import CliRunner
from pyarrow import parquet

from cobre.cli.main import main
from cobre.errors import CobreError, MissingLibraryError
from cobre.export import ExportError, export_run, files
from cobre.export.files import write_csv
from cobre.export.run_tables import RunTables, read_tables
from cobre.io.output.results import RowsInMemory
from cobre.io.storage.atomic import WriteError

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_reservoirs"


def invoke(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    output = tmp_path_factory.mktemp("export") / "results"
    done = invoke("run", EXAMPLE, "--output", output, "--backend", "local", "--iterations", 2, "--quiet", "--no-report")
    assert done.exit_code == 0, done.output
    return output


def stored(run, name):
    return parquet.read_table(run / "simulation" / f"{name}.parquet")


def test_csv_has_every_table_and_row(run, tmp_path):
    target = export_run(run, tmp_path / "out", "csv")
    names = {path.stem for path in target.iterdir()}
    assert names == {
        "stages",
        "entities",
        "convergence",
        *(path.stem for path in (run / "simulation").glob("*.parquet")),
    }
    with (target / "hydros.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    table = stored(run, "hydros")
    assert len(rows) == table.num_rows
    assert [float(row["storage_final_hm3"]) for row in rows] == table["storage_final_hm3"].to_pylist()
    with (target / "stages.csv").open(newline="") as stream:
        assert next(csv.DictReader(stream))["start_date"] == "2030-01-01"


def test_workbook_has_a_sheet_for_each_table(run, tmp_path):
    done = invoke("export", run, "--to", "xlsx", "--table", "costs", "--table", "stages", "-o", tmp_path / "x.xlsx")
    assert done.exit_code == 0, done.output
    book = openpyxl.load_workbook(tmp_path / "x.xlsx", read_only=True)
    assert book.sheetnames == ["stages", "costs"]
    head, first, *others = book["costs"].iter_rows(values_only=True)
    table = stored(run, "costs")
    assert list(head) == table.column_names
    assert len(others) + 1 == table.num_rows
    assert first[head.index("immediate_cost")] == pytest.approx(table["immediate_cost"][0].as_py(), rel=1e-15)
    assert first[head.index("block_id")] is None
    assert list(book["stages"].iter_rows(values_only=True))[1][1] == datetime.datetime(2030, 1, 1)


def test_text_in_a_workbook_is_never_a_formula(tmp_path):
    tables = RunTables(tmp_path, {"t": RowsInMemory(pa.table({"name": ["=1+1", "http://x"]}))}, {})
    files.write_workbook(tables, tmp_path / "x.xlsx")
    cells = [row[0] for row in openpyxl.load_workbook(tmp_path / "x.xlsx")["t"].iter_rows(min_row=2)]
    assert [(cell.value, cell.data_type, cell.hyperlink) for cell in cells] == [
        ("=1+1", "s", None),
        ("http://x", "s", None),
    ]


def test_text_in_csv_is_never_a_formula_or_command(tmp_path):
    names = ["=1+1", "+A1", "-A1", "@SUM(A1)", " =1", "\t=1", "a\x1b]0;t\x07", "Água, 2 = 3", None]
    rows = pa.table({"name": names, "value": [-1.5] * len(names)})
    write_csv(RunTables(tmp_path, {"t": RowsInMemory(rows)}, {}), tmp_path)
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as stream:
        found = list(csv.reader(stream))[1:]
    expected = ["'=1+1", "'+A1", "'-A1", "'@SUM(A1)", "' =1", r"\x09=1", r"a\x1b]0;t\x07", "Água, 2 = 3", ""]
    assert [name for name, _ in found] == expected
    assert {value for _, value in found} == {"-1.5"}


def test_table_too_long_for_a_sheet_is_an_error_before_writing(run, tmp_path, monkeypatch):
    rows = stored(run, "costs").num_rows
    monkeypatch.setattr(files, "MAX_ROWS", rows)
    with pytest.raises(ExportError, match=rf"costs has {rows:,} rows.*--table stages.*--to csv"):
        export_run(run, tmp_path / "x.xlsx", "xlsx")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(files, "MAX_ROWS", rows + 1)
    export_run(run, tmp_path / "x.xlsx", "xlsx", tables=["costs"])


def test_row_limit_equals_that_of_excel():
    assert files.MAX_ROWS == 2**20


def test_netcdf_has_ids_as_dimensions(run, tmp_path):
    target = export_run(run, tmp_path / "out.nc", "netcdf")
    table = stored(run, "hydros")
    with xr.open_dataset(target, group="hydros") as hydros:
        assert hydros["storage_final_hm3"].dims == ("scenario_id", "stage_id", "block_id", "hydro_id")
        assert hydros["storage_final_hm3"].attrs["units"] == "hm3"
        assert hydros["generation_mwh"].sum().item() == pytest.approx(
            sum(table["generation_mwh"].to_pylist()), rel=1e-12
        )
        row = table.slice(1234, 1).to_pylist()[0]
        ids = {name: row[name] for name in hydros["storage_final_hm3"].dims}
        assert hydros["turbined_m3s"].sel(ids).item() == row["turbined_m3s"]
        assert hydros["start_date"].values[0] == "2030-01-01"
        assert len(hydros["hydro_name"]) == 2
    with xr.open_dataset(target, group="costs") as costs:
        assert costs["immediate_cost"].dims == ("scenario_id", "stage_id")
    with xr.open_dataset(target, group="entities") as entities:
        assert entities["name"].dims == ("row",)


def test_duckdb_answers_in_sql(run, tmp_path):
    target = export_run(run, tmp_path / "out.duckdb", "duckdb")
    with duckdb.connect(str(target), read_only=True) as database:
        costs = database.sql("SELECT sum(immediate_cost * discount_factor) / count(DISTINCT scenario_id) FROM costs")
        table = stored(run, "costs")
        expected = np.dot(table["immediate_cost"].to_numpy(), table["discount_factor"].to_numpy())
        assert costs.fetchall()[0][0] == pytest.approx(expected / len(set(table["scenario_id"].to_pylist())), rel=1e-12)
        named = database.sql("SELECT name FROM entities WHERE kind = 'hydros' ORDER BY entity_id").fetchall()
        assert len(named) == 2
        assert database.sql("SELECT min(start_date) FROM stages").fetchall() == [(datetime.date(2030, 1, 1),)]


@pytest.mark.parametrize("form", ["csv", "xlsx", "netcdf", "duckdb"])
def test_existing_targets_are_not_replaced_and_links_not_followed(run, tmp_path, form):
    target = tmp_path / "there"
    target.write_text("mine")
    with pytest.raises(WriteError, match="exists"):
        export_run(run, target, form, tables=["stages"])
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    if form != "csv":
        with pytest.raises(WriteError, match="exists"):
            export_run(run, link, form, tables=["stages"])
    assert target.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "there"]


@pytest.mark.parametrize(
    ("form", "library", "extra"),
    [("xlsx", "xlsxwriter", "excel"), ("netcdf", "netCDF4", "netcdf"), ("duckdb", "duckdb", "duckdb")],
)
def test_missing_library_error_names_install_command(run, tmp_path, monkeypatch, form, library, extra):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, library)
    monkeypatch.setattr(sys, "meta_path", [_MissingModule(library), *sys.meta_path])
    done = invoke("export", run, "--to", form, "--table", "stages", "--output", tmp_path / "x")
    assert done.exit_code == 9
    assert f"{library} is not installed: pip install 'pycobre[{extra}]'" in done.output
    assert list(tmp_path.iterdir()) == []
    assert issubclass(MissingLibraryError, CobreError)


class _MissingModule:
    """Finds nothing in place of a library."""

    def __init__(self, name):
        self._name = name

    def find_spec(self, name, path=None, target=None):
        if name == self._name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_wrong_options_are_usage_errors(run, tmp_path):
    assert "choose a format with --to" in invoke("export", run).output
    done = invoke("export", run, "--to", "csv", "--table", "plants")
    assert done.exit_code == 8
    assert "there is no table plants" in done.output
    assert "hydros" in done.output
    assert invoke("export", tmp_path, "--to", "csv").exit_code == 8
    with pytest.raises(ExportError, match="csv, xlsx"):
        export_run(run, tmp_path / "x", "sql")


def test_damaged_table_is_not_exported(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    path = copy / "simulation" / "costs.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ExportError, match="checksum"):
        export_run(copy, tmp_path / "x", "csv")


@pytest.mark.parametrize(("field", "value"), [("case", 3), ("config_overrides", "x"), ("versions", 1), ("method", 2)])
def test_wrong_type_in_study_json_raises_export_error(run, tmp_path, field, value):
    copy = shutil.copytree(run, tmp_path / "copy")
    study = json.loads((copy / "study.json").read_text())
    (copy / "study.json").write_text(json.dumps(study | {field: value}))
    for layout in ("csv", "cobre-python"):
        done = invoke("export", copy, "--to", layout, "--output", tmp_path / layout)
        assert (done.exit_code, type(done.exception)) == (8, SystemExit)
        assert f"`{field}` is not a" in done.output


def test_stages_and_entities_come_first(run):
    assert list(read_tables(run).tables)[:2] == ["stages", "entities"]


def test_tables_in_memory_convert_to_arrays(run):
    from cobre.study.dataframes import as_xarray

    hydros = as_xarray(stored(run, "hydros"))
    assert hydros["storage_final_hm3"].dims == ("scenario_id", "stage_id", "block_id", "hydro_id")
    assert as_xarray(stored(run, "costs"))["immediate_cost"].dims == ("scenario_id", "stage_id")


def test_run_may_be_the_current_directory(run, tmp_path, monkeypatch):
    import shutil

    monkeypatch.chdir(shutil.copytree(run, tmp_path / "here"))
    for named in (".", "training/.."):
        done = invoke("export", named, "--to", "csv", "--table", "costs")
        assert (done.exit_code, done.output.strip()) == (0, str(tmp_path / "here-csv"))
        shutil.rmtree(tmp_path / "here-csv")

"""Import contracts behind the central promise: each fails as soon as a forbidden import is added."""

import ast
import tomllib
from copy import deepcopy
from pathlib import Path

import grimp
import pytest
from importlinter.configuration import configure
from importlinter.contracts.forbidden import ForbiddenContract

import cobre

SOURCE = Path(cobre.__file__).parent
SETTINGS = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["tool"]["importlinter"]
BACKENDS = "backends are known to comm alone"
MPI = "mpi4py is imported in one module"
COMM = "comm knows nothing of the rest"
ADAPTERS = "files, randomness, solver and terminal view know no communication"
NAMES = ("local", "mpi", "shm", "tcp")


@pytest.fixture(scope="module")
def graph():
    configure()
    return grimp.build_graph("cobre", include_external_packages=True, cache_dir=None)


def is_kept(name, graph):
    (settings,) = [one for one in SETTINGS["contracts"] if one["name"] == name]
    options = {key: value for key, value in settings.items() if key not in ("name", "type")}
    if "allow_indirect_imports" in options:
        options["allow_indirect_imports"] = str(options["allow_indirect_imports"])
    session = {"root_packages": ["cobre"], "include_external_packages": True}
    return ForbiddenContract(name, session, options).check(deepcopy(graph), verbose=False).kept


@pytest.mark.parametrize("name", [BACKENDS, MPI, COMM, ADAPTERS])
def test_contract_holds(graph, name):
    assert is_kept(name, graph)


@pytest.mark.parametrize(
    ("name", "importer", "imported"),
    [
        (BACKENDS, "cobre.sddp.training.loop", "cobre.comm.backends.shm"),
        (BACKENDS, "cobre.study.placement", "cobre.comm.backends.local"),
        (BACKENDS, "cobre.study.training.train", "cobre.comm.backends"),
        (BACKENDS, "cobre.study.bench", "cobre.comm.local"),
        (BACKENDS, "cobre.sddp.training.loop", "cobre.comm.tcp"),
        (BACKENDS, "cobre.export", "cobre.comm.backends.shm"),
        (BACKENDS, "cobre.cli.run_command", "cobre.comm.backends.tcp.communicator"),
        (MPI, "cobre.comm.backends.mpi.communicator", "mpi4py"),
        (MPI, "cobre.comm.machine", "mpi4py"),
        (MPI, "cobre.sddp.training.loop", "mpi4py"),
        (MPI, "cobre", "mpi4py"),
        (COMM, "cobre.comm.factory", "cobre.records"),
        (COMM, "cobre.comm.factory", "pyarrow"),
        (ADAPTERS, "cobre.io.case", "cobre.comm"),
        (ADAPTERS, "cobre.tui.app", "cobre.comm.factory"),
        (ADAPTERS, "cobre.solver.batches", "cobre.comm.cores"),
    ],
)
def test_forbidden_import_breaks_contract(graph, name, importer, imported):
    changed = deepcopy(graph)
    assert importer in changed.modules
    changed.add_import(importer=importer, imported=imported, line_number=1, line_contents=f"import {imported}")
    assert not is_kept(name, changed)


def test_contract_covers_whole_package_except_comm(graph):
    (settings,) = [one for one in SETTINGS["contracts"] if one["name"] == BACKENDS]
    without_comm = {"comm", "_native", "errors", "limits", "records", "text", "versions"}
    assert set(settings["source_modules"]) == graph.find_children("cobre") - {f"cobre.{name}" for name in without_comm}


def test_only_comm_names_classes_of_backends():
    """`cobre.comm` has these classes for its users; an import of them from there breaks no contract."""
    backends = {f"{name.capitalize()}Communicator" for name in NAMES}
    for path in SOURCE.rglob("*.py"):
        if path.is_relative_to(SOURCE / "comm"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = {node.attr} if isinstance(node, ast.Attribute) else set()
            if isinstance(node, ast.ImportFrom):
                names = {alias.name for alias in node.names}
            assert not names & backends, f"{path.relative_to(SOURCE)} names {names & backends}"


IMPORTING = {"import_module", "__import__", "resolve_name", "run_module"}


def test_no_backend_is_imported_by_a_string():
    """Contracts see import statements only. `cobre.comm` loads backends by name, and imports mpi4py in one module."""
    for path in SOURCE.rglob("*.py"):
        inside = path.is_relative_to(SOURCE / "comm")
        hidden = ("mpi4py",) if inside else ("mpi4py", "cobre.comm.backends", *(f"cobre.comm.{name}" for name in NAMES))
        for call in ast.walk(ast.parse(path.read_text())):
            if (
                not isinstance(call, ast.Call)
                or getattr(call.func, "attr", getattr(call.func, "id", "")) not in IMPORTING
            ):
                continue
            texts = [
                part.value for part in ast.walk(call) if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            assert not any(text.startswith(hidden) for text in texts), (
                f"{path.relative_to(SOURCE)}: {ast.unparse(call)}"
            )

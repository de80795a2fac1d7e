"""Rules of the code base that linters do not check."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import cobre
import cobre.comm

SOURCE = Path(cobre.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
NO_PICKLE_BUT = {
    "comm/launch/payload.py",  # passes a function to a child process through an inherited file
    "sddp/ranks.py",  # built by a rank of the same job, in memory that only this user's ranks can open
}


def modules():
    return sorted(SOURCE.rglob("*.py"))


def imported_names(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_import_has_no_side_effects():
    program = "import sys, threading, cobre; print(sorted(sys.modules)); assert threading.active_count() == 1"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "mpi4py", "cloudpickle", "multiprocessing"} & set(ast.literal_eval(printed))


EVERY_MODULE = """
import importlib, pkgutil, signal, threading, cobre

def state():
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return handlers, signal.pthread_sigmask(signal.SIG_BLOCK, []), threading.enumerate()

before = state()
for module in pkgutil.walk_packages(cobre.__path__, "cobre."):
    if module.name.rpartition(".")[2] != "__main__" and ".templates" not in module.name:
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:  # an extra that is not installed
            assert not error.name.startswith("cobre"), error
        assert state() == before, module.name
"""


def test_importing_modules_changes_no_signals_and_starts_no_threads():
    subprocess.run([sys.executable, "-c", EVERY_MODULE], check=True)


def test_comm_imports_no_optional_libraries():
    program = "import sys, cobre.comm, cobre.comm.launch; print(sorted(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"mpi4py", "cloudpickle"} & set(ast.literal_eval(printed))


def test_untrusted_data_is_never_unpickled_or_evaluated():
    unsafe_modules = {"pickle", "cloudpickle", "marshal", "shelve", "dill"}
    for path in modules():
        name = path.relative_to(SOURCE).as_posix()
        if name in NO_PICKLE_BUT:
            continue
        assert not unsafe_modules & set(imported_names(path)), name
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        assert not [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("eval", "exec")], (
            name
        )


def test_comm_uses_no_sddp_vocabulary():
    words = re.compile(r"\b(sddp|hydro\w*|reservoir|inflow|cut pool|backward pass|forward pass)\b", re.IGNORECASE)
    for path in (SOURCE / "comm").rglob("*.py"):
        assert not words.search(path.read_text()), path


def test_public_names_exist():
    for name in cobre.comm.__all__:
        assert hasattr(cobre.comm, name)


def test_contract_clauses_are_numbered_once():
    text = (SOURCE / "comm" / "communicator.py").read_text()
    assert re.findall(r"^(\d)\. \*", text, re.MULTILINE) == [str(number) for number in range(1, 9)]


def test_commands_print_through_one_function():
    """Foreign names and messages must be escaped for terminals; the known lines contain none, or are for a shell."""
    known = {"standard_streams.py", "launch_command.py", "about_commands.py", "case_commands.py", "bench_command.py"}
    raw = {path.name for path in (SOURCE / "cli").glob("*.py") if "click.echo(" in path.read_text()}
    assert raw <= known


def test_modules_of_tests_say_what_they_are_about():
    folder = ROOT / "tests"
    undocumented = [path for path in folder.rglob("*.py") if not ast.get_docstring(ast.parse(path.read_text()))]
    assert undocumented == []

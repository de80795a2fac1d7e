"""Choices that are declared twice: the command line loads without NumPy, type checkers need literals."""

import subprocess
import sys
from typing import get_args, get_type_hints

import cobre
from cobre.cli.error_reporting import ExitCode
from cobre.cli.main import main
from cobre.cli.setting_options import AUTO_BACKEND
from cobre.comm import BackendKind
from cobre.comm.exit_report import INTERRUPTED, TERMINATED
from cobre.core.bounds import BoundMethod, BoundMethodName
from cobre.mcp.tools import Tools


def choices(command, option):
    [found] = [parameter for parameter in main.commands[command].params if parameter.name == option]
    assert all(type(choice) is str for choice in found.type.choices), "of an enumeration the names would be offered"
    return set(found.type.choices)


def test_backend_choices_equal_those_of_communication():
    assert choices("run", "backend") == set(BackendKind)
    offered = get_args(get_type_hints(Tools.start_study)["backend"])
    assert set(offered) == set(BackendKind) - {BackendKind.MPI}  # its ranks are started by its own launcher


def test_method_choices_equal_computed_upper_bounds():
    assert choices("bound", "method") == set(BoundMethod) == set(get_args(BoundMethodName))


def test_interruptions_have_the_exit_codes_of_ranks():
    assert (ExitCode.INTERRUPTED, ExitCode.TERMINATED) == (INTERRUPTED, TERMINATED)


def test_command_line_is_read_without_numpy():
    program = "import sys, cobre.cli.main; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_train_docstring_quotes_help_of_auto_backend():
    assert AUTO_BACKEND in " ".join(cobre.train.__doc__.split())

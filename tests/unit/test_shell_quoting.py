"""Names quoted for a shell."""

import subprocess
from pathlib import Path

import pytest

from cobre.wording import as_argument


@pytest.mark.parametrize("name", ["plain", "with space", "it's", 'say "x"', "$HOME", "a;b", "line\nbreak", "ñ 日本"])
def test_shell_round_trips_name(name):
    done = subprocess.run(f"printf %s {as_argument(Path(name))}", shell=True, capture_output=True, check=True)
    assert done.stdout.decode() == name


def test_leading_dash_is_not_an_option():
    assert as_argument("-x y") == "'./-x y'"


def test_simple_names_are_not_quoted():
    assert as_argument(Path("results/run-1")) == "results/run-1"

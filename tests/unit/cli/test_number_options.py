"""Numbers that no study accepts are usage errors, before anything starts."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from cobre.cli.main import main

CASE = str(Path(__file__).resolve().parents[3] / "examples" / "two_reservoirs")
HUGE = "99999999999999999999"


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        ("run", "--time-limit", "nan"),
        ("run", "--time-limit", "inf"),
        ("run", "--checkpoint-minutes", "nan"),
        ("run", "--checkpoint-every", HUGE),
        ("bound", "--confidence", "nan"),
        ("bound", "--paths", HUGE),
        ("bench", "--paths", HUGE),
        ("bench", "--rounds", HUGE),
    ],
)
def test_invalid_value_is_usage_error_naming_option(command, option, value):
    found = CliRunner().invoke(main, [command, CASE, option, value])
    assert found.exit_code == 2
    assert f"Invalid value for '{option}'" in found.output

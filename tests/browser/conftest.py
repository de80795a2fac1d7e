"""A report of a real run, open in a real browser."""

import subprocess
import sys
from pathlib import Path

import chromium
import pytest

from cobre.report.document import write_report

EXAMPLE = Path(__file__).parents[2] / "examples" / "four_regions"


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    output = tmp_path_factory.mktemp("browser") / "output"
    command = [sys.executable, "-m", "cobre.cli", "run", EXAMPLE, "--output", output, "--iterations", "10"]
    done = subprocess.run([*command, "--workers", "2"], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return write_report(output)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    assert chromium.executable(), "these tests need Chromium: `make test-browser` installs Debian's when it is missing"
    with chromium.open_browser(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture
def tab(browser, report):
    """Return a tab with the report freshly opened, in a wide window and light colours."""
    browser.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.open(report)
    browser.until('document.getElementById("explorer").dataset.shown')  # nothing moves from here on
    return browser

"""Settings of all tests."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Tests prepare their studies by computing, unless they are about what is kept.
os.environ["COBRE_CACHE_DIR"] = "off"

# No test depends on how fast the machine is.
settings.register_profile("any machine", deadline=None)
settings.register_profile("read-only checkout", parent=settings.get_profile("any machine"), database=None)
IS_WRITABLE = os.access(Path(__file__).resolve().parents[1], os.W_OK)
settings.load_profile("any machine" if IS_WRITABLE else "read-only checkout")

# A shell lets its background jobs ignore Ctrl-C, and what they start inherits that; many tests send it.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)


def pytest_configure(config):
    """Ignore the warning of an unwritable cache in a checkout of another user: here, warnings are errors."""
    if not IS_WRITABLE:
        config.addinivalue_line("filterwarnings", "ignore::pytest.PytestCacheWarning")


@pytest.fixture(autouse=True)
def no_study_outlives_its_test():
    yield
    if studies := sys.modules.get("studies"):  # where the test has started any
        studies.end_started()

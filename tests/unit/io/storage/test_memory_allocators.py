"""Allocators of the C library and of Arrow."""

import subprocess
import sys

import pyarrow as pa
import pytest

from cobre.io.storage.arrow_columns import system_allocator


def test_arrow_uses_the_system_allocator_inside_the_block_only():
    default = pa.default_memory_pool().backend_name
    with system_allocator():
        assert pa.default_memory_pool().backend_name == "system"
    assert pa.default_memory_pool().backend_name == default


def test_arrow_gets_its_allocator_back_after_an_error():
    default = pa.default_memory_pool().backend_name
    with pytest.raises(ValueError, match="damaged"), system_allocator():
        raise ValueError("damaged")
    assert pa.default_memory_pool().backend_name == default


@pytest.mark.parametrize("given", [None, "30"])
def test_idle_threads_of_openblas_sleep_soon_unless_the_user_says_otherwise(given, monkeypatch):
    name = "OPENBLAS_THREAD_TIMEOUT"
    if given is None:
        monkeypatch.delenv(name, raising=False)
    else:
        monkeypatch.setenv(name, given)
    code = f"import os, sys, cobre; print(os.environ[{name!r}], 'numpy' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split() == [given or "18", "False"]

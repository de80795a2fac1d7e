"""The heap while a study is prepared."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import re
from cobre.study.preparation.on_ranks import HEAP_BYTES, roomy_heap

def bytes_in_huge_pages():
    with open("/proc/self/smaps") as file:
        mappings = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", file.read(), flags=re.MULTILINE)
    found = [each for each in mappings if "[heap]" in each and re.search("^VmFlags:.* hg", each, re.MULTILINE)]
    return sum(1024 * int(re.search("^Size: +([0-9]+)", each, re.MULTILINE)[1]) for each in found)

before = bytes_in_huge_pages()
with roomy_heap():
    first = bytes_in_huge_pages()
with roomy_heap():
    pass
print(before == 0, first >= HEAP_BYTES)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have a heap of another kind")
def test_heap_has_room_in_huge_pages_while_a_study_is_prepared():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]

"""Slurm's host lists are expanded to names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobre.launchfiles.settings import HostListError, hosts


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu1", ["gpu1"]),
        ("node[01-04,7],gpu1", ["node01", "node02", "node03", "node04", "node7", "gpu1"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("rack[0-1]-node[1-2]", ["rack0-node1", "rack0-node2", "rack1-node1", "rack1-node2"]),
        ("a[1-2].cluster.example,b-3", ["a1.cluster.example", "a2.cluster.example", "b-3"]),
        ("10.0.0.[1-2]", ["10.0.0.1", "10.0.0.2"]),
        ("[1-2]n", ["1n", "2n"]),
    ],
)
def test_host_lists_are_expanded(text, names):
    assert list(hosts(text)) == names


@pytest.mark.parametrize(
    "text",
    ["", ",", "a,", ",a", "a,,b", "a[", "a]", "a[1", "a[]", "a[x]", "a[3-1]", "a[1-]", "a[1,,2]", "a[1-2-3]", "a[[1]]"],
)
def test_malformed_host_list_raises(text):
    with pytest.raises(HostListError, match=r"host list|range"):
        list(hosts(text))


def test_very_long_range_raises():
    with pytest.raises(HostListError, match="at most 100000 numbers"):
        list(hosts("n[0-99999999999]"))


@given(st.integers(0, 500), st.integers(0, 50), st.integers(1, 5))
def test_range_includes_both_ends(first, more, width):
    text = f"n[{first:0{width}d}-{first + more}]"
    assert list(hosts(text)) == [
        f"n{number:0{max(width, len(str(first)))}d}" for number in range(first, first + more + 1)
    ]

"""Usable cores from affinity masks and cgroup quotas."""

import os

import pytest

from cobre.comm.cores import cgroup_quota, usable_cores


def test_usable_cores_respect_the_affinity_mask():
    everything = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(everything)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, everything)


@pytest.mark.parametrize("limit,expected", [("max 100000", None), ("150000 100000", 1.5), ("50000 100000", 0.5)])
def test_cgroup_v2_quota_is_read(tmp_path, limit, expected):
    group = tmp_path / "a" / "b"
    group.mkdir(parents=True)
    (group / "cpu.max").write_text(limit + "\n")
    membership = tmp_path / "cgroup"
    membership.write_text("0::/a/b\n")
    assert cgroup_quota(tmp_path, membership) == expected


def test_smallest_quota_of_parent_cgroups_applies(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "cpu.max").write_text("200000 100000\n")
    (tmp_path / "a" / "b" / "cpu.max").write_text("max 100000\n")
    membership = tmp_path / "cgroup"
    membership.write_text("0::/a/b\n")
    assert cgroup_quota(tmp_path, membership) == 2.0


def test_cgroup_v1_quota_is_read(tmp_path):
    group = tmp_path / "cpu" / "docker" / "x"
    group.mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text("300000\n")
    (group / "cpu.cfs_period_us").write_text("100000\n")
    membership = tmp_path / "cgroup"
    membership.write_text("4:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n")
    assert cgroup_quota(tmp_path, membership) == 3.0


def test_no_limit_without_cgroups(tmp_path):
    assert cgroup_quota(tmp_path, tmp_path / "missing") is None

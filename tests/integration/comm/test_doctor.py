"""The doctor on this machine, in a terminal of 80 columns."""

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from fault_plans.plan import NotPermittedError
from fault_plans.shm_plans import small_shm
from processes import printed, run_python

import cobre
from cobre.comm import machine
from cobre.comm.cores import memory_limit_bytes
from cobre.comm.doctor import as_json, as_text, check_mpi, diagnose, try_launched
from cobre.comm.machine import (
    BackendStatus,
    Diagnosis,
    MachineFact,
    MpiLibrary,
    _shared_memory,
    describe_mpi,
    inspect_network,
    loopback_problem,
    resolve,
    run_limited,
)


@pytest.fixture(scope="module")
def diagnosis():
    return diagnose()


def status(diagnosis, backend):
    (match,) = [status for status in diagnosis.backends if status.backend == backend]
    return match


def finding(findings, name):
    (match,) = [finding for finding in findings if finding.name == name]
    return match


def test_local_shm_and_tcp_are_usable(diagnosis):
    assert [status.backend for status in diagnosis.backends] == ["local", "shm", "tcp", "mpi"]
    for backend in ("local", "shm", "tcp"):
        assert status(diagnosis, backend).is_usable, status(diagnosis, backend)
    assert diagnosis.is_healthy


def test_version_is_reported(diagnosis):
    (packages,) = [one for findings in diagnosis.sections.values() for one in findings if one.name == "packages"]
    assert packages.text.startswith(f"pycobre {cobre.__version__}, numpy {np.__version__}")


def test_everything_fits_into_80_columns(diagnosis):
    lines = as_text(diagnosis).splitlines()
    assert lines[0] == "Backends"
    # Only text to be copied, such as a path, may be longer.
    assert all(len(line) <= 80 or len(line.split()) <= 2 for line in lines)


def test_json_output_and_exit_code_reflect_health():
    code, out, err = run_python("-m", "cobre.comm.doctor", "--json")
    report = json.loads(out)
    assert (code, report["healthy"], printed(err)) == (0, True, [])
    assert {status["backend"] for status in report["backends"]} == {"local", "shm", "tcp", "mpi"}
    assert set(report["sections"]) == {"Machine", "Network", "MPI"}


def test_missing_shm_is_unhealthy():
    statuses = [BackendStatus("local", True, ""), BackendStatus("shm", False, "no space", "make some")]
    sick = Diagnosis(statuses, MachineFact("local", "because"), {})
    assert not sick.is_healthy
    assert json.loads(as_json(sick))["healthy"] is False
    assert "  shm          not usable: no space\n               -> make some" in as_text(sick)


def test_failed_trial_reports_the_reason():
    assert "COBRE_SHM_WAIT" in try_launched("shm", options={"COBRE_SHM_WAIT": "patience"}).problem
    assert "one rank" in try_launched("local", size=2).problem


def test_wrong_selection_is_reported(monkeypatch):
    from cobre.comm.doctor import selected_backend

    monkeypatch.setenv("COBRE_COMM_BACKEND", "carrier-pigeon")
    assert "carrier-pigeon" in selected_backend().text
    monkeypatch.setenv("COBRE_COMM_BACKEND", "local")
    assert selected_backend().name == "local"


def test_missing_mpi_names_the_commands_that_install_it():
    result = check_mpi(MpiLibrary(problem="mpi4py is not installed"))
    assert not result.is_usable
    assert "pip install 'pycobre[hpc]'" in result.advice
    assert finding(describe_mpi(MpiLibrary(problem="x"), {}), "mpiexec").advice.startswith("pip install")


def test_launchers_are_recognised():
    started = describe_mpi(MpiLibrary(), {"PMI_RANK": "1", "PMI_SIZE": "4"})
    assert "rank 1, PMI_SIZE=4" in finding(started, "launcher").text
    alone = describe_mpi(MpiLibrary(), {"SLURM_PROCID": "0"})
    assert "SLURM_PROCID is set" in finding(alone, "launcher").text


def test_commands_that_hang_are_killed():
    code, text = run_limited(["sleep", "600"], 0.2)
    assert (code, text) == (1, "no reply within 0.2 s")


def test_secret_is_checked_and_never_shown(tmp_path):
    file = tmp_path / "secret"
    file.write_text("correct horse battery staple")
    file.chmod(0o644)
    result = finding(inspect_network({"COBRE_TCP_SECRET_FILE": str(file)}), "secret")
    assert "chmod 600" in result.text
    file.chmod(0o600)
    result = finding(inspect_network({"COBRE_TCP_SECRET_FILE": str(file)}), "secret")
    assert "readable, and not by other users" in result.text
    result = finding(inspect_network({"COBRE_TCP_SECRET": "correct horse battery staple"}), "secret")
    assert "COBRE_TCP_SECRET_FILE is safer" in result.advice
    assert "horse" not in result.text + result.advice


@pytest.mark.parametrize("address", ["localhost", "localhost:4000", "[::1]:4000", "127.0.0.1"])
def test_coordinator_is_looked_up(address):
    result = finding(inspect_network({"COBRE_TCP_COORDINATOR": address}), "coordinator")
    assert " resolves to " in result.text


def test_bare_ipv6_address_is_a_host():
    result = finding(inspect_network({"COBRE_TCP_COORDINATOR": "::1"}), "coordinator")
    assert result.text == "::1 resolves to ::1"


def test_address_that_ranks_reject_is_reported():
    result = finding(inspect_network({"COBRE_TCP_COORDINATOR": "node07:http"}), "coordinator")
    assert "COBRE_TCP_COORDINATOR='node07:http' is not a valid address" in result.text and result.advice


def test_names_and_addresses_are_resolved():
    assert resolve("127.0.0.1") == ["127.0.0.1"]
    assert resolve("no such host!") == []
    assert loopback_problem("127.0.0.1") == ""


@pytest.mark.parametrize(("content", "limit"), [("1073741824", 1 << 30), ("max", None), ("9223372036854771712", None)])
def test_cgroup_memory_limits_are_read(tmp_path, content, limit):
    membership = tmp_path / "cgroup"
    membership.write_text("0::/pod/job\n")
    (tmp_path / "pod" / "job").mkdir(parents=True)
    (tmp_path / "pod" / "memory.max").write_text(f"{content}\n")
    assert memory_limit_bytes(tmp_path, membership) == limit


def test_secret_in_a_pipe_is_not_read():
    reading, writing = os.pipe()
    result = finding(inspect_network({"COBRE_TCP_SECRET_FILE": f"/dev/fd/{reading}"}), "secret")
    os.close(reading)
    os.close(writing)
    assert "is a pipe, which can be read only once" in result.text
    result = finding(inspect_network({"COBRE_TCP_SECRET_FILE": "/no/such/file"}), "secret")
    assert "No such file" in result.text


def test_name_server_that_does_not_reply_is_reported(monkeypatch):
    replies = threading.Event()
    monkeypatch.setattr(machine, "_addresses", lambda _: [str(replies.wait(100))])
    monkeypatch.setattr(machine, "LOOKUP_LIMIT_S", 0.1)
    result = finding(inspect_network({"COBRE_TCP_COORDINATOR": "no-such-host.invalid"}), "coordinator")
    replies.set()
    assert "no reply within 0.1 s" in result.text and "the name server is slow" in result.advice


def test_shared_memory_that_is_not_mounted_is_reported(tmp_path):
    result = _shared_memory(tmp_path / "none")
    assert "not available (No such file or directory)" in result.text and "backend shm needs it" in result.advice


def diagnosis_within(prefix):
    command = [*prefix, sys.executable, "-m", "cobre.comm.doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    result = json.loads(done.stdout)
    return done.returncode, {status["backend"]: status for status in result["backends"]}, result["sections"]


def test_full_dev_shm_makes_shm_unusable():
    try:
        with small_shm(1) as prefix:
            code, backends, _ = diagnosis_within(prefix)
    except NotPermittedError as error:
        pytest.skip(str(error))
    assert (code, backends["shm"]["is_usable"], backends["local"]["is_usable"]) == (1, False, True)
    assert "MiB free" in backends["shm"]["reason"] and "--shm-size" in backends["shm"]["reason"]


@pytest.mark.skipif(os.geteuid() != 0, reason="a network of its own needs root")
def test_missing_loopback_makes_tcp_unusable():
    _, backends, sections = diagnosis_within(("unshare", "--net"))
    assert not backends["tcp"]["is_usable"] and backends["shm"]["is_usable"]
    (loopback,) = [entry for entry in sections["Network"] if entry["name"] == "loopback"]
    assert "cannot connect" in loopback["text"] and "ip link set lo up" in loopback["advice"]

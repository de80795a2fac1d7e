"""Studies that are stopped, resumed or killed, or that outlive the server."""

import os
import signal

import pytest

pytest.importorskip("mcp.server")

from assistant import CASE, ToolFailedError, assistant
from processes import is_alive, wait_until_gone

import cobre
from cobre.runs.run_state import is_in_use

pytestmark = pytest.mark.long

ENDLESS = 100_000


def test_stopped_study_resumes(server, studies):
    job = server.start("stopped", iterations=ENDLESS, workers=2)["job"]
    server.iterating(job)
    with pytest.raises(ToolFailedError, match="no result: it is running"):
        server.study_result(job=job)
    with pytest.raises(ToolFailedError, match="is running in"):
        server.start_study(case="case", output="stopped", overwrite=True)

    server.stop_study(job=job)
    status = server.finished(job)
    done = server.study_result(job=job)["iterations"]
    server.start("stopped", iterations=done + 2, resume=True)

    assert status["state"] == "stopped"
    assert server.finished(job)["state"] == "finished"
    resumed = server.study_result(job=job)
    assert resumed["iterations"] == done + 2
    assert resumed["digest"] == cobre.train(CASE, iterations=done + 2).digest
    with pytest.raises(ToolFailedError, match="no study is running"):
        server.stop_study(job=job)


def test_study_stops_immediately_on_request(server, studies):
    started = server.start("at-once", iterations=ENDLESS, workers=2)
    server.iterating("at-once")

    server.stop_study(job="at-once", at_once=True)

    assert server.finished("at-once")["state"] in ("failed", "killed", "stopped")
    wait_until_gone([started["pid"]])


def test_killed_study_is_reported_as_killed(server):
    started = server.start("killed", iterations=ENDLESS)
    server.iterating("killed")

    os.kill(started["pid"], signal.SIGKILL)

    status = server.finished("killed")
    assert status["state"] == "killed"
    assert status["last_iteration"]["iteration"] >= 1


def test_study_outlives_the_server_and_another_server_stops_it(studies):
    with assistant(studies, options=("--max-studies", "1")) as first:
        job = first.start("outlives", iterations=ENDLESS, workers=2)
        with pytest.raises(ToolFailedError, match="1 studies are running already"):
            first.start("one-too-many")
        first.iterating("outlives")

    assert is_alive(job["pid"])
    with assistant(studies) as second:
        second.stop_study(job="outlives")
        assert second.finished("outlives")["state"] == "stopped"
    wait_until_gone([job["pid"]])
    assert not is_in_use(studies / "outlives")

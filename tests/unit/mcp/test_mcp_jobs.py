"""Requests rejected before a study is started, and the command line of a run."""

import pytest
from pydantic import TypeAdapter

from cobre.comm.cores import usable_cores
from cobre.limits import MAX_COUNT, MAX_THREADS
from cobre.mcp.jobs import JobError, Jobs, StudyRequest
from cobre.mcp.tools import Tools
from cobre.study.output.output_lock import output_lock
from cobre.study.output.previous_run import OutputHoldsRunError
from cobre.study.placement import WorldRequest


@pytest.fixture
def case(tmp_path):
    folder = tmp_path / "case"
    folder.mkdir()
    return folder


def test_command_line_carries_the_request(case, tmp_path):
    request = StudyRequest(
        case, tmp_path / "out", iterations=7, world=WorldRequest(workers=2), resume=True, time_limit_s=1.5
    )

    command = request.command()

    assert command[command.index("cobre.cli") :] == [
        *("cobre.cli", "run", "--output", str(tmp_path / "out"), "--iterations", "7", "--workers", "2"),
        *("--backend", "auto", "--time-limit", "1.5", "--json", "--resume", str(case)),
    ]


def test_rejects_more_studies_than_limit(case, tmp_path):
    jobs = Jobs(max_studies=1)
    jobs.start(StudyRequest(case, tmp_path / "first"))  # an empty case: it ends by itself, once it has been imported
    with pytest.raises(JobError, match="1 studies are running already"):
        jobs.start(StudyRequest(case, tmp_path / "second"))
    jobs.wait(tmp_path / "first", 60.0)


def test_rejects_output_in_use(case, tmp_path):
    with output_lock(tmp_path / "out"), pytest.raises(JobError, match="is running in"):
        Jobs().start(StudyRequest(case, tmp_path / "out"))


@pytest.mark.parametrize("place", [".", "case"])
def test_rejects_case_directory_as_output(case, tmp_path, place):
    with pytest.raises(JobError, match="is the case directory"):
        Jobs().start(StudyRequest(case, (tmp_path / place).resolve(), overwrite=True))


def test_rejects_output_with_foreign_files(case, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("")

    with pytest.raises(JobError, match="files other than results"):
        Jobs().start(StudyRequest(case, tmp_path / "out", overwrite=True))


def test_rejects_file_as_output(case, tmp_path):
    (tmp_path / "out").write_text("")

    with pytest.raises(JobError, match="is a file"):
        Jobs().start(StudyRequest(case, tmp_path / "out"))


def test_rejects_existing_results_without_overwrite(case, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "events.jsonl").write_text("")

    with pytest.raises(JobError, match="resume or overwrite"):
        Jobs().start(StudyRequest(case, tmp_path / "out"))


def test_rejects_simulation_into_directory_of_training(case, tmp_path):
    for name in ("events.jsonl", "training/manifest.json"):
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text("")

    with pytest.raises(OutputHoldsRunError, match="holds a training run"):
        Jobs().start(StudyRequest(case, tmp_path / "out", policy=tmp_path / "policy", overwrite=True))


def test_numbers_have_the_limits_of_the_command_line():
    schema = TypeAdapter(Tools.start_study).json_schema()["properties"]
    assert schema["threads"]["anyOf"][0]["maximum"] == MAX_THREADS
    assert schema["iterations"]["anyOf"][0]["maximum"] == MAX_COUNT
    assert schema["time_limit_s"]["anyOf"][0]["minimum"] == 0


@pytest.mark.parametrize("name", ["workers", "threads"])
def test_rejects_more_workers_or_threads_than_limit(case, tmp_path, name):
    with pytest.raises(JobError, match="at most"):
        Jobs().start(StudyRequest(case, tmp_path / "out", world=WorldRequest(**{name: 4 * usable_cores() + 1})))


def test_stop_without_running_study_raises(tmp_path):
    with pytest.raises(JobError, match="no study is running"):
        Jobs().stop(tmp_path)


def test_owner_elsewhere_or_unknown_is_not_signalled(tmp_path):
    with output_lock(tmp_path):
        for owner in ("pid 1 on localhost.elsewhere\n", "pid 1 on \n", "nonsense"):
            (tmp_path / "run.lock").write_text(owner)
            with pytest.raises(JobError, match="stop it"):
                Jobs().stop(tmp_path)

"""Tasks and results in the files between launcher and ranks."""

import linecache
import os
import sys

import pytest

from cobre.comm.launch.payload import (
    EMPTY,
    FAILURE,
    VALUE,
    FunctionTask,
    ResultReader,
    ResultWriter,
    ScriptTask,
    Startup,
    TaskReader,
    anonymous_file,
    write_task,
)


@pytest.fixture(params=["memfd", "temporary file"])
def file(request, monkeypatch):
    if request.param == "temporary file":
        monkeypatch.delattr(os, "memfd_create")
    with anonymous_file("cobre-test") as opened:
        yield opened


def test_two_readers_of_one_file_do_not_disturb_each_other(file):
    startup = Startup(["a"], ["b"], {})
    write_task(file, startup, FunctionTask(len, ("abc",)))
    first, second = TaskReader(file.fileno()), TaskReader(file.fileno())
    assert first.startup() == second.startup() == startup
    assert first.task() == second.task() == FunctionTask(len, ("abc",))


def test_closure_is_pickled_by_value(file):
    offset = 40
    write_task(file, Startup([], [], {}), FunctionTask(lambda x: x + offset, (2,)))
    reader = TaskReader(file.fileno())
    reader.startup()
    task = reader.task()
    assert task.function(*task.args) == 42


@pytest.mark.parametrize(
    ("task", "named"),
    [
        (FunctionTask(len, (1, sys._getframe())), r"argument 1 \(a frame\)"),
        (FunctionTask(len, (), {"table": sys._getframe()}), r"argument 'table' \(a frame\)"),
    ],
)
def test_error_names_unpicklable_argument(file, task, named):
    with pytest.raises(TypeError, match=named):
        write_task(file, Startup([], [], {}), task)


def test_error_names_unpicklable_function(file):
    frame = sys._getframe()

    def return_frame(comm):
        return frame

    with pytest.raises(TypeError, match=r"cannot pickle function .*return_frame to send it to the ranks: .*frame"):
        write_task(file, Startup([], [], {}), FunctionTask(return_frame))


def test_failed_write_leaves_result_empty(file):
    reader = ResultReader(file)
    assert reader.kind() == EMPTY
    writer = ResultWriter(reader.descriptor)
    with pytest.raises(TypeError, match=r"cannot pickle the return value \(a list\)"):
        writer.write_value([b"x" * 1_000_000, sys._getframe()])
    assert reader.kind() == EMPTY
    assert reader.failure() is None
    writer.write_value({"cost": 1.5})
    assert reader.kind() == VALUE
    assert reader.value() == {"cost": 1.5}


def test_failure_replaces_a_value(file):
    from cobre.comm.launch.payload import describe_failure

    reader = ResultReader(file)
    writer = ResultWriter(reader.descriptor)
    writer.write_value(list(range(100_000)))
    writer.write_failure(describe_failure(ValueError("late")))
    assert reader.kind() == FAILURE
    assert reader.failure().summary == "ValueError: late"


def test_rank_can_quote_code_that_is_in_no_file(monkeypatch):
    monkeypatch.setitem(linecache.cache, "<cell 1>", (6, None, ["1 / 0\n"], "<cell 1>"))
    startup = Startup.of_this_process()
    assert startup.sources["<cell 1>"] == ["1 / 0\n"]
    assert __file__ not in startup.sources
    monkeypatch.delitem(linecache.cache, "<cell 1>")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    startup.apply()
    linecache.checkcache()
    assert linecache.getline("<cell 1>", 1) == "1 / 0\n"


def test_payload_may_be_a_script(file):
    write_task(file, Startup([], ["train.py", "-x"], {}), ScriptTask("train.py"))
    reader = TaskReader(file.fileno())
    assert reader.startup().argv == ["train.py", "-x"]
    assert reader.task() == ScriptTask("train.py")

"""Watch real processes: the conditions that the launcher's tests wait for and check."""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

DEADLINE_S = 60
MARK = "COBRE_TEST_MARK"


def wait_until(condition, what):
    """Poll until the condition holds; return its value."""
    deadline = time.monotonic() + DEADLINE_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {DEADLINE_S} s in vain until {what}"
        time.sleep(0.01)
    return value


def is_alive(pid):
    """Return whether the process runs; one that is dead but not collected does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def wait_until_gone(pids):
    for pid in pids:
        wait_until(lambda pid=pid: not is_alive(pid), f"process {pid} has gone")


def wait_for_pids(folder, count):
    """Wait until `count` processes announce themselves as file names in the folder; return their pids."""
    wait_until(lambda: len(list(folder.iterdir())) >= count, f"{count} processes have announced themselves")
    return [int(path.name) for path in folder.iterdir()]


def start_python(*arguments, **options):
    """Start a Python process with captured output, in its own process group."""
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        **options,
    )


def finish(process, typed=None):
    """Return exit code, stdout and stderr; a process that does not end is killed and reported."""
    try:
        out, err = process.communicate(typed, timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"did not end: {process.communicate()}") from None
    return process.returncode, out, err


def run_python(*arguments, typed=None, **options):
    """Start a Python process and wait for its end."""
    stdin = subprocess.DEVNULL if typed is None else subprocess.PIPE
    return finish(start_python(*arguments, stdin=stdin, **options), typed)


def printed(text):
    """Return the lines, without the warning that a machine of one core gives whenever two ranks start."""
    return [line for line in text.splitlines() if "usable cores" not in line]


def marked_processes(mark):
    """Return the pids of living processes that inherited `COBRE_TEST_MARK=mark`."""
    pids = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (path / "environ").read_bytes() and is_alive(path.name):
                pids.append(int(path.name))
        except OSError:
            continue
    return pids


@contextlib.contextmanager
def leaving_nothing_behind():
    """Assert that descriptors, children and shared memory are the same before and after."""
    segments, descriptors, children = forgotten_segments(), open_descriptors(), own_children()
    yield
    assert open_descriptors() == descriptors
    assert own_children() <= children
    wait_until(lambda: forgotten_segments() <= segments, "the shared memory is as before")


def open_descriptors():
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def own_children():
    """Return the pids of processes started by this one, zombies included."""
    lists = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    return {int(pid) for text in lists for pid in text.split()}


def forgotten_segments():
    """Return names in shared memory that no living process uses; tests that run at the same time may use theirs."""
    there = {path.name for path in Path("/dev/shm").glob("cobre*")}
    mapped = "".join(_mappings()) if there else ""
    return {name for name in there if f"/dev/shm/{name}" not in mapped}


def _mappings():
    texts = []
    for path in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            texts.append(path.read_text())
    return texts

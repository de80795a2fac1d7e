"""Cases that crash or hang, run by test_kit_harness.py in a separate interpreter: `bad_worlds.main("crash")`."""

import json
import os

from cobre.comm.testing import harness
from cobre.comm.testing.case import case
from cobre.comm.testing.profiles import LOCAL, Variant

harness.CASE_LIMIT_S = 1.0  # ranks import this module too, because `run_cases` lives in it


@case("bad/crash", (1,))
def crash(comm, params):
    os._exit(17)


@case("bad/hang", (1,))
def hang(comm, params):
    while True:
        comm.barrier()


@case("bad/after", (1,))
def after(comm, params):
    return True


RUN_CASES = harness.run_cases


def run_cases(comm, *args):
    return RUN_CASES(comm, *args)


def main(what):
    harness.run_cases = run_cases
    setting = harness.CellSetting(LOCAL, Variant(), 1)
    results = harness.run_cells(setting, [setting.cell(f"bad/{what}"), setting.cell("bad/after")])
    print(json.dumps([result.to_json() for result in results]))

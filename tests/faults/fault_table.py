"""The fault table: dead, stopped, missing and misbehaving ranks, each with a deadline and a check for leaks.

    python tests/faults/fault_table.py --backend shm --variant futex
    python tests/faults/fault_table.py --backend tcp --variant star --ranks 2 --case 'faults/kill*'

The short form is `test_quick_fault_table.py`. Exit code: 0 if all cells passed; 1 if one failed, or if a full run
skipped one.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from fault_plans.plan import RANK_ENVIRONMENTS
from fault_plans.table import all_plans, run_plans

from cobre.comm.testing.__main__ import catalogue_line, command_line, selected_settings
from cobre.comm.testing.case import Depth
from cobre.comm.testing.report import run_and_print

PROGRAM = "python tests/faults/fault_table.py"
SIZES = (1, 2, 4)


def main() -> int:
    """Run the plans that the command line selects, on backends whose ranks can be started one by one."""
    parser = command_line(PROGRAM, __doc__)
    parser.add_argument("--list", action="store_true", help="list all plans with their clauses")
    options = parser.parse_args()
    if options.list:
        sys.stdout.write("".join(map(catalogue_line, all_plans().values())))
        return 0
    depth = Depth.QUICK if options.quick else Depth.FULL
    settings = [one for one in selected_settings(options, SIZES) if one.profile.name in RANK_ENVIRONMENTS]
    results = (result for setting in settings for result in run_plans(setting, depth, options.case))
    return run_and_print(results, complete=not options.quick, program=PROGRAM, json_file=options.json)


if __name__ == "__main__":
    sys.exit(main())

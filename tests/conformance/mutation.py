"""Mutation testing of the conformance kit: every wrong communicator must be rejected, and the control accepted.

    python tests/conformance/mutation.py --backend shm --variant futex
    python tests/conformance/mutation.py --backend shm --variant futex --case 'mutants/WrongRank:*'

The short form is `test_kit_mutants.py`. Exit code: 0 if all cells passed.
"""

import sys
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from mutant_trials import SIZE, run_control, run_trials

from cobre.comm.testing.__main__ import command_line, selected_settings
from cobre.comm.testing.report import run_and_print

PROGRAM = "python tests/conformance/mutation.py"


def main() -> int:
    """Run the control and all trials in each setting that has more than one rank."""
    options = command_line(PROGRAM, __doc__).parse_args()
    settings = [setting for setting in selected_settings(options, (SIZE,)) if setting.size > 1]
    results = chain.from_iterable(
        chain(run_control(one, options.case), run_trials(one, options.case)) for one in settings
    )
    return run_and_print(results, complete=True, program=PROGRAM, json_file=options.json)


if __name__ == "__main__":
    sys.exit(main())

"""`make torture`: kills, strangers and disagreements by the hundred; ends non-zero on any leak, hang or wrong bit.

About 20 minutes on two quiet cores at full scale; `--scale 0.1` does a tenth of it. With root rights it runs in a mount
namespace with a /dev/shm of its own, so that every name there is ours, and acts as another user of the machine, too.
"""

import argparse
import os
import sys
import time

from tally import print_table

PRIVATE = "COBRE_TORTURE_PRIVATE"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of trials")
    parser.add_argument("--seed", type=int, default=None, help="of all random choices; printed, to try again")
    parser.add_argument("--only", action="append", choices=("kills", "launched", "protocol", "resumes"), default=[])
    options = parser.parse_args()
    if os.geteuid() == 0 and PRIVATE not in os.environ:
        mount = 'mount -t tmpfs -o size=2g,mode=1777 tmpfs /dev/shm && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", mount, "sh", sys.executable, *sys.argv]
        os.execvpe(
            command[0], command, os.environ | {PRIVATE: "1"}
        )  # one process: Ctrl-C reaches the process that has the table
    sys.exit(_torture(options))


def _torture(options):
    seed = options.seed if options.seed is not None else int(time.time())
    print(f"seed {seed}, scale {options.scale}", flush=True)
    began, tallies = time.monotonic(), []
    try:
        for tally in _parts(options, seed):
            tallies.append(tally)
            print(f"{time.monotonic() - began:7.0f} s  {tally.summary}", flush=True)
    except KeyboardInterrupt:
        print_table(tallies)
        print("interrupted: this is what was done")
        return 130
    print_table(tallies)
    return 1 if any(tally.is_bad for tally in tallies) else 0


def _parts(options, seed):
    from kills import all_kills, all_launched_kills
    from protocol_trials import all_protocol_trials
    from resumes import killed_and_resumed

    parts = options.only or ["kills", "protocol", "resumes"]
    if "kills" in parts:
        yield from all_kills(options.scale, seed)
    elif "launched" in parts:
        yield from all_launched_kills(options.scale, seed)
    if "protocol" in parts:
        yield from all_protocol_trials(options.scale, seed)
    if "resumes" in parts:
        yield killed_and_resumed(max(1, round(60 * options.scale)), seed)


if __name__ == "__main__":
    main()

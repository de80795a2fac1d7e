"""`python -m cobre.cli` is the command `cobre`."""

from cobre.cli.main import main

if __name__ == "__main__":
    main(prog_name="cobre")

"""Every snippet of the documentation runs."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib

import click
import pytest
from snippets import ROOT, blocks, commands, has_snippets, pages, session

from cobre.cli.main import main

pytestmark = pytest.mark.long

WITH_SNIPPETS = [page for page in pages() if has_snippets(page)]
# Their commands need a published deck, cobre-bridge and the network; tests/integration/bridge/test_convert*.py run the
# conversions.
NEEDS_A_DECK = ("go-from-a-deck-to-a-report.md", "decomp-comparison.md", "simulations-beside-novomodelo.md")
SHELL_ONLY = (
    "make",
    "docker",
    "kubectl",
    "sbatch",
    "srun",
    "mpiexec",
    "module",
    "python3",
    "pip",
    ".",
    "mkdir",
    "export",
)
DEADLINE_S = 240


@pytest.fixture
def folder(tmp_path):
    """Return a reader's folder: the examples, with `cobre` and `python` on the path."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    tools = tmp_path / ".tools"
    tools.mkdir()
    # Programs may start others without passing their environment; these would find an installed package.
    imports = f"export PYTHONPATH='{os.environ['PYTHONPATH']}'\n" if "PYTHONPATH" in os.environ else ""
    for name, words in {"cobre": "-m cobre.cli", "python": "", "python3": ""}.items():
        (tools / name).write_text(f'#!/bin/sh\n{imports}exec "{sys.executable}" {words} "$@"\n')
        (tools / name).chmod(0o755)
    return tmp_path


@pytest.mark.timeout(DEADLINE_S + 30)
@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_of_page_run(page, folder):
    before = sorted(path.name for path in (ROOT / "examples").rglob("*"))
    environ = {**os.environ, "PATH": f"{folder / '.tools'}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", session(page)],
        check=False,
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert sorted(path.name for path in (ROOT / "examples").rglob("*")) == before, "a page writes into the examples"


def test_tutorials_and_how_tos_have_snippets():
    for page in pages():
        if page.parent.name in ("tutorials", "how-to") and page.name not in NEEDS_A_DECK:
            assert has_snippets(page), page


def test_block_languages_are_known():
    """Fail for blocks of other kinds, which would be skipped silently."""
    languages = {"python", "console", "sh", "text", "json", "toml"}
    for page in pages():
        for block in blocks(page):
            assert block.language in languages, f"{page}, line {block.line}: {block.language}"
            if block.language == "json":
                json.loads(block.text)
            if block.language == "toml":
                tomllib.loads(block.text)
            if block.language == "console":
                assert commands(block), f"{page}, line {block.line}: no command after a prompt"


def shell_blocks():
    return [(page, block) for page in pages() for block in blocks(page) if block.language == "sh"]


def test_sh_blocks_parse_as_shell():
    assert shell_blocks()
    for page, block in shell_blocks():
        done = subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True, check=False)
        assert done.returncode == 0, f"{page}, line {block.line}: {done.stderr}"
        for line in block.text.replace("\\\n", "").splitlines():
            first = re.sub(r"^(\w+=(\$\([^)]*\)|\S+) )+", "", line).split()[0]
            allowed = (
                (*SHELL_ONLY, "cobre", "cobre-bridge", "novomodelo-bridge", "python", "python3.12")
                if page.name in NEEDS_A_DECK
                else SHELL_ONLY
            )
            assert first in allowed, f"{page}, line {block.line}: {first} could run here: mark the block console"


def test_commands_in_snippets_exist():
    count = 0
    for page, block in shell_blocks():
        for words in our_commands(block.text):
            check_command(words, f"{page}, line {block.line}")
            count += 1
    assert count >= 2


def our_commands(text):
    for line in text.replace("\\\n", "").splitlines():
        words = shlex.split(line)
        is_build = words[:2] == ["docker", "build"]
        for number, word in enumerate(words):
            if word == "cobre" or (word.startswith("cobre:") and not is_build):  # the image is called as we are
                yield words[number + 1 :]


def check_command(words, where):
    """Assert that the subcommand exists and has the options used."""
    command, context = main, click.Context(main)
    while isinstance(command, click.Group):
        command = command.get_command(context, words[0])
        assert command is not None, f"{where}: there is no command cobre {words[0]}"
        words = words[1:]
    options = {name for parameter in command.params for name in parameter.opts}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options, where

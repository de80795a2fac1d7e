"""Files that a public forge reads: workflows, templates, citation, versions."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from manifests import ROOT

import cobre
from cobre.errors import DISTRIBUTION

FORGE = ROOT / ".github"
SCHEMAS = {
    "vendor.github-workflows": sorted((FORGE / "workflows").glob("*.yml")),
    "vendor.github-issue-forms": [FORGE / "ISSUE_TEMPLATE" / "bug.yml", FORGE / "ISSUE_TEMPLATE" / "wish.yml"],
    "vendor.github-issue-config": [FORGE / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}


@pytest.mark.parametrize("schema", sorted(SCHEMAS))
def test_forge_files_match_their_schemas(schema):
    files = SCHEMAS[schema]
    assert files
    command = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", schema, *files]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def targets_of(file):
    """Return the make targets that a workflow calls, those of a matrix included."""
    for job in yaml.safe_load(file.read_text())["jobs"].values():
        matrix_targets = job.get("strategy", {}).get("matrix", {}).get("target", [])
        for step in job["steps"]:
            yield from re.findall(r"\bmake ([a-z0-9-]+)", step.get("run", ""))
            if "make ${{ matrix.target }}" in step.get("run", ""):
                yield from matrix_targets


def test_workflows_call_targets_that_exist():
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {target for file in SCHEMAS["vendor.github-workflows"] for target in targets_of(file)}
    assert {"test", "conformance", "docs", "deploy-check", "package", "wheels"} <= called <= targets


def test_long_targets_run_nightly():
    nightly = {*targets_of(FORGE / "workflows" / "nightly.yml")}
    on_every_backend = {"conformance", "conformance-mpi", "determinism", "faults", "mpi", "torture"}
    assert on_every_backend | {"containers", "fuzz", "slurm", "test-browser", "test-long"} <= nightly


def test_every_job_has_a_time_limit():
    for file in SCHEMAS["vendor.github-workflows"]:
        for name, job in yaml.safe_load(file.read_text())["jobs"].items():
            assert "timeout-minutes" in job, f"{file.name}: {name}"


def test_all_files_have_the_same_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert project["version"] == citation["version"] == cobre.__version__
    assert project["license"] == citation["license"]


def test_changelog_keeps_its_form():
    """*Unreleased* is first, then this version with the date of its citation."""
    text = (ROOT / "CHANGELOG.md").read_text()
    released = str(yaml.safe_load((ROOT / "CITATION.cff").read_text())["date-released"])
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections[:2] == ["Unreleased", f"{cobre.__version__} - {released}"]
    headings = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert headings <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_extras_match_documented_profiles():
    """A plain install needs no MPI, `hpc` adds it, and `dev` has every extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert project["name"] == DISTRIBUTION == "pycobre"
    assert not any("mpi" in requirement for requirement in project["dependencies"])
    assert [requirement.split(">")[0] for requirement in extras["mpi"]] == ["mpi4py"]
    assert extras["hpc"] == ["pycobre[mpi]"]
    everything = set(re.fullmatch(r"pycobre\[(.*)\]", extras["dev"][0])[1].split(","))
    assert everything == set(extras) - {"dev", "mpi"}


def test_messages_name_our_distribution():
    files = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "README.md",
        *(ROOT / "deploy").iterdir(),
    ]
    names = [file for file in files if file.is_file() and re.search(r"(?<!py)cobre\[[a-z]+\]", file.read_text())]
    assert names == [ROOT / "docs" / "adr" / "0052-one-distribution.md"]

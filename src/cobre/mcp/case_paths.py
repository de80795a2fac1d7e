"""Paths that a case itself names: they too must stay inside the server's folders."""

from pathlib import Path

from cobre.io.config.file import read_config, with_paths_from
from cobre.io.decoding.json_documents import read_document
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import Problems
from cobre.mcp.roots import Roots


def check_case_paths(roots: Roots, case: Path, output: Path | None = None) -> None:
    """Refuse a case whose config.json reads or writes a policy outside; one that cannot be read is left to the run."""
    problems = Problems()
    found = read_config(read_document(case, CONFIG_FILE, problems), None, problems)
    if found is None:
        return
    policy = with_paths_from(case, found).policy
    if policy.boundary is not None:
        roots.check(Path(policy.boundary.path), f"policy.boundary.path of {case / CONFIG_FILE}")
    if output is not None:
        roots.check(output / policy.path, f"policy.path of {case / CONFIG_FILE} ({policy.path})")

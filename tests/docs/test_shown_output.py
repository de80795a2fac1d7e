"""Output shown on pages equals the output of the program."""

import subprocess
import sys

from snippets import DOCS, ROOT, blocks


def test_failed_stage_page_shows_real_output(tmp_path):
    shown = blocks(DOCS / "how-to" / "understand-a-failed-stage.md")
    [script] = [block.text for block in shown if block.language == "python"]
    [text] = [block.text for block in shown if block.language == "text"]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)
    options = ["--output", "failed", "--iterations", "3", "--workers", "1", "--no-report"]
    cobre = [sys.executable, "-m", "cobre.cli"]
    failed = subprocess.run([*cobre, "run", "broken_case", *options], check=False, cwd=tmp_path, capture_output=True)
    assert failed.returncode == 4
    done = subprocess.run([*cobre, "explain", "failed"], check=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == text

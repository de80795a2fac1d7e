"""The tool that compares a DECOMP deck with its official results: its parts on small files, then the real deck."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from peer import novomodelo_python
from published_data import DECKS

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "benchmarks" / "decomp_comparison.py"
sys.path.insert(0, str(PROGRAM.parent))

from cobre.bridge.archive import unpacked_deck  # noqa: E402
from decomp_comparison import official_costs, official_rows, summary  # noqa: E402

TABLE = """\
IPER;      Indice do periodo
-----;------;
IPER ; INO  ; ICEN ;IPAT ;  Dur   ;SIST;   Nome Sist   ;   CMO   ;
  -  ;   -  ;   -  ;  -  ;   h    ; -  ;       -       ;    -    ;
   1 ;    1 ;    1 ;   1 ;  28.00 ;  3 ; NE            ;    7.50 ;
   1 ;    1 ;    1 ;  -  ;   -    ;  3 ; NE            ;    5.25 ;
"""


def test_official_table_rows_are_read(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    block, stage = official_rows(tmp_path / "table.csv")
    assert (block["IPAT"], block["CMO"], stage["IPAT"], stage["CMO"]) == ("1", "7.50", "-", "5.25")
    assert stage["Nome Sist"] == "NE"


def test_report_costs_are_read(tmp_path):
    words = "   Custo total de operacao no estagio:"
    lines = [
        f"{words} 60.5 (1000 $)",
        f"{words} 60.1 (1000 $) (Atualizado para valor presente)",
        f"{words} 44.0 (1000 $)",
    ]
    (tmp_path / "relato.rv0").write_text("\n".join(lines))
    assert official_costs(tmp_path) == [60500.0, 44000.0]


def test_summary_lines_have_mean_and_worst_stage():
    official = {("hydro", 1, "N"): 10.0, ("hydro", 2, "N"): 20.0, ("hydro", 1, "only there"): 1.0}
    (line,) = summary(official, {("hydro", 1, "N"): 13.0, ("hydro", 2, "N"): 19.0}, 2)
    assert (line.official, line.ours, line.worst) == (15.0, 16.0, 3.0)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_may_2024_thermal_generation_and_costs_match_official_results(tmp_path):
    archive = DECKS / "decomp_2024_05_with_results.zip"
    if not archive.exists():
        pytest.skip(f"there is no deck {archive}")
    bridge = novomodelo_python()
    command = [sys.executable, PROGRAM, archive, "--bridge", bridge, "--output", tmp_path / "compared"]
    environ = {**os.environ, "COBRE_COMM_BACKEND": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1700, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    found = {
        (row["quantity"], row["entity"]): row
        for row in json.loads((tmp_path / "compared" / "comparison.json").read_text())
    }
    for subsystem in ("SE", "S", "NE", "N"):
        assert found["thermal", subsystem]["worst"] <= 0.01, "official numbers have two digits"
        assert found["other", subsystem]["worst"] <= 0.1
        assert found["marginal cost", subsystem]["worst"] <= 0.01
    assert found["cost", ""]["ours"] == pytest.approx(found["cost", ""]["official"], rel=1e-3)
    assert found["storage", "SE"]["ours"] == pytest.approx(found["storage", "SE"]["official"], rel=0.02)
    check_comparison_of_the_bridge(bridge, archive, tmp_path)


def check_comparison_of_the_bridge(bridge, archive, folder):
    """Let novomodelo-bridge compare our exported tables with the official ones, for every variable that it knows."""
    run, output = folder / "compared" / "run", folder / "compared" / "case" / "output"
    command = [sys.executable, "-m", "cobre.cli", "export", run, "--to", "novomodelo", "--output", output]
    subprocess.run([*map(str, command)], check=True, timeout=300)
    with unpacked_deck(archive) as deck:
        command = [bridge.with_name("novomodelo-bridge"), "compare", "decomp", deck, output, "--format", "json"]
        subprocess.run([*map(str, command), "--out-dir", str(folder / "bridge")], check=True, timeout=300)
    found = {entry["variable"]: entry for entry in json.loads((folder / "bridge" / "summary.json").read_text())}
    plants, weeks = 165, 5
    for name in ("storage_final_hm3", "turbined_m3s", "spillage_m3s", "outflow_m3s"):
        assert found[name]["count"] == plants * weeks
    assert {"generation_mw", "net_flow_mw", "spot_price", "earm_final_mwmes", "ena_mwmes"} <= set(found)
    assert found["deficit_mw"]["max_abs_diff"] == 0.0

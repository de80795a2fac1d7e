"""Two small studies, trained and simulated: B has one plant more than A."""

import json
import shutil
from pathlib import Path

from click.testing import CliRunner

from cobre.cli.main import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_reservoirs"
NEW_PLANT = "Peaker <new> & $5"


def run(case, output, *flags):
    arguments = ["run", str(case), "--output", str(output), "--backend", "local", "--quiet", "--no-report", *flags]
    done = CliRunner().invoke(main, [*arguments, "--iterations", "4"])
    assert done.exit_code == 0, done.output
    return output


def with_one_plant_more(folder):
    """Copy the example, with another cheap thermal plant on the first bus."""
    shutil.copytree(EXAMPLE, folder)
    path = folder / "system" / "thermals.json"
    content = json.loads(path.read_text())
    plants = content["thermals"]
    plants.append({**plants[0], "id": max(plant["id"] for plant in plants) + 1, "name": NEW_PLANT})
    path.write_text(json.dumps(content))
    return folder

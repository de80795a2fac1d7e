"""Screens for the documentation, from a real run: `python docs/make_screens.py OUTPUT_OF_A_RUN` (needs Chromium).

Writes docs/_static/screens: the live table while the run went on, the live view, the top of the report.
"""

import asyncio
import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from cobre.cli.run_table import run_table
from cobre.study.events import EVENT_FILE, read_events
from cobre.study.run_view import RunView
from cobre.tui.app import WatchApp

SCREENS = Path(__file__).parent / "_static" / "screens"
SHOWN = 0.6  # the part of the iterations that is done when the table is drawn
LIMIT_S = 30.0


def main(output: Path) -> None:
    """Draw all three."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    live_table(output)
    asyncio.run(live_view(output))
    for drawing in SCREENS.glob("*.svg"):  # fonts from elsewhere would make the site ask the network
        drawing.write_text(re.sub(r"@font-face \{.*?\}", "", drawing.read_text(), flags=re.DOTALL))
    report(output)


def live_table(output: Path) -> None:
    """As `cobre run` drew it in the middle of the run."""
    events = read_events(output)
    last = max(told.get("iteration", 0) for told in events)
    view = RunView()
    for told in events:
        view.take(told)
        if told["event"] == "iteration" and told["iteration"] >= SHOWN * last:
            break
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    console.print(run_table(view, 100, 30, float(told["time"])))
    console.save_svg(str(SCREENS / "terminal.svg"), title="cobre run")


async def live_view(output: Path) -> None:
    """`cobre top` on the finished run."""
    app = WatchApp(output)
    async with app.run_test(size=(120, 36)) as pilot:
        deadline = time.monotonic() + LIMIT_S
        while not (app.is_ready and app.view.finished) and time.monotonic() < deadline:
            await pilot.pause(0.05)
            app.look()
        await pilot.pause()
        app.save_screenshot("top.svg", str(SCREENS))


def report(output: Path) -> None:
    """The first screen of report.html."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        sys.exit("the picture of the report needs Chromium")
    with tempfile.TemporaryDirectory() as folder:
        picture = f"--screenshot={SCREENS / 'report.png'}"
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,1350"]
        page = (output / "report.html").resolve().as_uri()
        subprocess.run([browser, *flags, f"--user-data-dir={folder}", picture, page], check=True, capture_output=True)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if not (folder / EVENT_FILE).exists():
        sys.exit(f"{folder} is not the output directory of a run")
    main(folder)

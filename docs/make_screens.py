"""Screens for the documentation: `python docs/make_screens.py results` in the directory of the tutorial's study.

The study is that of docs/tutorials/first-study.md: `cobre init my_case`, `cobre run my_case --output results`. Writes
docs/_static/screens: the live table during the run, the live view, the top of the report, a plant. Needs Chromium.
"""

import asyncio
import base64
import io
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from cobre.cli.run_table import run_table
from cobre.core.file_names import EVENT_FILE
from cobre.runs.events import read_events
from cobre.runs.view import RunView
from cobre.tui.app import WatchApp

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
SCREENS = Path(__file__).parent / "_static" / "screens"
SHOWN = 0.6  # the part of the iterations that is done when the table is drawn
LIMIT_S = 30.0


def main(output: Path) -> None:
    """Draw all of them."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    live_table(output)
    asyncio.run(live_view(output))
    for drawing in SCREENS.glob("*.svg"):  # fonts from elsewhere would make the site ask the network
        drawing.write_text(re.sub(r"@font-face \{.*?\}", "", drawing.read_text(), flags=re.DOTALL))
    report(output)


def live_table(output: Path) -> None:
    """Draw the live table as it was in the middle of the run."""
    events = read_events(output)
    last = max(event.get("iteration", 0) for event in events)
    view = RunView()
    for event in events:
        view.take(event)
        if event["event"] == "iteration" and event["iteration"] >= SHOWN * last:
            break
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    console.print(run_table(view, 100, 30, float(event["time"])))
    console.save_svg(str(SCREENS / "terminal.svg"), title="cobre run")


async def live_view(output: Path) -> None:
    """Draw `cobre top` on the finished run."""
    app = WatchApp(output)
    async with app.run_test(size=(120, 36)) as pilot:
        deadline = time.monotonic() + LIMIT_S
        while not (app.is_ready and app.view.finished) and time.monotonic() < deadline:
            await pilot.pause(0.05)
            app.poll()
        await pilot.pause()
        app.save_screenshot("top.svg", str(SCREENS))


def report(output: Path) -> None:
    """Save pictures of the first screen of report.html and of one plant."""
    import chromium

    if chromium.executable() is None:
        sys.exit("pictures of the report need Chromium")
    with tempfile.TemporaryDirectory() as profile, chromium.open_browser(profile) as tab:
        tab.open(output / "report.html", 1200, 1350)
        tab.until('document.getElementById("explorer").dataset.shown')
        save(tab, "report.png")
        tab.value('document.documentElement.style.scrollBehavior = "auto"; location.hash = "hydros-0"')
        tab.until('document.getElementById("explorer").dataset.shown === "hydros-0"')
        save(tab, "plant.png")


def save(tab: Any, name: str) -> None:
    """Save a screenshot of the tab."""
    tab.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    (SCREENS / name).write_bytes(base64.b64decode(tab.call("Page.captureScreenshot", format="png")["data"]))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if not (folder / EVENT_FILE).exists():
        sys.exit(f"{folder} is not the output directory of a run")
    main(folder)

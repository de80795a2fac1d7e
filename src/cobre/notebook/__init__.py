"""Progress in a notebook: a small table below the cell, updated at most every `REDRAW_S` seconds.

It is shown if this process is the kernel of a notebook and the caller passes no event listener. No other module
imports IPython.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cobre.runs.events import Event

REDRAW_S = 0.3


@contextmanager
def progress() -> Iterator["Callable[[Event], None]"]:
    """Yield a listener for the events of a run: a display in a notebook; elsewhere they are ignored."""
    display = _notebook_display()
    if display is None:
        yield lambda _: None
        return
    live = _LiveDisplay(display)
    try:
        yield live.emit
    finally:
        live.draw()


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook; a plain terminal of IPython is not."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _notebook_display() -> "Callable[[str], Callable[[str], None]] | None":
    """Return a function that displays HTML and returns its updater; None outside of a notebook."""
    if not is_notebook():
        return None

    page = import_module("IPython.display")

    def show(text: str) -> Callable[[str], None]:
        handle = page.display(page.HTML(text), display_id=True)
        return lambda new: handle.update(page.HTML(new))

    return show


def show_figures() -> None:
    """Let a notebook draw figures inline as SVG, unless a format has been chosen already."""
    if not is_notebook():
        return
    figure = import_module("matplotlib.figure").Figure
    shell = import_module("IPython").get_ipython()
    formatters = shell.display_formatter.formatters
    if not any(figure in formatters[kind].type_printers for kind in ("image/png", "image/svg+xml")):
        import_module("IPython.core.pylabtools").select_figure_formats(shell, {"svg"})


class _LiveDisplay:
    """The view of a run, and the display that shows it."""

    def __init__(self, display: Callable[[str], Callable[[str], None]]) -> None:
        from cobre.notebook.progress_html import progress_html
        from cobre.runs.view import RunView

        self._view = RunView()
        self._html = progress_html
        self._update = display(self._html(self._view))
        self._next_s = 0.0

    def emit(self, event: "Event") -> None:
        self._view.take(event)
        if (now_s := time.monotonic()) >= self._next_s:
            self._next_s = now_s + REDRAW_S
            self.draw()

    def draw(self) -> None:
        self._update(self._html(self._view))

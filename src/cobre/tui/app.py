"""The application of `cobre top`, which follows the events of a run."""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.events import Click, Key
from textual.screen import ModalScreen
from textual.widgets import Footer, RichLog, Static

from cobre.runs.events import Event, EventFollower
from cobre.runs.view import RunView
from cobre.tui.panels import BoundsPlot, event_line, figures, rank_timeline, status_line


class KeysScreen(ModalScreen[None]):
    """A help screen that lists the keys; any key or click closes it."""

    CSS = """
    KeysScreen { align: center middle; }
    #keys { width: auto; max-width: 100%; height: auto; max-height: 100%; border: round $primary; padding: 0 1; }
    """

    def __init__(self, bindings: Iterable[Binding]) -> None:
        super().__init__()
        self._listed = tuple(bindings)

    def compose(self) -> ComposeResult:
        """Return one line for each key."""
        text = Text("\n").join(_line(binding) for binding in self._listed)
        keys = Static(text.append("\n\nany key: back", style="dim"), id="keys")
        keys.border_title = "keys"
        yield keys

    def on_key(self, event: Key) -> None:
        """Close the screen on any key, which does nothing else."""
        event.stop()
        event.prevent_default()
        self.dismiss()

    def on_click(self, _: Click) -> None:
        """Close the screen."""
        self.dismiss()


def _line(binding: Binding) -> Text:
    return Text(f"{binding.key_display or binding.key}  ", style="bold").append(binding.tooltip, style="not bold")


INTERVAL_S = 0.5
MAX_LINES = 2000


class WatchApp(App[None]):
    """The application of `cobre top`, which follows the run in one output directory and never changes it."""

    TITLE = "cobre top"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-wide")]  # noqa: RUF012 - textual declares it so
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit", tooltip="Quit; the run continues"),
        Binding("z", "zoom", "Zoom", tooltip="Plot: without the first fifth, all iterations, the last 50"),
        Binding("g", "gap", "Gap", tooltip="Switch between bounds and gap"),
        Binding("i", "iterations", "Log", tooltip="Show or hide iterations in the log"),
        Binding("p", "pause", "Pause", tooltip="Pause or resume the display"),
        Binding("question_mark", "keys", "Keys", key_display="?", tooltip="Show this list"),
    ]
    CSS = """
    #status { height: 1; }
    #upper { height: 3fr; }
    #lower { height: 2fr; }
    #plot { width: 3fr; height: 1fr; }
    #figures-box, #ranks-box, #log {
        border: round $foreground 30%; border-title-color: $foreground 80%; padding: 0 1; scrollbar-size-vertical: 1;
    }
    #figures-box { width: 2fr; max-width: 46; }
    #ranks-box { width: 1fr; }
    #log { width: 1fr; overflow-x: hidden; }
    .-narrow #upper, .-narrow #lower { layout: vertical; }
    .-narrow #plot { height: 8; width: 1fr; }
    .-narrow #figures-box { width: 1fr; max-width: 100%; height: 1fr; border: none; padding: 0; }
    .-narrow #ranks-box { height: 1fr; border: none; padding: 0; }
    .-narrow #log { height: 1fr; border: none; padding: 0; }
    .-narrow.-short #plot { display: none; }
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.view = RunView()
        self.is_paused = False
        self.shows_iterations = True
        self._follower = EventFollower(folder)
        self._events: list[Event] = []
        self._log_width = 0

    def compose(self) -> ComposeResult:
        """Return status, plot and figures, ranks and log, keys."""
        yield Static(id="status")
        with Horizontal(id="upper"):
            yield BoundsPlot(id="plot")
            with VerticalScroll(id="figures-box"):
                yield Static(id="figures")
        with Horizontal(id="lower"):
            with VerticalScroll(id="ranks-box"):
                yield Static(id="ranks")
            yield RichLog(id="log", max_lines=MAX_LINES, wrap=True, min_width=0)
        footer = Footer()
        footer.compact = True
        yield footer

    def on_mount(self) -> None:
        """Label the boxes, poll at once, and then periodically."""
        self.query_one("#figures-box").border_title = "figures"
        self.query_one("#ranks-box").border_title = "ranks: busy in each iteration"
        self.query_one("#log").border_title = "log"
        self.call_after_refresh(self.poll)
        self.set_interval(INTERVAL_S, self.poll)

    @property
    def is_ready(self) -> bool:
        """Whether all widgets are mounted; resize events and timers may come before and after."""
        return len(self.query("#status, #plot, #figures-box, #ranks-box, #log")) == 5

    def poll(self) -> None:
        """Read new events and redraw; the plot is only redrawn if there are any."""
        if not self.is_ready:
            return
        if not self.is_paused:
            new_events = self._follower.read_new()
            if self._follower.has_restarted:
                self._reset()
            self._add_events(new_events)
        self._draw_text()

    def on_resize(self) -> None:
        """Redraw what depends on the width, after the new layout."""
        self.call_after_refresh(self._redraw)

    def _redraw(self) -> None:
        if not self.is_ready:
            return
        self._draw_text()
        self.query_one(BoundsPlot).replot()
        if self._lines().content_size.width != self._log_width:
            self._log_width = self._lines().content_size.width
            self._rewrite_log()

    def _rewrite_log(self) -> None:
        self._lines().clear()
        self._write(self._events)

    def action_zoom(self) -> None:
        """Show another range of iterations in the plot."""
        plot = self.query_one(BoundsPlot)
        plot.shown = plot.shown.next
        plot.replot()

    def action_gap(self) -> None:
        """Switch between bounds and gap."""
        plot = self.query_one(BoundsPlot)
        plot.shows_gap = not plot.shows_gap
        plot.replot()

    def action_iterations(self) -> None:
        """Show or hide the log lines of iterations."""
        self.shows_iterations = not self.shows_iterations
        self._rewrite_log()

    def action_pause(self) -> None:
        """Pause or resume the display."""
        self.is_paused = not self.is_paused
        self.poll()

    def action_keys(self) -> None:
        """Explain the keys until the next one is pressed."""
        self.push_screen(KeysScreen(binding for binding in self.BINDINGS if isinstance(binding, Binding)))

    def _add_events(self, new_events: list[Event]) -> None:
        if new_events:
            self.view.take_all(new_events)
            self._events = (self._events + new_events)[-MAX_LINES:]
            self._write(new_events[-MAX_LINES:])
            self.query_one(BoundsPlot).show(self.view)

    def _reset(self) -> None:
        """Clear the display, because another run has taken the directory."""
        self.view, self._events = RunView(), []
        self._lines().clear()

    def _draw_text(self) -> None:
        widths = {name: self.query_one(f"#{name}-box").scrollable_content_region.width for name in ("figures", "ranks")}
        state = self.view.state(self.folder)
        status = status_line(self.view, self.folder, state, self.size.width, is_paused=self.is_paused)
        self._static("status").update(status)
        self._static("figures").update(figures(self.view, state, widths["figures"]))
        self._static("ranks").update(rank_timeline(self.view, widths["ranks"]))

    def _write(self, events: list[Event]) -> None:
        for event in events:
            line = event_line(event)
            if line and (self.shows_iterations or event["event"] != "iteration"):
                self._lines().write(line)

    def _static(self, name: str) -> Static:
        return self.query_one(f"#{name}", Static)

    def _lines(self) -> RichLog:
        return self.query_one("#log", RichLog)


def watch(folder: Path) -> None:
    """Show the run in an output directory until the user quits."""
    WatchApp(folder).run()

"""What the keys do, over the view, until the next key."""

from collections.abc import Iterable

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.events import Click, Key
from textual.screen import ModalScreen
from textual.widgets import Static


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
        """One line for each key."""
        text = Text("\n").join(_line(binding) for binding in self._listed)
        keys = Static(text.append("\n\nany key: back", style="dim"), id="keys")
        keys.border_title = "keys"
        yield keys

    def on_key(self, event: Key) -> None:
        """Enough was seen; the key does nothing else."""
        event.stop()
        event.prevent_default()
        self.dismiss()

    def on_click(self, _: Click) -> None:
        """Close the screen."""
        self.dismiss()


def _line(binding: Binding) -> Text:
    return Text(f"{binding.key_display or binding.key}  ", style="bold").append(binding.tooltip, style="not bold")

"""Colours of charts: Okabe and Ito's, which people tell apart with any eyes, lighter ones on a dark page."""

from types import MappingProxyType

# What a chart is drawn with; in a page each becomes a variable of the style sheet, so that light and dark both work.
INK = "#1c2733"
MUTED = "#5b6875"
GRID = "#dfe4e9"
BLUE = "#0072b2"
ORANGE = "#e69f00"
GREEN = "#009e73"
VERMILLION = "#d55e00"
SKY = "#56b4e9"
PURPLE = "#cc79a7"

VARIABLES = MappingProxyType(
    {
        INK: "--ink",
        MUTED: "--muted",
        GRID: "--grid",
        BLUE: "--blue",
        ORANGE: "--orange",
        GREEN: "--green",
        VERMILLION: "--vermillion",
        SKY: "--sky",
        PURPLE: "--purple",
    }
)


def variable(colour: str) -> str:
    """As a style sheet writes it; the colour itself where the page has no such variable."""
    return f"var({VARIABLES[colour]},{colour})"

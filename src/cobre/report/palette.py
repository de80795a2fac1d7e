"""Colours of charts, after Okabe and Ito, darker on white paper and lighter on a dark page.

Each stands out from its background by 3:1 or more, and those that share a chart are told apart with any eyes.
"""

from types import MappingProxyType

# What a chart is drawn with; in a page each becomes a variable of the style sheet, so that light and dark both work.
INK = "#1c2733"
MUTED = "#5b6875"
GRID = "#dfe4e9"
PAPER = "#fefefe"
BLUE = "#0062a0"
ORANGE = "#c27d00"
GREEN = "#00906a"
VERMILLION = "#a83200"
SKY = "#3895cf"
PURPLE = "#84406b"
GREY = "#7c8894"

VARIABLES = MappingProxyType(
    {
        INK: "--ink",
        MUTED: "--muted",
        GRID: "--grid",
        PAPER: "--card",
        BLUE: "--blue",
        ORANGE: "--orange",
        GREEN: "--green",
        VERMILLION: "--vermillion",
        SKY: "--sky",
        PURPLE: "--purple",
        GREY: "--grey",
    }
)


def variable(colour: str) -> str:
    """A colour as a CSS variable; the colour itself where the page has no such variable."""
    return f"var({VARIABLES[colour]},{colour})"

"""Colours of charts, after Okabe and Ito: darker on a white background, lighter on a dark one.

Each has a contrast of 3:1 or more to its background; those of one chart are distinguishable with any colour vision.
"""

from types import MappingProxyType

# Colours of charts; in a page each is a CSS variable, so that light and dark modes both work.
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

"""Matplotlib figures as inline SVG for notebooks."""

import io
import re
import warnings
from html import escape
from typing import Any

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from cobre.report.canvas import house_style
from cobre.report.palette import VARIABLES, variable

_SIZE = re.compile(r' (?:width|height)="[^"]*pt"')
_STYLE = re.compile(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_COLOUR = re.compile("|".join(VARIABLES), re.IGNORECASE)
_NAME = re.compile(r'(\bid="|url\(#|href="#)')
_FONT = re.compile(r"'DejaVu Sans'")


def svg_of(figure: Figure, key: str, description: str) -> str:
    """The figure as SVG that scales with the page and takes its colours and font; its ids begin with `key`."""
    with house_style():
        stream = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)
        with warnings.catch_warnings():
            # Matplotlib only measures with its own font; the browser's font has these glyphs.
            warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
            canvas.print_svg(stream, metadata={"Date": None, "Creator": None})  # savefig would draw the figure twice
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = _STYLE.sub("", _METADATA.sub("", _SIZE.sub("", text)))
    text = _COLOUR.sub(lambda found: variable(found[0].lower()), text)
    text = _NAME.sub(lambda found: f"{found[0]}{key}-", text)
    text = _FONT.sub("var(--font, sans-serif)", text)
    label = escape(description, quote=True)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1).strip()

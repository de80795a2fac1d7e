"""Colours with enough contrast to their background and to each other, also for colour-blind readers."""

import re
from importlib import resources
from itertools import combinations

import numpy as np
import pytest

from cobre.report import charts

STYLE = resources.files("cobre.report").joinpath("static", "style.css").read_text(encoding="utf-8")
NAMES = ("blue", "orange", "green", "vermillion", "sky", "purple", "grey")
# Colours that stand next to each other in some chart: sources, phases of training, ranks, bounds.
TOGETHER = {("blue", "green", "orange", "vermillion"), ("blue", "orange", "green", "purple", "grey"), ("sky", "orange")}
# Matrices that simulate colour blindness in linear RGB (Machado, Oliveira and Fernandes, 2009).
EYES = {
    "all": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def blocks():
    """Return the variables of each block that sets all of them: light, dark, dark by the system, paper."""
    found = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+);", block)) for block in re.findall(r"\{([^{}]*)\}", STYLE)]
    return [block for block in found if "blue" in block]


def linear(colour):
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def simulated_colour(colour, eyes):
    """Convert a colour to CIE Lab, where equal distances look equally far apart."""
    shares = XYZ @ np.clip(np.array(EYES[eyes]) @ linear(colour), 0, 1) / [0.95047, 1.0, 1.08883]
    x, y, z = np.where(shares > 0.008856, np.cbrt(shares), 7.787 * shares + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_all_themes_define_all_colours():
    light, dark, dark_by_system, paper = blocks()
    assert dark == dark_by_system
    assert {name: light[name] for name in NAMES} == {name: paper[name] for name in NAMES}
    assert {name: light[name] for name in NAMES} == {name: getattr(charts, name.upper()) for name in NAMES}


@pytest.mark.parametrize("place", range(4))
def test_lines_and_bars_contrast_with_background(place):
    colours = blocks()[place]
    card = colours["card"] if len(colours["card"]) == 7 else "#ffffff"
    weak = {name: contrast(colours[name], card) for name in NAMES if contrast(colours[name], card) < 3.0}
    assert weak == {}


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("place", [0, 1])
def test_colours_of_one_chart_are_distinguishable(place, eyes):
    colours = blocks()[place]
    pairs = {pair for group in TOGETHER for pair in combinations(group, 2)}
    perceived = {name: simulated_colour(colour, eyes) for name, colour in colours.items()}
    near = {pair for pair in pairs if np.linalg.norm(perceived[pair[0]] - perceived[pair[1]]) < 15}
    assert not near

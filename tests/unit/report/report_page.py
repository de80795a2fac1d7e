"""Parser of reports for tests: text, elements and numbers."""

import json
import re
import zlib
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_reservoirs"
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """A parser that collects elements and raises on tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.attributes, self.open_tags, self.words = [], [], [], []
        self.feed(text)
        assert self.open_tags == []

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open_tags.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open_tags.pop() == tag

    def handle_data(self, data):
        if self.open_tags and self.open_tags[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def data_of(text):
    """Return the numbers behind everything on the page."""
    return json.loads(re.search(r'<script type="application/json" id="report-data">(.*?)</script>', text, re.DOTALL)[1])


def series(data, chart, name):
    found = data["charts"][chart]["series"]
    return next(entry["values"] for entry in found if entry["name"] == name)


def unpack(text):
    """Decode the numbers that `pack` encoded, as float32 with its rounding."""
    planes = np.frombuffer(zlib.decompress(b64decode(text)), np.uint8).reshape(3, -1).astype(np.uint32)
    return ((planes[0] << 24) | (planes[1] << 16) | (planes[2] << 8)).view(np.float32)


def explorer_values(data, kind, name, quantity):
    """Return, by statistic and scenario, the stages of one entity as the page unpacks them."""
    explorer = data["explorer"]
    entry = next(entry for entry in explorer["kinds"] if entry["key"] == kind)
    found = next(found for found in entry["quantities"] if found["key"] == quantity)
    place = entry["names"].index(name)
    at = place if found["entities"] is None else found["entities"].index(place)
    names = explorer["statistics"] + explorer["scenarios"]
    count = len(entry["names"] if found["entities"] is None else found["entities"])
    values = unpack(found["packed"]).reshape(count, len(names), len(entry["labels"]))
    return dict(zip(names, values[at], strict=True))

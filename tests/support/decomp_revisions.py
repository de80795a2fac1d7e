"""Later revisions and other months of a DECOMP deck, made from the first of its month, as published ones are.

Revision n of a month begins n weeks later: the weeks that have passed leave every record that has a stage, and the rest
is counted from the new first week. A record that is inherited by later stages moves to the first one that is left.
"""

import re
import shutil
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np

ENCODING = "latin-1"
POSTS = 320  # integers in a record of vazoes

# Columns of the stage, and those that say whose record it is: a later record of the same replaces an earlier one.
INHERITED = {
    "CT": (slice(24, 26), (slice(4, 7),)),
    "PQ": (slice(19, 21), (slice(4, 16),)),
    "IA": (slice(4, 6), (slice(9, 16),)),
    "CD": (slice(24, 26), (slice(4, 11),)),
    "LU": (slice(9, 11), (slice(4, 7),)),
    "LQ": (slice(9, 11), (slice(4, 7),)),
    "LV": (slice(9, 11), (slice(4, 7),)),
    "FU": (slice(9, 11), (slice(4, 7), slice(14, 17), slice(30, 32))),
    "FT": (slice(9, 11), (slice(4, 7), slice(14, 21))),
    "FI": (slice(9, 11), (slice(4, 7), slice(14, 21))),
    "CQ": (slice(9, 11), (slice(4, 7), slice(14, 17), slice(34, 38))),
    "CV": (slice(9, 11), (slice(4, 7), slice(14, 17), slice(34, 38))),
    "RI": (slice(8, 11), (slice(4, 7), slice(12, 15))),
    "TG": (slice(24, 26), (slice(4, 7),)),
}
OF_ONE_STAGE = {"DP": slice(4, 6), "HE": slice(25, 27), "GL": slice(14, 16)}
SPANS = {"RE", "HQ", "HV"}  # of restrictions: first and last stage
BY_STAGE = {"MP", "FD", "VE", "RQ", "TI"}  # a value of five characters for each stage, from column 9
FIRST_VALUE, VALUE_WIDTH = 9, 5


def revise(deck: Path, target: Path, weeks: int) -> Path:
    """Write the revision that begins a number of weeks later; `deck` is that of the month's first week (rv0)."""
    target.mkdir(parents=True)
    for path in sorted(deck.iterdir()):
        name = path.name.replace("rv0", f"rv{weeks}")
        if name.startswith("vazoes."):
            inflows = Inflows.read(path)
            inflows.forecasts -= weeks
            inflows.openings, inflows.probabilities = inflows.openings[weeks:], inflows.probabilities[weeks:]
            inflows.tables = [table[weeks:] for table in inflows.tables]
            inflows.write(target / name)
        elif name.startswith(("dadger.", "dadgnl.")):
            _write(target / name, _records(_read(path), weeks))
        elif name.startswith("renovaveis"):
            _write(target / name, _wind(_read(path), weeks))
        elif name in {"caso.dat", f"rv{weeks}"}:
            _write(target / name, [line.replace("rv0", f"rv{weeks}") for line in _read(path)])
        else:
            (target / name).write_bytes(path.read_bytes())
    return target


def _read(path: Path) -> list[str]:
    return path.read_text(encoding=ENCODING).splitlines()


def _write(path: Path, lines: list[str]) -> None:
    path.write_bytes("".join(f"{line}\r\n" for line in lines).encode(ENCODING))


def _records(lines: list[str], weeks: int) -> list[str]:
    last: dict[tuple[str, ...], int] = {}  # place of the record that the first stage inherits
    for at, line in enumerate(lines):
        if line[:2] in INHERITED and _stage(line) <= weeks + 1:
            last[_owner(line)] = at
    kept = set(last.values())
    return [moved for at, line in enumerate(lines) if (moved := _moved(line, weeks, at in kept)) is not None]


def _moved(line: str, weeks: int, is_inherited: bool) -> str | None:  # noqa: PLR0911  a rule for each kind
    kind = line[:2]
    if kind == "DT":
        day, month, year = map(int, line[2:].split())
        begin = date(year, month, day) + timedelta(weeks=weeks)
        return f"DT  {begin.day:2d}   {begin.month:2d}   {begin.year}"
    if kind in INHERITED:
        stage = 1 if is_inherited else _stage(line) - weeks
        return _with(line, INHERITED[kind][0], stage) if is_inherited or stage > 1 else None
    if kind in OF_ONE_STAGE:
        stage = int(line[OF_ONE_STAGE[kind]]) - weeks
        return _with(line, OF_ONE_STAGE[kind], stage) if stage > 0 else None
    if kind in SPANS:
        first, last = int(line[9:11]) - weeks, int(line[14:16]) - weeks
        return _with(_with(line, slice(9, 11), max(first, 1)), slice(14, 16), last) if last > 0 else None
    if kind in BY_STAGE:
        return line[:FIRST_VALUE] + line[FIRST_VALUE + VALUE_WIDTH * weeks :]
    if kind == "AC" and (found := re.search(r"([A-Z]{3})  (\d) (\d{4})\s*$", line)):
        return f"{line[: found.start(2)]}{max(int(found[2]) - weeks, 1)}{line[found.end(2) :]}"
    if kind == "GS" and line[2:8].split() == ["1"]:
        return f"GS   1   {int(line[8:].split(maxsplit=1)[0]) - weeks}"
    return line


def _stage(line: str) -> int:
    return int(line[INHERITED[line[:2]][0]])


def _owner(line: str) -> tuple[str, ...]:
    return line[:2], *(line[part] for part in INHERITED[line[:2]][1])


def _with(line: str, part: slice, value: int) -> str:
    return f"{line[: part.start]}{value:{part.stop - part.start}d}{line[part.stop :]}"


def _wind(lines: list[str], weeks: int) -> list[str]:
    kept = []
    for line in lines:
        fields = line.split(";")
        if fields[0].strip() in {"PEE-CONFIG-PER", "PEE-POT-INST-PER", "PEE-GER-PER-PAT-CEN"}:
            first, last = map(int, fields[2:4])
            if last <= weeks:
                continue
            fields[2:4] = [str(max(first - weeks, 1) if first > 1 else 1), str(last - weeks)]
        kept.append(";".join(fields))
    return kept


@dataclass
class Inflows:
    """A file vazoes: openings of each stage, their probabilities, and two tables with a row for each.

    forecasts: stages before the last, of one opening each. head, rest: records before and after these.
    """

    head: np.ndarray
    openings: list[int]
    forecasts: int
    probabilities: np.ndarray
    tables: list[np.ndarray]
    rest: np.ndarray

    @classmethod
    def read(cls, path: Path) -> "Inflows":
        records = np.frombuffer(path.read_bytes(), np.int32).reshape(-1, POSTS).copy()
        plants, stages = map(int, records[0, :2])
        openings = [int(count) for count in records[0, 2 : 2 + stages]]
        codes = 1 + -(-plants // POSTS)
        nodes = -(-sum(openings) // POSTS)
        probabilities = records[codes + 1 : codes + 1 + nodes].reshape(-1)[: sum(openings)]
        rows, left = sum(openings), records[codes + 1 + nodes :]
        tables = [left[:rows], left[rows : 2 * rows]]
        return cls(records[: codes + 1], openings, int(records[codes, 0]), probabilities, tables, left[2 * rows :])

    def write(self, path: Path) -> None:
        end = 2 + len(self.openings)
        self.head[0, 1:] = 0
        self.head[0, 1 : end + 2] = [len(self.openings), *self.openings, POSTS, 1]
        self.head[-1, 0] = self.forecasts
        nodes = np.zeros(-(-len(self.probabilities) // POSTS) * POSTS, np.int32)
        nodes[: len(self.probabilities)] = self.probabilities
        path.write_bytes(b"".join(part.tobytes() for part in (self.head, nodes, *self.tables, self.rest)))


MONTHS = ("JAN", "FEV", "MAR", "ABR", "MAI", "JUN", "JUL", "AGO", "SET", "OUT", "NOV", "DEZ")


def move(deck: Path, target: Path, weeks: int) -> Path:
    """Write the deck a number of weeks later or earlier, with as many stages: one of another month.

    The last stage ends with its month, so that its blocks become longer or shorter.
    """
    target.mkdir(parents=True)
    for path in sorted(deck.iterdir()):
        if path.name.startswith(("dadger.", "dadgnl.")):
            lines = [_dated(line, weeks) for line in _read(path)]
            _write(target / path.name, _with_last_month(lines) if path.name.startswith("dadger.") else lines)
        else:
            (target / path.name).write_bytes(path.read_bytes())
    return target


def _dated(line: str, weeks: int) -> str:
    if line.startswith("DT"):
        return _moved(line, weeks, is_inherited=False) or line
    if line.startswith("GL") and (found := re.search(r"\b(\d\d)(\d\d)(\d{4})\s*$", line)):
        begin = date(int(found[3]), int(found[2]), int(found[1])) + timedelta(weeks=weeks)
        return f"{line[: found.start(1)]}{begin:%d%m%Y}"
    if line.startswith("AC") and (found := re.search(r"([A-Z]{3})  (\d) (\d{4})\s*$", line)):
        middle = date(int(found[3]), MONTHS.index(found[1]) + 1, 15) + timedelta(weeks=weeks)
        return f"{line[: found.start(1)]}{MONTHS[middle.month - 1]}  {found[2]} {middle.year}"
    return line


def _with_last_month(lines: list[str]) -> list[str]:
    """Let the blocks of the last stage add up to the rest of its month."""
    day, month, year = map(int, next(line for line in lines if line.startswith("DT"))[2:].split())
    stages = max(int(line[4:6]) for line in lines if line.startswith("DP"))
    begin = date(year, month, day) + timedelta(weeks=stages - 1)
    end = (begin.replace(day=1) + timedelta(days=32)).replace(day=1)
    return [
        _with_hours(line, 24 * (end - begin).days) if line.startswith(f"DP  {stages:2d}") else line for line in lines
    ]


def _with_hours(line: str, total: int) -> str:
    places = [slice(29, 39), slice(49, 59), slice(69, 79)]
    hours = [float(line[place]) for place in places]
    scaled = [round(total * one / sum(hours)) for one in hours]
    scaled[-1] += total - sum(scaled)
    for place, one in zip(places, scaled, strict=True):
        line = f"{line[: place.start]}{float(one):10.1f}{line[place.stop :]}"
    return line


def add_week(deck: Path, target: Path) -> Path:
    """Write the deck with one week more, before its first and equal to it: months have four to six weeks."""
    target.mkdir(parents=True)
    for path in sorted(deck.iterdir()):
        if path.name.startswith("vazoes."):
            inflows = Inflows.read(path)
            inflows.forecasts += 1
            inflows.openings.insert(0, 1)
            inflows.probabilities = np.concatenate([inflows.probabilities[:1], inflows.probabilities])
            inflows.tables = [np.concatenate([table[:1], table]) for table in inflows.tables]
            inflows.write(target / path.name)
        elif path.name.startswith(("dadger.", "dadgnl.")):
            _write(target / path.name, [line for one in _read(path) for line in _after_a_week(one)])
        elif path.name.startswith("renovaveis"):
            _write(target / path.name, _wind(_read(path), -1))
        else:
            (target / path.name).write_bytes(path.read_bytes())
    return target


def _after_a_week(line: str) -> list[str]:
    """Return the record one stage later; that of the first stage applies to both, or is duplicated."""
    kind = line[:2]
    if kind in INHERITED:
        return [_with(line, INHERITED[kind][0], _stage(line) + 1) if _stage(line) > 1 else line]
    if kind in OF_ONE_STAGE:
        stage = int(line[OF_ONE_STAGE[kind]])
        later = _with(line, OF_ONE_STAGE[kind], stage + 1)
        return [_dated(line, -1), later] if stage == 1 else [later]
    if kind in SPANS:
        first, last = int(line[9:11]), int(line[14:16])
        return [_with(_with(line, slice(9, 11), first + (first > 1)), slice(14, 16), last + 1)]
    if kind in BY_STAGE:
        return [line[: FIRST_VALUE + VALUE_WIDTH] + line[FIRST_VALUE:]]
    if kind == "AC" and (found := re.search(r"([A-Z]{3})  (\d) (\d{4})\s*$", line)):
        return [f"{line[: found.start(2)]}{int(found[2]) + (int(found[2]) > 1)}{line[found.end(2) :]}"]
    return [_moved(line, -1, is_inherited=False) or line]


def with_openings(deck: Path, target: Path, openings: int) -> Path:
    """Write the deck with fewer openings of the last stage, equally probable."""
    shutil.copytree(deck, target)
    for wind in target.glob("renovaveis*"):
        _write(wind, [line for line in _read(wind) if _opening(line) <= openings])
    path = next(target.glob("vazoes.*"))
    inflows = Inflows.read(path)
    inflows.openings[-1] = openings
    inflows.tables = [table[: sum(inflows.openings)] for table in inflows.tables]
    equal = np.full(openings, 1.0 / openings, np.float32).view(np.int32)
    inflows.probabilities = np.concatenate([inflows.probabilities[: sum(inflows.openings[:-1])], equal])
    inflows.write(path)
    return target


def _opening(line: str) -> int:
    """Return the opening of a record of wind generation; 1 for other records."""
    fields = line.split(";")
    return int(fields[5]) if fields[0].strip() == "PEE-GER-PER-PAT-CEN" else 1

"""Later revisions of a DECOMP deck, made from the first of its month, as published ones are.

Revision n of a month begins n weeks later: the weeks that have passed leave every record that has a stage, and the rest
is counted from the new first week. A record that is inherited by later stages moves to the first one that is left.
"""

import re
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
            (target / name).write_bytes(_vazoes(path.read_bytes(), weeks))
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
            first, last = (int(field) - weeks for field in fields[2:4])
            if last < 1:
                continue
            fields[2:4] = [str(max(first, 1)), str(last)]
        kept.append(";".join(fields))
    return kept


def _vazoes(content: bytes, weeks: int) -> bytes:
    """Drop the first weeks of the inflows: openings by stage, probabilities, and the two tables of forecasts."""
    records = np.frombuffer(content, np.int32).reshape(-1, POSTS).copy()
    plants, stages = records[0, :2]
    openings = records[0, 2 : 2 + stages].copy()
    codes = 1 + -(-int(plants) // POSTS)
    forecasts = int(records[codes, 0])
    nodes = -(-int(openings.sum()) // POSTS)
    probabilities = records[codes + 1 : codes + 1 + nodes].reshape(-1)
    tables = records[codes + 1 + nodes :]
    stochastic = int(openings[forecasts:].sum())
    first, second = tables[: forecasts + stochastic], tables[forecasts + stochastic : 2 * (forecasts + stochastic)]
    records[0, 1] = stages - weeks
    records[0, 2 : 2 + stages] = 0
    records[0, 2 : 2 + stages - weeks] = openings[weeks:]
    records[codes, 0] = forecasts - weeks
    left = np.zeros(-(-int(openings[weeks:].sum()) // POSTS) * POSTS, np.int32)
    left[: openings[weeks:].sum()] = probabilities[weeks : openings.sum()]
    head = records[: codes + 1]
    rest = tables[2 * (forecasts + stochastic) :]
    return b"".join(part.tobytes() for part in (head, left, first[weeks:], second[weeks:], rest))

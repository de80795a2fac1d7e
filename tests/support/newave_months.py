"""NEWAVE decks of later months, made from a published one, as the publications of these months are.

The study begins a number of months later: what is dated before the new month leaves, limits that still hold begin with
it, and tables by year lose the years that have passed and get the years that follow, equal to the last. Storages, past
inflows and orders of gas stay as they are.
"""

import re
from collections.abc import Callable
from pathlib import Path

ENCODING = "latin-1"
YEARS_OF_TABLES = 5
YEAR_TABLES = {"sistema.dat", "c_adic.dat", "patamar.dat", "dsvagua.dat", "curva.dat", "cvar.dat"}
BLANKED_TABLES = {"sistema.dat": (7, 8), "c_adic.dat": (7, 8)}  # first column of January and width of a month
MODIFICATION = re.compile(r"^ (VMAXT|VMINT|VAZMINT|VAZMAXT|CFUGA|CMONT|TURBMAXT|TURBMINT) +(\d{1,2}) (\d{4})")
Month = tuple[int, int]  # year, month


def advance(deck: Path, target: Path, months: int) -> Path:
    """Write the deck of a later month."""
    target.mkdir(parents=True)
    general = _read(next(path for path in deck.iterdir() if path.name.lower() == "dger.dat"))
    begin = int(general[6][21:25]), int(general[5][21:25])
    start = _later(begin, months)
    edits: dict[str, Callable[[list[str]], list[str]]] = {
        "dger.dat": lambda lines: _general(lines, start),
        "modif.dat": lambda lines: _modifications(lines, start),
        "ghmin.dat": lambda lines: _inherited(lines, start, slice(0, 3), slice(5, 7), slice(8, 12)),
        "expt.dat": lambda lines: _spans(lines, start, 20),
        "agrint.dat": lambda lines: _spans(lines, start, 6),
        "clast.dat": lambda lines: _spans(lines, start, 17),
        "ree.dat": lambda lines: [_individual(line, months) for line in lines],
        "vazpast.dat": lambda lines: [_planned(line, start) for line in lines],
        "restricao-eletrica.csv": lambda lines: _restrictions(lines, months),
        "volumes-referencia.csv": lambda lines: _reference_volumes(lines, start[0] - begin[0]),
    }
    for path in sorted(deck.iterdir()):
        name = path.name.lower()
        if name in YEAR_TABLES:
            lines = _year_table(_read(path), start[0])
            if name in BLANKED_TABLES:
                lines = [_blanked(line, start, *BLANKED_TABLES[name]) for line in lines]
            _write(target / path.name, lines)
        elif name in edits:
            _write(target / path.name, edits[name](_read(path)))
        else:
            (target / path.name).write_bytes(path.read_bytes())
    return target


def _read(path: Path) -> list[str]:
    return path.read_text(encoding=ENCODING).splitlines()


def _write(path: Path, lines: list[str]) -> None:
    path.write_bytes("".join(f"{line}\r\n" for line in lines).encode(ENCODING))


def _later(month: Month, months: int) -> Month:
    year, at = divmod(month[0] * 12 + month[1] - 1 + months, 12)
    return year, at + 1


def _general(lines: list[str], start: Month) -> list[str]:
    values = {"MES INICIO DO ESTUDO": start[1], "ANO INICIO DO ESTUDO": start[0]}
    return [f"{line[:21]}{values[line[:21].strip()]:4d}" if line[:21].strip() in values else line for line in lines]


def _year_of(line: str) -> int | None:
    found = re.match(r" *(20\d\d)\b", line)
    return int(found[1]) if found else None


def _year_table(lines: list[str], first: int) -> list[str]:
    """Drop past years and repeat the last one, with the lines that belong to a year (those of the other blocks)."""
    kept: list[str] = []
    group: list[list[str]] = []  # the years of one table, each with its lines
    for line in [*lines, ""]:
        year = _year_of(line)
        if year is not None:
            if group and _year_of(group[-1][0]) != year - 1:
                kept += _followed(group, first)
                group = []
            group.append([line])
        elif group and re.match(r" +\d+\.\d{3,4}\b", line):
            group[-1].append(line)
        else:
            kept += _followed(group, first)
            group = []
            kept.append(line)
    return kept[:-1]


def _followed(group: list[list[str]], first: int) -> list[str]:
    if not group:
        return []
    last, lines = group[-1], [one for one in group if (_year_of(one[0]) or 0) >= first]
    end = _year_of(last[0]) or 0
    begin = max(_year_of(group[0][0]) or first, first)
    if end == (_year_of(group[0][0]) or 0) + YEARS_OF_TABLES - 1:
        following = range(end + 1, begin + YEARS_OF_TABLES)
        lines += [[last[0].replace(str(end), str(year), 1), *last[1:]] for year in following]
    return [line for one in lines for line in one]


def _blanked(line: str, start: Month, first: int, width: int) -> str:
    """Blank the months before the study, as published tables do."""
    if _year_of(line) != start[0]:
        return line
    end = first + width * (start[1] - 1)
    return f"{line[:first]}{' ' * (end - first)}{line[end:]}"


def _modifications(lines: list[str], start: Month) -> list[str]:
    kept: list[str] = []
    pending: dict[str, str] = {}  # the last record of each kind of a plant before the study
    for line in lines:
        found = MODIFICATION.match(line)
        if found and (int(found[3]), int(found[2])) <= start:
            pending[found[1]] = f"{line[: found.start(2)]}{start[1]:>{len(found[2])}d} {start[0]}{line[found.end(3) :]}"
            continue
        if pending and (found is None or found[1] not in pending or line.startswith(" USINA")):
            kept += pending.values()
            pending = {}
        elif found and found[1] in pending:
            kept.append(pending.pop(found[1]))
        kept.append(line)
    return [*kept, *pending.values()]


def _inherited(lines: list[str], start: Month, owner: slice, month: slice, year: slice) -> list[str]:
    dates = [_date(line, month, year) for line in lines]
    last = {line[owner]: at for at, line in enumerate(lines) if (date := dates[at]) and date <= start}
    kept = []
    for at, line in enumerate(lines):
        date = dates[at]
        if date is None or date > start:
            kept.append(line)
        elif last[line[owner]] == at:
            kept.append(_dated(line, month, year, start))
    return kept


def _date(line: str, month: slice, year: slice) -> Month | None:
    try:
        return int(line[year]), int(line[month])
    except ValueError:
        return None


def _dated(line: str, month: slice, year: slice, date: Month) -> str:
    line = f"{line[: month.start]}{date[1]:2d}{line[month.stop :]}"
    return f"{line[: year.start]}{date[0]:4d}{line[year.stop :]}"


def _spans(lines: list[str], start: Month, column: int) -> list[str]:
    """Keep records with a first and a last month ("MM AAAA MM AAAA", single or double spaces) that have not ended."""
    kept = []
    for line in lines:
        found = re.match(r" *(\d{1,2}) +(\d{4})(?:( +)(\d{1,2}) +(\d{4}))?(?= |$)", line[column:])
        if found is None:
            kept.append(line)
            continue
        begin = int(found[2]), int(found[1])
        if found[4] and (int(found[5]), int(found[4])) < start:
            continue
        text, end = f"{start[1]:2d} {start[0]}", column + found.end(2)
        kept.append(f"{line[: end - len(text)]}{text}{line[end:]}" if begin < start else line)
    return kept


def _individual(line: str, months: int) -> str:
    """Move the month after which plants are no longer individual."""
    found = re.match(r" +\d+ .{10} +\d+ +(\d{1,2}) (\d{4})$", line.rstrip())
    if found is None:
        return line
    year, month = _later((int(found[2]), int(found[1])), months)
    return f"{line[: found.end(2) - 7]}{month:2d} {year}"


def _planned(line: str, start: Month) -> str:
    return f"MESPLAN =   {start[1]:2d}     ANOPLAN = {start[0]}" if line.startswith("MESPLAN") else line


def _restrictions(lines: list[str], months: int) -> list[str]:
    """Move every month of the electrical restrictions, whose horizon is the individual period."""

    def moved(found: re.Match[str]) -> str:
        year, month = _later((int(found[1]), int(found[2])), months)
        return f"{year}/{month:02d}"

    return [line if line.startswith("&") else re.sub(r"\b(20\d\d)/(\d\d)\b", moved, line) for line in lines]


def _reference_volumes(lines: list[str], years: int) -> list[str]:
    """Repeat the last year of the monthly volumes."""
    last = max((found[1] for line in lines if (found := re.search(r";(\d{4})/\d\d;", line))), default="")
    of_last = [line for line in lines if last and f";{last}/" in line]
    return lines + [
        line.replace(f";{last}/", f";{int(last) + year}/") for year in range(1, years + 1) for line in of_last
    ]

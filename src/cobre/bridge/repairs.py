"""Repairs of decks that the bridges refuse or misread although their meaning is clear.

They are offered when a deck is converted, made on request (`--repair`), always in a copy of the deck, and named in the
case's conversion_manifest.json. Those of gas plants are in `gas_repairs`.

old-tailrace-file: until 2024 the curves of tailrace levels (polinjus.dat) were in fixed columns. novomodelo-bridge
reads the later form, with semicolons; the same numbers are written in that form.

frequency-limits: limits of the 50 Hz and 60 Hz units of one plant (Itaipu) are restrictions with a frequency.
novomodelo-bridge applies them to the unit groups, cobre-bridge to the whole plant, which halves it. They are taken out
of the copy, and become limits of the groups in the case.

sources-without-block: until 2019 generation that is not simulated (SISTEMA.DAT) was one block for each submarket. The
bridges need the number and the name of a source; the same numbers get them.

no-individual-period: REE.DAT says until when plants are individual; before that column existed, all stages were of
energy reservoirs. The bridges drop all limits of RE.DAT if it is blank. It gets the first month of the study.

expansion-of-fictitious-plants: the bridges leave out fictitious plants (FICT.*), but stop at those in EXPH.DAT. The
records are also left out of the copy.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from cobre.bridge.environment import BRIDGE_0_18, BRIDGE_0_19, BridgeProgram, DeckNotConvertedError
from cobre.bridge.gas_repairs import (
    comment_out,
    find_file,
    find_gas_repairs,
    integer,
    number,
    read_json,
    read_lines,
    write_lines,
)
from cobre.core.file_names import STAGES_FILE
from cobre.records import dataclass

Model = Literal["newave", "decomp"]
GROUP_BOUNDS = Path("constraints") / "hydro_unit_group_bounds.parquet"


class Repair(Protocol):
    """A repair that a deck needs."""

    @property
    def name(self) -> str:
        """Name in messages and in the manifest."""
        ...

    @property
    def finding(self) -> str:
        """The description of the problem."""
        ...

    @property
    def remedy(self) -> str:
        """The description of the repair."""
        ...

    def edit(self, deck: Path) -> None:
        """Change a copy of the deck, before the bridge reads it."""
        ...

    def finish(self, case: Path) -> None:
        """Change the case that the bridge has written."""
        ...


@dataclass(frozen=True, slots=True)
class OldTailraceFile:
    """A polinjus file in fixed columns."""

    path: str
    name = "old-tailrace-file"

    @property
    def finding(self) -> str:
        """The description of the problem."""
        return f"{self.path}: tailrace curves in fixed columns (CURVAJUS, PPPJUS), as until 2024"

    @property
    def remedy(self) -> str:
        """The description of the repair."""
        return "the same curves are written with semicolons"

    def edit(self, deck: Path) -> None:
        """Rewrite the file in a copy of the deck."""
        try:
            rewritten = list(_with_semicolons(read_lines(deck / self.path)))
        except (ValueError, IndexError) as error:
            raise DeckNotConvertedError(f"{self.path}: it cannot be rewritten: {error}") from error
        write_lines(deck / self.path, rewritten)

    def finish(self, case: Path) -> None:
        """Do nothing: the case needs no further change."""


@dataclass(frozen=True, slots=True)
class FrequencyLimit:
    """A restriction of the units of one frequency of a plant: limits by block, from each stage on."""

    number: int
    plant: int
    frequency: int
    first_stage: int
    last_stage: int
    limits: Mapping[int, tuple[tuple[float | None, float | None], ...]]

    def at(self, stage: int) -> tuple[tuple[float | None, float | None], ...]:
        """Return the least and largest generation in each block of a stage, which counts from 1.

        Empty if there are none.
        """
        begun = [first for first in self.limits if first <= stage]
        return self.limits[max(begun)] if begun and self.first_stage <= stage <= self.last_stage else ()


@dataclass(frozen=True, slots=True)
class FrequencyLimits:
    """Restrictions with a frequency, which cobre-bridge applies to the whole plant. names: of the plants."""

    path: str
    restrictions: tuple[FrequencyLimit, ...]
    names: Mapping[int, str]
    name = "frequency-limits"

    @property
    def finding(self) -> str:
        """The description of the problem."""
        found = ", ".join(f"{one.number} ({one.frequency} Hz)" for one in self.restrictions)
        plants = ", ".join(sorted(set(self.names.values())))
        return f"{self.path}: restrictions {found} limit some units of {plants}, and cobre-bridge limits all of them"

    @property
    def remedy(self) -> str:
        """The description of the repair."""
        return "they become limits of the unit groups"

    def edit(self, deck: Path) -> None:
        """Turn the restrictions into comments, in a copy of the deck."""
        numbers = {one.number for one in self.restrictions}
        comment_out(deck / self.path, lambda line: line[:2] in {"RE", "LU", "FU"} and integer(line[4:7]) in numbers)

    def finish(self, case: Path) -> None:
        """Limit the groups in the case: the lowest frequency is the first group, as the bridges number them."""
        stages = read_json(case / STAGES_FILE)["stages"]
        hydros = {hydro["name"].strip(): hydro for hydro in read_json(case / "system" / "hydros.json")["hydros"]}
        table = pq.ParquetFile(case / GROUP_BOUNDS).read()
        rows = table.to_pylist()
        for plant, name in self.names.items():
            hydro = hydros.get(name)
            groups = sorted((hydro or {}).get("unit_groups") or (), key=lambda group: int(group["id"]))
            of_plant = [one for one in self.restrictions if one.plant == plant]
            frequencies = sorted({one.frequency for one in of_plant})
            if hydro is None or len(groups) < 2 or len(frequencies) > len(groups):
                raise DeckNotConvertedError(f"{name}: the converted plant has no unit groups to limit by frequency")
            for one in of_plant:
                _limit_group(rows, hydro["id"], groups[FREQUENCIES.index(one.frequency)], stages, one)
        rows.sort(key=lambda row: tuple(-1 if row[key] is None else row[key] for key in _KEYS))
        # The programs of the bridges read no Snappy, which is PyArrow's default.
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), case / GROUP_BOUNDS, compression="zstd")


FREQUENCIES = (50, 60)  # Hz, in the order of a plant's unit groups
_KEYS = ("hydro_id", "hydro_unit_group_id", "stage_id", "block_id")


def _limit_group(
    rows: list[dict[str, Any]], hydro_id: int, group: Mapping[str, Any], stages: list[Any], one: FrequencyLimit
) -> None:
    """Tighten the rows of a group by a restriction; a row for a whole stage is split into its blocks first."""
    for at, stage in enumerate(stages):
        for block, (least, most) in zip(stage["blocks"], one.at(at + 1), strict=False):
            row = _row_of(rows, (hydro_id, group["id"], stage["id"], block["id"]), stage)
            largest = group["max_generation_mw"]
            if most is not None and most < largest:
                row["max_generation_mw"] = min(most, row["max_generation_mw"] or most)
            if least is not None and least > 0.0:
                row["min_generation_mw"] = min(max(least, row["min_generation_mw"] or 0.0), largest)


def _row_of(rows: list[dict[str, Any]], key: tuple[int, int, int, int], stage: Mapping[str, Any]) -> dict[str, Any]:
    for row in [row for row in rows if tuple(row[name] for name in _KEYS) == (*key[:3], None)]:
        rows.remove(row)
        rows += [{**row, "block_id": block["id"]} for block in stage["blocks"]]
    for row in rows:
        if tuple(row[name] for name in _KEYS) == key:
            return row
    rows.append(dict.fromkeys(rows[0] if rows else (), None) | dict(zip(_KEYS, key, strict=True)))
    return rows[-1]


@dataclass(frozen=True, slots=True)
class SourcesWithoutBlock:
    """Generation that is not simulated, by submarket only. lines: line numbers of the submarkets, from 0."""

    path: str
    lines: tuple[int, ...]
    name = "sources-without-block"

    @property
    def finding(self) -> str:
        """The description of the problem."""
        return f"{self.path}: generation that is not simulated has no source, as until 2019"

    @property
    def remedy(self) -> str:
        """The description of the repair."""
        return f"it becomes one source ({UNNAMED_SOURCE}) of each submarket"

    def edit(self, deck: Path) -> None:
        """Add the number and the name of the source, in a copy of the deck."""
        lines = read_lines(deck / self.path)
        for at in self.lines:
            lines[at] = f"{lines[at].strip():>4}    1  {UNNAMED_SOURCE}"
        write_lines(deck / self.path, lines)

    def finish(self, case: Path) -> None:
        """Do nothing: the case needs no further change."""


UNNAMED_SOURCE = "NAOSIM"


@dataclass(frozen=True, slots=True)
class FictitiousExpansion:
    """Fictitious plants in EXPH.DAT. places: first and last line of each, from 0."""

    path: str
    plants: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    name = "expansion-of-fictitious-plants"

    @property
    def finding(self) -> str:
        """The description of the problem."""
        return f"{self.path}: fictitious plants, which the bridges leave out: {', '.join(self.plants)}"

    @property
    def remedy(self) -> str:
        """The description of the repair."""
        return "their records are left out, too"

    def edit(self, deck: Path) -> None:
        """Drop the records, in a copy of the deck."""
        dropped = {at for first, last in self.places for at in range(first, last + 1)}
        lines = read_lines(deck / self.path)
        write_lines(deck / self.path, [line for at, line in enumerate(lines) if at not in dropped])

    def finish(self, case: Path) -> None:
        """Do nothing: the case needs no further change."""


@dataclass(frozen=True, slots=True)
class NoIndividualPeriod:
    """REE.DAT without the end of the individual period. lines: places of the energy reservoirs, from 0."""

    path: str
    lines: tuple[int, ...]
    month: int
    year: int
    name = "no-individual-period"

    @property
    def finding(self) -> str:
        """The description of the problem."""
        return f"{self.path}: no end of the individual period, so that the bridges drop the limits of RE.DAT"

    @property
    def remedy(self) -> str:
        """The description of the repair."""
        return f"it ends with the first month of the study ({self.month}/{self.year})"

    def edit(self, deck: Path) -> None:
        """Add month and year, in a copy of the deck."""
        lines = read_lines(deck / self.path)
        for at in self.lines:
            lines[at] = f"{lines[at][:23]:<23}{self.month:2d} {self.year}"
        write_lines(deck / self.path, lines)

    def finish(self, case: Path) -> None:
        """Do nothing: the case needs no further change."""


def find_repairs(deck: Path, model: Model = "decomp", program: BridgeProgram = BRIDGE_0_19) -> list[Repair]:
    """Return the repairs that a deck needs before a bridge converts it, in the order in which they are made."""
    if model == "newave":
        repairs: list[Repair | None] = [
            _sources_without_block(deck),
            _fictitious_expansion(deck),
            _no_individual_period(deck),
        ]
    else:
        repairs = [*find_gas_repairs(deck), _old_tailrace_file(deck)]
        repairs += [_frequency_limits(deck)] if program == BRIDGE_0_18 else []
    return [repair for repair in repairs if repair is not None]


def in_words(repairs: list[Repair]) -> str:
    """List findings and remedies, one per line."""
    return "\n".join(f"  {repair.name}: {repair.finding}; {repair.remedy}" for repair in repairs)


def offer(repairs: list[Repair]) -> str:
    """Return the sentence that offers repairs."""
    return f"repairs that --repair makes, in a copy:\n{in_words(repairs)}"


def _old_tailrace_file(deck: Path) -> OldTailraceFile | None:
    path = find_file(deck, "polinjus.")
    if path is None or not any(line.startswith("CURVAJUS") for line in read_lines(path)):
        return None
    return OldTailraceFile(path.name)


def _with_semicolons(lines: list[str]) -> Iterator[str]:
    """Write curves, then their pieces, numbered within the curve."""
    kind = "HIDRELETRICA-CURVAJUSANTE"
    segments: dict[tuple[str, str], int] = {}
    for line in lines:
        if line.startswith("CURVAJUS"):
            _, plant, curve, level, pieces = line.split()
            yield f"{kind};{plant};{curve};{float(level):10.4f}"
            yield f"{kind}-POLINOMIOPORPARTES;{plant};{curve};{pieces}"
        elif line.startswith("PPPJUS"):
            _, plant, curve, *numbers = line.split()
            segments[plant, curve] = at = segments.get((plant, curve), 0) + 1
            values = ";".join(f"{float(value.replace('D', 'E')):20.13E}" for value in numbers)
            yield f"{kind}-POLINOMIOPORPARTES-SEGMENTO;{plant};{curve};{at:2d};{values}"


def _frequency_limits(deck: Path) -> FrequencyLimits | None:
    """Find restrictions of one term that has a frequency; those of several terms are left out by the bridges."""
    dadger = find_file(deck, "dadger.")
    if dadger is None:
        return None
    spans: dict[int, tuple[int, int]] = {}
    terms: dict[int, list[str]] = {}
    limits: dict[int, dict[int, tuple[tuple[float | None, float | None], ...]]] = {}
    for line in read_lines(dadger):
        restriction = integer(line[4:7])
        if restriction is None:
            continue
        if line.startswith("RE"):
            spans[restriction] = (integer(line[9:11]) or 1, integer(line[14:16]) or 1)
        elif line[:2] in {"FU", "FT", "FI", "FE", "FC"}:
            terms.setdefault(restriction, []).append(line)
        elif line.startswith("LU"):
            values = [_limit(line[at : at + 10]) for at in range(14, 74, 10)]
            limits.setdefault(restriction, {})[integer(line[9:11]) or 1] = tuple(
                zip(values[::2], values[1::2], strict=True)
            )
    restrictions = tuple(
        FrequencyLimit(one, integer(term[14:17]) or 0, integer(term[30:32]) or 0, *spans[one], limits.get(one, {}))
        for one, (term, *others) in sorted(terms.items())
        if term.startswith("FU") and not others and one in spans and integer(term[30:32]) in FREQUENCIES
        if number(term[19:29]) == 1.0
    )
    plants = {one.plant: SPLIT_PLANTS[one.plant] for one in restrictions}
    return FrequencyLimits(dadger.name, restrictions, plants) if restrictions else None


SPLIT_PLANTS = {66: "ITAIPU"}  # the only plant with units of two frequencies


def _limit(text: str) -> float | None:
    return number(text) if text.strip() else None


def _sources_without_block(deck: Path) -> SourcesWithoutBlock | None:
    path = find_file(deck, "sistema.dat")
    if path is None:
        return None
    lines = read_lines(path)
    begin = next((at for at, line in enumerate(lines) if "NAO SIMULADAS" in line), len(lines))
    end = next((at for at, line in enumerate(lines) if at > begin and line.strip() == "999"), len(lines))
    bare = tuple(at for at in range(begin + 1, end) if lines[at].strip().isdigit())
    return SourcesWithoutBlock(path.name, bare) if bare else None


def _fictitious_expansion(deck: Path) -> FictitiousExpansion | None:
    path = find_file(deck, "exph.dat")
    if path is None:
        return None
    lines = read_lines(path)
    first = [at for at, line in enumerate(lines) if integer(line[:4]) is not None and line[5:17].startswith("FICT")]
    ends = [at for at, line in enumerate(lines) if line.strip() == "9999"]
    places = tuple((at, next((end for end in ends if end > at), len(lines) - 1)) for at in first)
    return FictitiousExpansion(path.name, tuple(lines[at][5:17].strip() for at in first), places) if first else None


def _no_individual_period(deck: Path) -> NoIndividualPeriod | None:
    path, general, limits = (find_file(deck, name) for name in ("ree.dat", "dger.dat", "re.dat"))
    if path is None or general is None or limits is None:
        return None
    lines = read_lines(path)
    end = next((at for at, line in enumerate(lines) if line.strip() == "999"), len(lines))
    blank = tuple(at for at in range(end) if integer(lines[at][:4]) is not None and not lines[at][21:].strip())
    parameters = {line[:21].strip(): integer(line[21:25]) for line in read_lines(general)[:10]}
    month, year = parameters.get("MES INICIO DO ESTUDO"), parameters.get("ANO INICIO DO ESTUDO")
    return NoIndividualPeriod(path.name, blank, month, year) if blank and month and year else None

"""Repairs of DECOMP decks that the bridges refuse although their meaning is clear.

They are offered when a deck is refused, made on request (`--repair`), always in a copy of the deck, and named in the
case's conversion_manifest.json.

late-gas-stages: a revision late in its month has few stages left, and its gas plants (TG records of dadgnl) are
described for months after the last one, because gas is ordered two months ahead. The bridges read such records in
monthly studies, where the stage after the last is the first month after the horizon, and refuse them in weekly ones.
The records are taken out of the copy, and the case's `thermal_bounds` and ordered generation after the horizon
are set from them.

old-tailrace-file: until 2024 the curves of tailrace levels (polinjus.dat) were in fixed columns. novomodelo-bridge
reads the later form, with semicolons; the same numbers are written in that form.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from cobre.bridge.errors import DeckNotConvertedError

ENCODING = "latin-1"  # of all files of a deck
COMMENT = "&"


@dataclass(frozen=True, slots=True)
class GasRecord:
    """A TG record: a plant from one stage on. Values by block: the least and the largest generation, and the cost."""

    plant: int
    name: str
    stage: int
    blocks: tuple[tuple[float, float, float], ...]

    def mean(self, hours: tuple[float, ...]) -> dict[str, float]:
        """Means over the blocks, by their hours, as fields of `thermal_bounds`."""
        total = sum(hours)
        least, most, cost = (
            math.fsum(values[at] * weight for values, weight in zip(self.blocks, hours, strict=True)) / total
            for at in range(3)
        )
        return {"cost_per_mwh": cost, "min_mw": least, "max_mw": most}


@dataclass(frozen=True, slots=True)
class LateGasStages:
    """TG records after the last stage. stages: hours of the blocks, by stage. orders: GL records, by plant."""

    path: str
    records: tuple[GasRecord, ...]
    block_hours: tuple[tuple[float, ...], ...]
    orders: Mapping[int, Mapping[date, float]]
    name = "late-gas-stages"

    @property
    def finding(self) -> str:
        """What is wrong, in words."""
        plants = ", ".join(f"{record.name} stage {record.stage}" for record in self.records)
        return f"{self.path}: TG records after the last stage ({len(self.block_hours)}): {plants}"

    @property
    def remedy(self) -> str:
        """What the repair does, in words."""
        return "they are used for the months after the horizon"

    def edit(self, deck: Path) -> None:
        """Turn the records into comments, in a copy of the deck."""
        last = len(self.block_hours)

        def without(line: str) -> str:
            record = _gas_record(line)
            return COMMENT + line if record is not None and record.stage > last else line

        _rewrite(deck / self.path, without)

    def finish(self, case: Path) -> None:
        """Apply the records to the case: bounds and orders after the horizon."""
        post = case / "post_study_stages.json"
        thermals = json.loads((case / "system" / "thermals.json").read_text(encoding="utf-8"))["thermals"]
        ids = {plant["name"].strip(): plant["id"] for plant in thermals if plant.get("anticipated_config")}
        by_id = {ids[record.name]: record.plant for record in self.records if record.name in ids}
        if not by_id or not post.exists():
            return
        horizon_end = _horizon_end(case)
        content = json.loads(post.read_text(encoding="utf-8"))
        for row in content["thermal_bounds"]:
            if row["thermal_id"] in by_id:
                begin = date.fromisoformat(content["stages"][row["post_study_stage_index"]]["start_date"])
                row.update(self._values(by_id[row["thermal_id"]], begin, horizon_end))
        _write_json(post, content)
        self._restore_orders(case / "initial_conditions.json", by_id, horizon_end)

    def _restore_orders(self, path: Path, by_id: Mapping[int, int], horizon_end: date) -> None:
        """Undo the limits of the last stage: an order after the horizon is within the limits of its own month."""
        content = json.loads(path.read_text(encoding="utf-8"))
        for window in content.get("past_anticipated_commitments", ()):
            begin = date.fromisoformat(window["start_date"])
            plant = by_id.get(window["thermal_id"])
            ordered = self.orders.get(plant or 0, {}).get(begin)
            if plant is not None and ordered is not None and begin >= horizon_end:
                limits = self._values(plant, begin, horizon_end)
                window["value_mw"] = min(max(ordered, limits["min_mw"]), limits["max_mw"])
        _write_json(path, content)

    def _values(self, plant: int, day: date, horizon_end: date) -> dict[str, float]:
        """Of the plant's last record up to the month of a day; the first month is the stage after the last one.

        Nothing if no record has begun: what the bridge took from the last stage of the study stays.
        """
        months = (day.year - horizon_end.year) * 12 + day.month - horizon_end.month
        stage = len(self.block_hours) + 1 + months
        begun = [record for record in self.records if record.plant == plant and record.stage <= stage]
        return max(begun, key=lambda record: record.stage).mean(self.block_hours[-1]) if begun else {}


@dataclass(frozen=True, slots=True)
class OldTailraceFile:
    """A polinjus file in fixed columns."""

    path: str
    name = "old-tailrace-file"

    @property
    def finding(self) -> str:
        """What is wrong, in words."""
        return f"{self.path}: tailrace curves in fixed columns (CURVAJUS, PPPJUS), as until 2024"

    @property
    def remedy(self) -> str:
        """What the repair does, in words."""
        return "the same curves are written with semicolons"

    def edit(self, deck: Path) -> None:
        """Rewrite the file in a copy of the deck."""
        lines = (deck / self.path).read_text(encoding=ENCODING).splitlines()
        try:
            rewritten = list(_with_semicolons(lines))
        except (ValueError, IndexError) as error:
            raise DeckNotConvertedError(f"{self.path}: it cannot be rewritten: {error}") from error
        (deck / self.path).write_text("".join(f"{line}\n" for line in rewritten), encoding=ENCODING)

    def finish(self, case: Path) -> None:
        """The case needs nothing more."""


Repair = LateGasStages | OldTailraceFile


def find_repairs(deck: Path) -> list[Repair]:
    """The repairs that a DECOMP deck needs, in the order in which they are made."""
    found = [_late_gas_stages(deck), _old_tailrace_file(deck)]
    return [repair for repair in found if repair is not None]


def in_words(repairs: list[Repair]) -> str:
    """Findings and remedies, one to a line."""
    return "\n".join(f"  {repair.name}: {repair.finding}; {repair.remedy}" for repair in repairs)


def _late_gas_stages(deck: Path) -> LateGasStages | None:
    dadger, dadgnl = _file(deck, "dadger."), _file(deck, "dadgnl.")
    if dadger is None or dadgnl is None:
        return None
    hours: dict[int, tuple[float, ...]] = {}
    for line in _lines(dadger):
        if line.startswith("DP") and (stage := _integer(line[4:6])) is not None:
            count = _integer(line[13:15]) or 0
            hours.setdefault(stage, tuple(_number(line[29 + 20 * at : 39 + 20 * at]) for at in range(count)))
    lines = _lines(dadgnl)
    late = tuple(
        record for line in lines if (record := _gas_record(line)) is not None and record.stage > max(hours, default=0)
    )
    if not late or sorted(hours) != list(range(1, len(hours) + 1)) or not all(map(sum, hours.values())):
        return None
    return LateGasStages(dadgnl.name, late, tuple(hours[stage] for stage in sorted(hours)), _orders(lines))


def _gas_record(line: str) -> GasRecord | None:
    if not line.startswith("TG"):
        return None
    plant, stage = _integer(line[4:7]), _integer(line[24:26])
    if plant is None or stage is None:
        return None
    blocks = tuple(
        (_number(line[at : at + 5]), _number(line[at + 5 : at + 10]), _number(line[at + 10 : at + 20]))
        for at in range(29, 89, 20)
    )
    return GasRecord(plant, line[14:24].strip(), stage, blocks)


def _orders(lines: list[str]) -> dict[int, dict[date, float]]:
    """Mean generation that was ordered, by plant and the first day of the week."""
    found: dict[int, dict[date, float]] = {}
    for line in lines:
        if not line.startswith("GL") or (plant := _integer(line[4:7])) is None:
            continue
        pairs = [(_number(line[at : at + 10]), _number(line[at + 10 : at + 15])) for at in range(19, 64, 15)]
        try:
            begin = datetime.strptime(line[64:73].strip().zfill(8), "%d%m%Y").date()
        except ValueError:
            continue
        hours = math.fsum(weight for _, weight in pairs)
        if hours > 0.0:
            found.setdefault(plant, {})[begin] = math.fsum(value * weight for value, weight in pairs) / hours
    return found


def _old_tailrace_file(deck: Path) -> OldTailraceFile | None:
    path = _file(deck, "polinjus.")
    if path is None or not any(line.startswith("CURVAJUS") for line in _lines(path)):
        return None
    return OldTailraceFile(path.name)


def _with_semicolons(lines: list[str]) -> Iterator[str]:
    """Curves, then their pieces, numbered within the curve."""
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
            values = ";".join(f"{float(number.replace('D', 'E')):20.13E}" for number in numbers)
            yield f"{kind}-POLINOMIOPORPARTES-SEGMENTO;{plant};{curve};{at:2d};{values}"


def _horizon_end(case: Path) -> date:
    stages = json.loads((case / "stages.json").read_text(encoding="utf-8"))["stages"]
    return max(date.fromisoformat(stage["end_date"]) for stage in stages)


def _file(deck: Path, prefix: str) -> Path | None:
    return next((path for path in sorted(deck.iterdir()) if path.name.lower().startswith(prefix)), None)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding=ENCODING).splitlines()


def _rewrite(path: Path, change: Any) -> None:
    path.write_text("".join(f"{change(line)}\n" for line in _lines(path)), encoding=ENCODING)


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _integer(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _number(text: str) -> float:
    """A number; 0.0 for a blank field, as the format means it."""
    return float(text) if text.strip() else 0.0

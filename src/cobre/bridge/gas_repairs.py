"""Repairs of gas plants whose generation is ordered two months ahead (dadgnl), in revisions of a month.

late-gas-stages: a revision late in its month has few stages left, and its gas plants (TG records) are described for
months after the last one. The official program lists the plants for as many stages after the last as the longest
lead has months, so the stage after the last is the first month after the horizon. The bridges read it so in monthly
studies, and refuse it in weekly ones. The records are taken out of the copy, and the case's `thermal_bounds` and
ordered generation after the horizon are set from them.

last-stage-orders: all deliveries within the study were ordered before it (GL records). The bridges write the orders
of as many stages as fit into the operative weeks of the study's months (GS records), and leave out the last stage
where its month is longer than its weeks. Then neither program accepts the case. The orders are added.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from cobre.core.file_names import CONDITIONS_FILE, POST_STUDY_FILE, STAGES_FILE
from cobre.records import dataclass

# Files of decks: text in fixed columns, in Latin-1, under names whose case differs between publications.

ENCODING = "latin-1"  # of all files of a deck
COMMENT = "&"


def find_file(deck: Path, prefix: str) -> Path | None:
    """Find a deck's file by the beginning of its name, in any case; of several, that of caso.dat's revision."""
    files = [path for path in sorted(deck.iterdir()) if path.name.lower().startswith(prefix)]
    if len(files) < 2:
        return files[0] if files else None
    index = next((path for path in deck.iterdir() if path.name.lower() == "caso.dat"), None)
    revision = next(iter(read_lines(index)), "").strip().lower() if index is not None else ""
    return next((path for path in files if path.name.lower() == f"{prefix}{revision}"), files[0])


def read_lines(path: Path) -> list[str]:
    """Read the lines of a deck's file."""
    return path.read_text(encoding=ENCODING).splitlines()


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a deck's file."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding=ENCODING)


def comment_out(path: Path, is_wrong: Callable[[str], bool]) -> None:
    """Turn the lines for which `is_wrong` holds into comments."""
    write_lines(path, [COMMENT + line if is_wrong(line) else line for line in read_lines(path)])


def integer(text: str) -> int | None:
    """Parse a field of digits; None if it is blank or something else."""
    return int(text) if text.strip().isdigit() else None


def number(text: str) -> float:
    """Parse a number; 0.0 for a blank field, as the format defines, and for one that is not a number."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def read_json(path: Path) -> Any:
    """Read a JSON file of the converted case."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, content: Any) -> None:
    """Write a file of the converted case, in the bridges' form."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


WEEK_HOURS = 168.0


@dataclass(frozen=True, slots=True)
class GasRecord:
    """A TG record: a plant from one stage on. Values by block: the least and the largest generation, and the cost."""

    plant: int
    name: str
    stage: int
    blocks: tuple[tuple[float, float, float], ...]

    def mean(self, hours: Sequence[float]) -> dict[str, float]:
        """Return means over the blocks, by their hours, as fields of `thermal_bounds`."""
        total = math.fsum(hours)
        least, most, cost = (
            math.fsum(values[at] * weight for values, weight in zip(self.blocks, hours, strict=False)) / total
            for at in range(3)
        )
        return {"cost_per_mwh": cost, "min_mw": least, "max_mw": most}


@dataclass(frozen=True, slots=True)
class Order:
    """A GL record: the mean generation that was ordered for a week, and its hours (0 where they are left blank)."""

    begin: date
    mw: float
    hours: float


@dataclass(frozen=True, slots=True)
class GasPlan:
    """The gas plants of a deck.

    path: of the file. begin: first day of the study. block_hours: by stage. records, orders: of all plants, orders by
    plant. weeks: operative weeks of each month, from the first month of the study on.
    """

    path: str
    begin: date
    block_hours: tuple[tuple[float, ...], ...]
    records: tuple[GasRecord, ...]
    orders: Mapping[int, tuple[Order, ...]]
    weeks: tuple[int, ...]

    @property
    def late_records(self) -> list[GasRecord]:
        """Those after the last stage."""
        return [record for record in self.records if record.stage > len(self.block_hours)]

    @property
    def starts(self) -> list[date]:
        """First day of each stage."""
        days = [self.begin]
        for hours in self.block_hours[:-1]:
            days.append(days[-1] + timedelta(hours=math.fsum(hours)))
        return days

    def limits(self, plant: int, stage: int) -> dict[str, float]:
        """Return the limits of the plant's last record up to a stage, from 1; empty if none has begun.

        After the last stage, blocks keep its hours: no record gives others.
        """
        begun = [record for record in self.records if record.plant == plant and record.stage <= stage]
        hours = self.block_hours[min(stage, len(self.block_hours)) - 1]
        return max(begun, key=lambda record: record.stage).mean(hours) if begun else {}

    def ids(self, case: Path) -> dict[int, int]:
        """Return numbers of the plants in the deck, by their ids in the case."""
        thermals = read_json(case / "system" / "thermals.json")["thermals"]
        names = {record.name: record.plant for record in self.records}
        ahead = [plant for plant in thermals if plant.get("anticipated_config")]
        return {plant["id"]: names[plant["name"].strip()] for plant in ahead if plant["name"].strip() in names}


@dataclass(frozen=True, slots=True)
class LateGasStages:
    """TG records after the last stage."""

    plan: GasPlan
    name = "late-gas-stages"

    @property
    def finding(self) -> str:
        """The description of the problem."""
        plants = ", ".join(f"{record.name} stage {record.stage}" for record in self.plan.late_records)
        return f"{self.plan.path}: TG records after the last stage ({len(self.plan.block_hours)}): {plants}"

    @property
    def remedy(self) -> str:
        """The description of the repair."""
        return "they are used for the months after the horizon"

    def edit(self, deck: Path) -> None:
        """Turn the records into comments, in a copy of the deck."""
        last = len(self.plan.block_hours)
        comment_out(deck / self.plan.path, lambda line: (found := _gas_record(line)) is not None and found.stage > last)

    def finish(self, case: Path) -> None:
        """Apply the records to the case: bounds and orders after the horizon."""
        post = case / POST_STUDY_FILE
        late = {record.plant for record in self.plan.late_records}
        plants = {id_: plant for id_, plant in self.plan.ids(case).items() if plant in late}
        if not plants or not post.exists():
            return
        content = read_json(post)
        horizon_end = max(end for _, end in _spans(case))
        for row in content["thermal_bounds"]:
            if row["thermal_id"] in plants:
                begin = date.fromisoformat(content["stages"][row["post_study_stage_index"]]["start_date"])
                row.update(self._limits(plants[row["thermal_id"]], begin, horizon_end))
        write_json(post, content)
        self._restore_orders(case / CONDITIONS_FILE, plants, horizon_end)

    def _restore_orders(self, path: Path, plants: Mapping[int, int], horizon_end: date) -> None:
        """Undo the limits of the last stage: an order after the horizon is within the limits of its own month."""
        content = read_json(path)
        for window in content.get("past_anticipated_commitments", ()):
            begin, plant = date.fromisoformat(window["start_date"]), plants.get(window["thermal_id"])
            if plant is None or begin < horizon_end:
                continue
            ordered = next((order.mw for order in self.plan.orders.get(plant, ()) if order.begin == begin), None)
            if ordered is not None:
                window["value_mw"] = _within(ordered, self._limits(plant, begin, horizon_end))
        write_json(path, content)

    def _limits(self, plant: int, day: date, horizon_end: date) -> dict[str, float]:
        """Return the limits in the month of a day after the horizon, counted as stages after the last one."""
        months = (day.year - horizon_end.year) * 12 + day.month - horizon_end.month
        return self.plan.limits(plant, len(self.plan.block_hours) + 1 + months)


@dataclass(frozen=True, slots=True)
class LastStageOrders:
    """Stages without orders, because their months are longer than their operative weeks."""

    plan: GasPlan
    name = "last-stage-orders"

    @property
    def finding(self) -> str:
        """The description of the problem."""
        count, written = len(self.plan.block_hours), _stages_with_orders(self.plan)
        return f"{self.plan.path}: the bridges write gas orders (GL) for {written} of {count} stages"

    @property
    def remedy(self) -> str:
        """The description of the repair."""
        return "the orders of the others are added to the case"

    def edit(self, deck: Path) -> None:
        """Do nothing: the deck itself is correct."""

    def finish(self, case: Path) -> None:
        """Add the orders that are missing: means over the weeks that begin in a stage, within the plant's limits."""
        path = case / CONDITIONS_FILE
        content = read_json(path)
        windows = content.setdefault("past_anticipated_commitments", [])
        present = {(window["thermal_id"], window["start_date"]) for window in windows}
        for id_, plant in self.plan.ids(case).items():
            for at, (begin, end) in enumerate(_spans(case)):
                if (id_, begin.isoformat()) in present:
                    continue
                weeks = [order for order in self.plan.orders.get(plant, ()) if begin <= order.begin < end]
                value = _within(_mean((order.mw, order.hours) for order in weeks), self.plan.limits(plant, at + 1))
                windows.append({"thermal_id": id_, "start_date": str(begin), "end_date": str(end), "value_mw": value})
        windows.sort(key=lambda window: (window["thermal_id"], window["start_date"]))
        write_json(path, content)


def find_gas_repairs(deck: Path) -> list[Any]:
    """Return the repairs that the gas plants of a DECOMP deck need."""
    plan = read_gas_plan(deck)
    if plan is None:
        return []
    repairs: list[Any] = [LateGasStages(plan)] if plan.late_records else []
    if any(plan.orders.values()) and _stages_with_orders(plan) < len(plan.block_hours):
        repairs.append(LastStageOrders(plan))
    return repairs


def begins_with_last_week(deck: Path) -> bool:
    """Return whether the first stage is a week that ends with its month, as in the last revision of October 2025."""
    plan = read_gas_plan(deck)
    if plan is None or math.fsum(plan.block_hours[0]) != WEEK_HOURS:
        return False
    return (plan.begin + timedelta(hours=WEEK_HOURS)).day == 1


def read_gas_plan(deck: Path) -> GasPlan | None:
    """Read the plan from dadger and dadgnl; None for decks without one of them, or without a calendar."""
    dadger, dadgnl = find_file(deck, "dadger."), find_file(deck, "dadgnl.")
    if dadger is None or dadgnl is None:
        return None
    begin: date | None = None
    hours: dict[int, tuple[float, ...]] = {}
    for line in read_lines(dadger):
        if line.startswith("DT"):
            begin = _day("".join(field.zfill(2) for field in line[2:].split()))
        elif line.startswith("DP") and (stage := integer(line[4:6])) is not None:
            count = integer(line[13:15]) or 0
            hours.setdefault(stage, tuple(number(line[29 + 20 * at : 39 + 20 * at]) for at in range(count)))
    has_stages = hours and sorted(hours) == list(range(1, len(hours) + 1)) and all(map(sum, hours.values()))
    if begin is None or not has_stages:
        return None
    lines = read_lines(dadgnl)
    records = tuple(record for line in lines if (record := _gas_record(line)) is not None)
    months = {integer(line[4:6]): integer((line[8:].split() or [""])[0]) for line in lines if line.startswith("GS")}
    weeks = tuple(months[at] or 0 for at in sorted(at for at in months if at is not None))
    return GasPlan(dadgnl.name, begin, tuple(hours[at] for at in sorted(hours)), records, _orders(lines), weeks)


def _stages_with_orders(plan: GasPlan) -> int:
    """Count the stages that get orders: those that end within the operative weeks of the months in which stages begin.

    All of them if there are no weeks: then each stage is a month, or none has an order.
    """
    if not plan.weeks or math.fsum(plan.block_hours[0]) != WEEK_HOURS:
        return len(plan.block_hours)
    months = len({(begin.year, begin.month) for begin in plan.starts})
    lead, passed = WEEK_HOURS * sum(plan.weeks[:months]), 0.0
    for at, hours in enumerate(plan.block_hours):
        passed += math.fsum(hours)
        if passed > lead:
            return at
    return len(plan.block_hours)


def _spans(case: Path) -> list[tuple[date, date]]:
    """Return the first day of each stage of a case, and the day after its last one."""
    stages = read_json(case / STAGES_FILE)["stages"]
    return [(date.fromisoformat(stage["start_date"]), date.fromisoformat(stage["end_date"])) for stage in stages]


def _gas_record(line: str) -> GasRecord | None:
    if not line.startswith("TG"):
        return None
    plant, stage = integer(line[4:7]), integer(line[24:26])
    if plant is None or stage is None:
        return None
    blocks = tuple(
        (number(line[at : at + 5]), number(line[at + 5 : at + 10]), number(line[at + 10 : at + 20]))
        for at in range(29, 89, 20)
    )
    return GasRecord(plant, line[14:24].strip(), stage, blocks)


def _orders(lines: Iterable[str]) -> dict[int, tuple[Order, ...]]:
    """Return the ordered weeks of each plant."""
    orders_by_plant: dict[int, tuple[Order, ...]] = {}
    for line in lines:
        if not line.startswith("GL") or (plant := integer(line[4:7])) is None:
            continue
        pairs = [(number(line[at : at + 10]), number(line[at + 10 : at + 15])) for at in range(19, 64, 15)]
        begin = _day(line[64:73].strip().zfill(8))
        if begin is not None:
            order = Order(begin, _mean(pairs), math.fsum(hours for _, hours in pairs))
            orders_by_plant[plant] = (*orders_by_plant.get(plant, ()), order)
    return orders_by_plant


def _day(text: str) -> date | None:
    try:
        return datetime.strptime(text, "%d%m%Y").date()
    except ValueError:
        return None


def _mean(pairs: Iterable[tuple[float, float]]) -> float:
    """Average values by their hours; equally where hours are blank, as in weeks after the horizon. 0 for none."""
    values = list(pairs)
    hours = math.fsum(weight for _, weight in values)
    if hours > 0.0:
        return math.fsum(value * weight for value, weight in values) / hours
    return math.fsum(value for value, _ in values) / len(values) if values else 0.0


def _within(value: float, limits: Mapping[str, float]) -> float:
    if not limits:
        return value
    return min(max(value, limits["min_mw"]), limits["max_mw"])

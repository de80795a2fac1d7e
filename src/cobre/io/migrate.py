"""Cases of format 0.18 written as 0.19: what changes its form, what cannot be carried over, what acts differently."""

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path

from cobre.core.case import Case
from cobre.core.config import CutSelectionConfig, DominationSelection, DynamicSelection, Level1Selection
from cobre.core.file_names import (
    CONFIG_FILE,
    CONSTRAINTS_FILE,
    ENERGY_PRODUCTIVITY_FILE,
    HYDROS_FILE,
    PRODUCTION_FILE,
)
from cobre.core.hydro import Hydro, HydroProduction, ProductionChoice, ProductionModels
from cobre.io.case import load_case_with_findings
from cobre.io.findings import Finding, lines_of
from cobre.io.saving.case_writer import save_case
from cobre.records import dataclass

EQUIVALENT, INTEGRATED = "equivalent_productivity_mw_per_m3s", "integrated_equivalent_productivity_mw_per_m3s"


class NoteKind(Enum):
    """The kind of a note. NOW_EFFECTIVE: something acts differently in the new format, so that costs may differ."""

    CONVERTED = "converted"
    DROPPED = "dropped"
    NOW_EFFECTIVE = "now effective"


@dataclass(frozen=True, slots=True)
class Note:
    """A note on one change; `file` is relative to the case."""

    kind: NoteKind
    file: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.file}: {self.text}"


class Notes:
    """Notes collected while a case is converted."""

    def __init__(self) -> None:
        self._notes: list[Note] = []

    def converted(self, file: str, text: str) -> None:
        """Note that something was converted without loss."""
        self._notes.append(Note(NoteKind.CONVERTED, file, text))

    def dropped(self, file: str, text: str) -> None:
        """Note that something was dropped, because the new format cannot express it."""
        self._notes.append(Note(NoteKind.DROPPED, file, text))

    def now_effective(self, file: str, text: str) -> None:
        """Note that something has an effect now and had none before."""
        self._notes.append(Note(NoteKind.NOW_EFFECTIVE, file, text))

    def all(self) -> tuple[Note, ...]:
        """Return all notes, in the order in which they were made."""
        return tuple(self._notes)


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """The result of a migration: directories, notes, and findings on the new case."""

    old: Path
    new: Path
    notes: tuple[Note, ...]
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        lines = [f"{self.old} -> {self.new}", *(f"  {note}" for note in self.notes)]
        return "\n".join([*lines, *(f"  to be checked: {line}" for line in lines_of(self.findings))])


def migrate_to_019(old: Path, new: Path) -> MigrationReport:
    """Write the case of format 0.18 in `old` to the new directory `new`, in format 0.19.

    Raises InvalidCaseError if `old` has errors, and WriteError if `new` is not empty; then nothing is left at `new`.
    """
    notes = Notes()
    save_case(as_019(load_case_with_findings(old).case, notes), new)
    return MigrationReport(old, new, notes.all(), tuple(load_case_with_findings(new).findings))


def as_019(case: Case, notes: Notes) -> Case:
    """Convert a study to format 0.19; return it with notes on the differences."""
    training = case.config.training
    selection = _cut_selection(training.cut_selection, notes)
    config = replace(case.config, training=replace(training, cut_selection=selection))
    _note_effects(case, notes)
    return replace(
        case,
        format_version="0.19",
        config=config,
        system=replace(case.system, hydros=tuple(_hydro(hydro, notes) for hydro in case.system.hydros)),
        production=_production(case.production, notes),
    )


def _cut_selection(config: CutSelectionConfig, notes: Notes) -> CutSelectionConfig:
    selection = config.selection
    if isinstance(selection, Level1Selection | DominationSelection):
        if selection.method != "level1":
            notes.dropped(CONFIG_FILE, f"the cut selection `{selection.method}`, which is `level1` now")
        is_exact = isinstance(selection, Level1Selection) and selection.tie_tolerance == Level1Selection().tie_tolerance
        if not is_exact:
            notes.dropped(CONFIG_FILE, "the tolerance of cut selection: values of cuts are compared exactly")
        window = config.state_window
        selection = Level1Selection(selection.check_frequency, lookback_iterations=window)
        config = replace(config, selection=selection, state_window=None)
        notes.now_effective(CONFIG_FILE, "level1 keeps one cut for each state, and all cuts of the first stage")
    if isinstance(selection, DynamicSelection) and config.max_active_per_stage is not None:
        notes.dropped(CONFIG_FILE, "max_active_per_stage, which the cut selection `dynamic` does not have any more")
        config = replace(config, max_active_per_stage=None)
    return config


def _note_effects(case: Case, notes: Notes) -> None:
    method = case.config.modeling.non_negativity_method
    if method.startswith("truncation"):
        text = f"`{method}` keeps negative inflows, also as lags, and the LP corrects them"
        notes.now_effective(CONFIG_FILE, text)
    if any(constraint.slack_enabled for constraint in case.generic_constraints.constraints):
        notes.converted(CONSTRAINTS_FILE, 'penalties of slacks have the basis "per_hour", as before')
    choices = [choice for plant in case.production.by_hydro.values() for choice in _choices(plant)]
    if any(choice.fpha_config is not None and choice.fpha_config.source == "computed" for choice in choices):
        notes.now_effective(PRODUCTION_FILE, "computed planes depend on spillage by another rule")
    late = [hydro.id for hydro in case.system.hydros if hydro.entry_stage_id or hydro.exit_stage_id is not None]
    if late:
        ids = ", ".join(map(str, late))
        text = f"minimums of plants that enter or leave (hydro {ids}) are charged for out of service, too"
        notes.now_effective(HYDROS_FILE, text)


def _hydro(hydro: Hydro, notes: Notes) -> Hydro:
    if hydro.generation.model != "linearized_head":
        return hydro
    notes.converted(HYDROS_FILE, f"hydro {hydro.id}: the model linearized_head became constant_productivity, as before")
    return replace(hydro, generation=replace(hydro.generation, model="constant_productivity"))


def _production(models: ProductionModels, notes: Notes) -> ProductionModels:
    plants: Mapping[int, HydroProduction] = {id_: _plant(plant, notes) for id_, plant in models.by_hydro.items()}
    table = models.energy_productivity
    if table is not None and INTEGRATED not in table:
        table = {**table, INTEGRATED: table[EQUIVALENT].copy()}
        notes.converted(
            ENERGY_PRODUCTIVITY_FILE, f"{INTEGRATED} has the values of {EQUIVALENT}, which had both meanings"
        )
    return replace(models, by_hydro=plants, energy_productivity=table)


def _choices(plant: HydroProduction) -> list[ProductionChoice]:
    return [*(part.choice for part in plant.stage_ranges), *plant.seasons.values()]


def _plant(plant: HydroProduction, notes: Notes) -> HydroProduction:
    choices = [*_choices(plant), *([] if plant.default is None else [plant.default])]
    if any(choice.model == "linearized_head" for choice in choices):
        notes.converted(
            PRODUCTION_FILE, f"hydro {plant.hydro_id}: linearized_head became constant_productivity, as before"
        )
    return replace(
        plant,
        stage_ranges=tuple(replace(part, choice=_choice(part.choice)) for part in plant.stage_ranges),
        seasons={season: _choice(choice) for season, choice in plant.seasons.items()},
        default=None if plant.default is None else _choice(plant.default),
    )


def _choice(choice: ProductionChoice) -> ProductionChoice:
    return replace(choice, model="constant_productivity") if choice.model == "linearized_head" else choice

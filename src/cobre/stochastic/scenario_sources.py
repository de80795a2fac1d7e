"""From `scenario_source` in config.json to openings and samplers."""

from collections.abc import Mapping

from cobre.core.arrays import Floats
from cobre.core.case import Case, Correlation
from cobre.core.case_file_names import CONFIG_FILE
from cobre.core.config import ScenarioSource
from cobre.records import dataclass
from cobre.stochastic.correlation import CORRELATION_FILE, CorrelationProfiles, correlation_profiles
from cobre.stochastic.errors import NoiseModelError
from cobre.stochastic.external import ExternalLibrary, external_library
from cobre.stochastic.fresh_noise import check_methods
from cobre.stochastic.historical import historical_library
from cobre.stochastic.layout import CLASSES, NoiseLayout
from cobre.stochastic.memoryless import MemorylessClass
from cobre.stochastic.opening_tree import HISTORICAL_RESIDUALS, TreePlan, generated_openings, openings_from_file
from cobre.stochastic.par.history import HISTORY_FILE
from cobre.stochastic.par.memory import InflowMemory
from cobre.stochastic.par.model import InflowModel
from cobre.stochastic.par.seasons import season_cycle
from cobre.stochastic.random.seeds import EXTERNAL_BASE, HISTORICAL_BASE, as_seed, class_forward_seed
from cobre.stochastic.replay import inflow_noise, memoryless_noise
from cobre.stochastic.sampling import InSample, NoiseSampler, OutOfSample, Replay, Scheme


@dataclass(frozen=True, slots=True)
class SourceData:
    """The models and data that sampling schemes draw from."""

    case: Case
    layout: NoiseLayout
    correlation: CorrelationProfiles
    inflow: InflowModel
    memory: InflowMemory
    load: MemorylessClass
    availability: MemorylessClass


def training_libraries(case: Case) -> dict[str, ExternalLibrary]:
    """The external libraries that training uses, by class."""
    source = case.config.training.scenario_source
    return {name: external_library(case, name) for name in CLASSES if getattr(source, name) == "external"}


def correlation(case: Case, layout: NoiseLayout, estimated: Correlation | None) -> CorrelationProfiles:
    """From the file, else from history, else none."""
    known = {
        "inflow": frozenset(hydro.id for hydro in case.system.hydros),
        "load": frozenset(bus.id for bus in case.system.buses),
        "ncs": frozenset(source.id for source in case.system.non_controllable_sources),
    }
    stage_ids = [stage.id for stage in case.horizon.stages]
    given = case.scenarios.correlation
    source = HISTORY_FILE if given is None else CORRELATION_FILE
    return correlation_profiles(given or estimated, stage_ids, layout.positions(), known, source)


def openings(data: SourceData, libraries: Mapping[str, ExternalLibrary]) -> tuple[Floats, ...]:
    """From the file, or generated: never more of them than the external libraries have scenarios at a stage."""
    stages = data.case.horizon.stages
    training = data.case.config.training
    if training.scenario_source.openings == "file":
        return openings_from_file(data.case.scenarios.noise_openings, stages, data.layout.dimension)
    counts = [library.counts for library in libraries.values()]
    limits = [min(of_stage) for of_stage in zip(*counts, strict=True)] if counts else None
    needs_history = any(stage.sampling_method == HISTORICAL_RESIDUALS for stage in stages)
    residuals = _historical_noise(data, training.scenario_source) if needs_history else None
    plan = TreePlan(as_seed(training.tree_seed), data.layout, data.correlation, limits, residuals)
    return generated_openings(plan, stages)


def sampler(data: SourceData, tree: tuple[Floats, ...], *, is_training: bool) -> NoiseSampler:
    """The noise of forward passes, or of simulations."""
    config = data.case.config
    source = config.training.scenario_source
    if not is_training and config.simulation.scenario_source is not None:
        source = config.simulation.scenario_source
    is_enumerated = config.training.is_enumerated or (not is_training and config.simulation.is_enumerated)
    if is_enumerated:
        source = ScenarioSource()  # paths are those of a tree: nothing is drawn
    total = config.training.forward_passes if is_training else config.simulation.num_scenarios
    in_sample = InSample(tree, as_seed(config.training.tree_seed))
    schemes: dict[str, Scheme] = {}
    for entity_class in CLASSES:
        name = getattr(source, entity_class)
        schemes[entity_class] = in_sample if name == "in_sample" else _scheme(data, source, entity_class, name, total)
    return NoiseSampler(data.layout, schemes)


def _scheme(data: SourceData, source: ScenarioSource, entity_class: str, name: str, total: int) -> Scheme:
    if name == "out_of_sample":
        seed = class_forward_seed(_seed(source, entity_class), entity_class)
        stages = data.case.horizon.stages
        check_methods(stages)
        return OutOfSample(data.layout, entity_class, seed, total, stages, data.correlation)
    if name == "external":
        return Replay(data.layout, entity_class, EXTERNAL_BASE, _external_noise(data, entity_class))
    if name == "historical" and entity_class == "inflow":
        return Replay(data.layout, entity_class, HISTORICAL_BASE, _historical_noise(data, source))
    raise NoiseModelError(
        CONFIG_FILE, f"scenario_source, {entity_class}, scheme", f"{name!r} is not possible for this class"
    )


def _seed(source: ScenarioSource, entity_class: str) -> int:
    if source.seed is None:
        raise NoiseModelError(
            CONFIG_FILE, "scenario_source, seed", f"missing; {entity_class} is 'out_of_sample' and needs one"
        )
    return as_seed(source.seed)


def _external_noise(data: SourceData, entity_class: str) -> Floats:
    """Noise (stage, scenario, entity of the class that has noise)."""
    library = external_library(data.case, entity_class)
    if entity_class == "inflow":
        _require_all(library, data.layout.hydro_ids)
        return inflow_noise(data.inflow, data.memory, library.values, library.file, library.entity_ids)
    plain = data.load if entity_class == "load" else data.availability
    plain.check_entities(library)
    columns = [plain.entity_ids.index(entity_id) for entity_id in library.entity_ids]
    found = memoryless_noise(
        plain.mean[:, columns], plain.std[:, columns], library.values, library.file, library.entity_ids
    )
    return found[:, :, plain.has_noise[columns]]


def _require_all(library: ExternalLibrary, entity_ids: tuple[int, ...]) -> None:
    for entity_id in entity_ids:
        if entity_id not in library.entity_ids:
            raise NoiseModelError(library.file, f"hydro_id {entity_id}", "no external scenarios; add rows for it")


def _historical_noise(data: SourceData, source: ScenarioSource) -> Floats:
    cycle = season_cycle(data.case.horizon)
    library = historical_library(data.case, cycle, source.historical_years)
    hydro_ids = data.layout.hydro_ids
    return inflow_noise(data.inflow, data.memory, library.values, HISTORY_FILE, hydro_ids)

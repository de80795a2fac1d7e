"""Plug-ins of a user: objects given to `cobre.train`, or registered by an entry point and chosen in config.json.

Both become one `Plugins`, which ranks apply to a study after it was prepared. What a plug-in returns is checked at
each call, so that a mistake in it is reported as one, with its name, and not as a wrong policy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cobre.core.arrays import ByteFlags, Floats, Indices, Ints
from cobre.core.bounds import BoundPlan, UpperBound
from cobre.core.config import Config, PluginConfig
from cobre.core.stopping import STOPPING_RULES, Iteration, StopKind, StoppingRule
from cobre.errors import CobreError
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutsOfStage
from cobre.sddp.plugins.interfaces import CutSelection, RiskMeasure, Sampler
from cobre.stochastic.model import NoiseModel

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "cobre.plugins"
"""The group of entry points, whose values are classes or functions that return a plug-in."""

WEIGHT_TOLERANCE = 1e-9
"""How far the sum of weights may be from 1: rounding of a few hundred openings stays far below."""

SAMPLER_METHODS = ("sample", "opening_indices", "for_scenarios", "is_in_sample")


class PluginError(CobreError):
    """A plug-in that is not installed, does not fit the study, or returned something invalid."""

    remedy = "correct the plug-in; the how-to pages on plug-ins show a complete one of each kind"


@dataclass(frozen=True, slots=True)
class Plugins:
    """Replaceable decisions of a run. None, or empty: as the case has it.

    risk_measure: of all stages, in place of the case's. stopping_rules: in addition to the case's. cut_selection: in
    place of the case's. sampler: of forward passes. simulation_sampler: of simulated scenarios.
    """

    risk_measure: RiskMeasure | None = None
    stopping_rules: tuple[StoppingRule, ...] = ()
    cut_selection: CutSelection | None = None
    sampler: Any = None
    simulation_sampler: Any = None

    def or_configured(self, config: Config) -> "Plugins":
        """Return these plug-ins, and for kinds without one those that config.json names. Raises PluginError."""
        named = config.training.plugins
        try:
            return checked_plugins(
                risk_measure=self.risk_measure or _load(named.risk_measure),
                stopping_rules=(*map(_load, named.stopping_rules), *self.stopping_rules),
                cut_selection=self.cut_selection or _load(named.cut_selection),
                sampler=self.sampler or _load(named.sampler),
                simulation_sampler=self.simulation_sampler or _load(config.simulation.sampler),
            )
        except TypeError as error:
            raise PluginError(str(error)) from None

    @property
    def identities(self) -> list[object]:
        """Classes and fields of the plug-ins that decide about the bits of training, by kind.

        Not those of stopping rules and of the simulation sampler.
        """
        used = {"risk": self.risk_measure, "selection": self.cut_selection, "sampler": self.sampler}
        return [(kind, *identity(plugin)) for kind, plugin in used.items() if plugin is not None]

    @property
    def changes_study(self) -> bool:
        """Whether the prepared study depends on them."""
        return any(plugin is not None for plugin in (self.risk_measure, self.sampler, self.simulation_sampler))


NO_PLUGINS = Plugins()


def checked_plugins(
    risk_measure: object = None,
    stopping_rules: object = (),
    cut_selection: object = None,
    sampler: object = None,
    simulation_sampler: object = None,
) -> Plugins:
    """Return plug-ins with checks around them. Raises TypeError for an object of another kind."""
    if not isinstance(stopping_rules, Sequence):
        raise TypeError(f"stopping_rules: expected a list of StoppingRule, got {_named(stopping_rules)}")
    for rule in stopping_rules:
        _require("stopping_rules", rule, StoppingRule)
        if not isinstance(rule.kind, StopKind):
            name = type(rule).__name__
            raise TypeError(f"stopping_rules: `kind` of {name} is {rule.kind!r}; expected a StopKind, or leave it out")
    if risk_measure is not None:
        _require("risk_measure", risk_measure, RiskMeasure)
    if cut_selection is not None:
        _require("cut_selection", cut_selection, CutSelection)
    for name, plugin in (("sampler", sampler), ("simulation_sampler", simulation_sampler)):
        missing = [method for method in SAMPLER_METHODS if not hasattr(plugin, method)]
        if plugin is not None and missing:
            raise TypeError(f"{name}: {_named(plugin)} has no {missing[0]}")
    for name, plugin in (("risk_measure", risk_measure), ("cut_selection", cut_selection), ("sampler", sampler)):
        _require_plain_fields(name, plugin)
    return Plugins(
        _CheckedRiskMeasure.of(risk_measure),
        tuple(map(_CheckedStoppingRule.of, stopping_rules)),
        _CheckedCutSelection.of(cut_selection),
        sampler,
        simulation_sampler,
    )


def _require(argument: str, value: object, kind: type) -> None:
    if isinstance(value, type):
        raise TypeError(f"{argument}: expected an object, got the class {value.__name__}: write {value.__name__}()")
    if not isinstance(value, kind):
        raise TypeError(f"{argument}: expected a subclass of cobre.{kind.__name__}, got {_named(value)}")


def _named(value: object) -> str:
    return f"an object of type {type(value).__name__}"


# Plug-ins by name.


@cache
def _entry_points() -> "Mapping[str, EntryPoint]":
    from importlib import metadata  # noqa: PLC0415 - it loads the parsers of mail and zip files

    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


def _load(config: PluginConfig | None) -> Any:
    """Return the plug-in of a name with its settings; None for none. Raises PluginError."""
    if config is None:
        return None
    entry = _entry_points().get(config.name)
    if entry is None:
        names = ", ".join(sorted(_entry_points())) or "none"
        raise PluginError(f"no plug-in {config.name!r} is installed; installed plug-ins: {names}")
    try:
        return entry.load()(**config.settings)
    except Exception as error:  # a foreign module may raise anything
        raise PluginError(f"plug-in {config.name!r} ({entry.value}) cannot be created: {error}") from error


# The identity of a plug-in in digests and policies: its class and its fields, not the checks around it.


def identity(plugin: object) -> tuple[str, Sequence[object]]:
    """Return the name of a plug-in's class and its fields: of a dataclass, or attributes by name, sorted."""
    inner = getattr(plugin, "plugin", plugin)
    attributes = _attributes(inner)
    return type(inner).__name__, list(attributes.values()) if is_dataclass(inner) else sorted(attributes.items())


def described(plugin: object) -> str:
    """Return words for a plug-in, such as `Entropic(aversion=2.0)`."""
    inner = getattr(plugin, "plugin", plugin)
    shown = ", ".join(f"{name}={value!r}" for name, value in sorted(_attributes(inner).items()))
    return f"{type(inner).__name__}({shown})"


def is_plugin(measure: RiskMeasure) -> bool:
    """Return whether a risk measure was given by a user."""
    return isinstance(measure, _CheckedRiskMeasure)


def _attributes(plugin: object) -> dict[str, Any]:
    if is_dataclass(plugin):
        return {item.name: getattr(plugin, item.name) for item in fields(plugin)}
    state = object.__getstate__(plugin)  # None, a dict, or a tuple of a dict and a dict of slots
    parts = state if isinstance(state, tuple) else (state,)
    return {name: value for part in parts if part for name, value in part.items()}


def _require_plain_fields(argument: str, plugin: object) -> None:
    """Raise TypeError for a field that does not identify the plug-in, such as a generator of random numbers."""
    for name, value in _attributes(getattr(plugin, "plugin", plugin)).items():
        if not _is_plain(value):
            raise TypeError(
                f"{argument}: the field `{name}` of {type(plugin).__name__} is {_named(value)}; "
                "expected numbers, strings, arrays, or tuples, lists and dictionaries of them"
            )


def _is_plain(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str | np.ndarray | np.generic)


# What plug-ins get: views that cannot be written to. One that changed its arguments would change cuts and bounds, and
# what it returned would still look right.


def _read_only(values: Any) -> Any:
    if not isinstance(values, np.ndarray):
        return values
    view = values.view()
    view.flags.writeable = False
    return view


# Checks of what plug-ins return.


def _array(name: str, value: object, shape: tuple[int, ...], dtype: Any) -> Any:
    try:
        array = np.ascontiguousarray(value, dtype)
    except (TypeError, ValueError) as error:
        raise PluginError(f"{name} returned {_named(value)}, not an array of numbers: {error}") from None
    if array.shape != shape:
        raise PluginError(f"{name} returned an array of shape {array.shape}, expected {shape}")
    return array


@dataclass(frozen=True, slots=True)
class _CheckedRiskMeasure(RiskMeasure):
    """Risk measure of a user: weights must be finite, not negative, and add up to 1."""

    plugin: RiskMeasure

    @classmethod
    def of(cls, plugin: Any) -> "_CheckedRiskMeasure | None":
        return plugin if plugin is None or isinstance(plugin, cls) else cls(plugin)

    def weights(self, costs: Floats) -> Floats:
        return self._checked("weights", self.plugin.weights(_read_only(costs)), costs.shape)

    def spectral_weights(self, openings: int) -> Floats | None:
        weights = self.plugin.spectral_weights(openings)
        return None if weights is None else self._checked("spectral_weights", weights, (openings,))

    def weights_for(self, costs: Floats, probabilities: Floats) -> Floats:
        weights = self.plugin.weights_for(_read_only(costs), _read_only(probabilities))
        return self._checked("weights_for", weights, costs.shape)

    def _checked(self, method: str, weights: object, shape: tuple[int, ...]) -> Floats:
        name = f"{type(self.plugin).__name__}.{method}"
        checked: Floats = _array(name, weights, shape, np.float64)
        if not np.isfinite(checked).all():
            raise PluginError(f"{name} returned a weight that is not finite")
        if (checked < 0.0).any():
            raise PluginError(f"{name} returned a negative weight: {checked.min():g}")
        sums = checked.sum(axis=-1).reshape(-1)
        worst = float(sums[np.abs(sums - 1.0).argmax()]) if sums.size else 1.0
        if abs(worst - 1.0) > WEIGHT_TOLERANCE:
            raise PluginError(f"{name} returned weights whose sum is {worst:.12g}, not 1")
        return checked


@dataclass(frozen=True, slots=True)
class _CheckedStoppingRule(StoppingRule):
    """Stopping rule of a user: it gives a reason as a text, or None."""

    plugin: StoppingRule

    @classmethod
    def of(cls, plugin: StoppingRule) -> StoppingRule:
        """Return the rule with checks around it; the rules of config.json, and those derived from them, as they are."""
        return plugin if isinstance(plugin, (cls, *STOPPING_RULES.values())) else cls(plugin)

    @property
    def kind(self) -> StopKind:
        return self.plugin.kind

    @property
    def reads_first_stage(self) -> bool:
        return self.plugin.reads_first_stage

    def needs_simulation(self, history: Sequence[Iteration]) -> int:
        return self.plugin.needs_simulation(history)

    def needs_bound(self, history: Sequence[Iteration]) -> BoundPlan | None:
        return self.plugin.needs_bound(history)

    def resumed(self, spent_s: float) -> "_CheckedStoppingRule":
        return _CheckedStoppingRule(self.plugin.resumed(spent_s))

    def reason_to_stop(
        self, history: Sequence[Iteration], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        reason: object = self.plugin.reason_to_stop(history, _read_only(simulated), bound)
        if reason is None or isinstance(reason, str):
            return reason
        name = type(self.plugin).__name__
        raise PluginError(
            f"{name}.reason_to_stop returned {reason!r}; expected a reason as a text, or None to continue"
        )


@dataclass(frozen=True, slots=True)
class _CheckedCutSelection(CutSelection):
    """Cut selection of a user: one flag for each cut, 0 or 1."""

    plugin: CutSelection

    @classmethod
    def of(cls, plugin: Any) -> "_CheckedCutSelection | None":
        return plugin if plugin is None or isinstance(plugin, cls) else cls(plugin)

    @property
    def spares_first_stage(self) -> bool:
        return self.plugin.spares_first_stage

    @property
    def reads_states(self) -> bool:
        return self.plugin.reads_states

    def new_state(self) -> object | None:
        return self.plugin.new_state()

    def update(self, state: Any, cuts: CutsOfStage, states: Floats, created: Ints, iteration: int) -> ByteFlags:
        arguments = cuts, _read_only(states), _read_only(created), iteration
        return self._flags("update", self.plugin.update(state, *arguments), created)

    def is_due(self, iteration: int) -> bool:
        return bool(self.plugin.is_due(iteration))

    def choose(self, cuts: CutsOfStage, states: Floats, created: Ints, iteration: int, active: ByteFlags) -> ByteFlags:
        arguments = cuts, _read_only(states), _read_only(created), iteration, _read_only(active)
        return self._flags("choose", self.plugin.choose(*arguments), created)

    def _flags(self, method: str, flags: object, created: Ints) -> ByteFlags:
        name = f"{type(self.plugin).__name__}.{method}"
        numbers = _array(name, flags, created.shape, np.float64)
        if not ((numbers == 0.0) | (numbers == 1.0)).all():
            raise PluginError(f"{name} returned values other than 0 and 1")
        chosen: ByteFlags = numbers.astype(np.uint8)
        return chosen


@dataclass(frozen=True, slots=True)
class _CheckedSampler:
    """Sampler of a user for a study. openings: their number, by stage. width: of a noise vector."""

    plugin: Any
    openings: tuple[int, ...]
    width: int

    @property
    def is_in_sample(self) -> bool:
        return bool(self.plugin.is_in_sample)

    @property
    def is_representative(self) -> bool:
        return self.is_in_sample and bool(getattr(self.plugin, "is_representative", False))

    def sample(self, iteration: int, scenarios: Sequence[int] | Indices, stage: int) -> Floats:
        name = f"{type(self.plugin).__name__}.sample"
        drawn = self.plugin.sample(iteration, _read_only(scenarios), stage)
        noise: Floats = _array(name, drawn, (len(scenarios), self.width), np.float64)
        if not np.isfinite(noise).all():
            raise PluginError(f"{name} returned noise that is not finite, at stage index {stage}")
        return noise

    def opening_indices(self, iteration: int, scenarios: Sequence[int] | Indices, stage: int) -> Indices:
        name = f"{type(self.plugin).__name__}.opening_indices"
        drawn = np.asarray(self.plugin.opening_indices(iteration, _read_only(scenarios), stage))
        if drawn.dtype.kind not in "iu":
            raise PluginError(f"{name} returned numbers of type {drawn.dtype}, not integers")
        indices: Indices = _array(name, drawn, (len(scenarios),), np.int64)
        if ((indices < 0) | (indices >= self.openings[stage])).any():
            last = self.openings[stage] - 1
            raise PluginError(f"{name} returned an opening that stage index {stage} does not have (0 to {last})")
        return indices

    def for_scenarios(self, total: int) -> "_CheckedSampler":
        return replace(self, plugin=self.plugin.for_scenarios(total))


def sampler_for(sampler: Any, noise: NoiseModel) -> Sampler:
    """Return the sampler of a user for a study, with checks around it. Raises PluginError if a method is missing."""
    study_sampler = sampler.for_study(noise) if hasattr(sampler, "for_study") else sampler
    missing = [name for name in SAMPLER_METHODS if not hasattr(study_sampler, name)]
    if missing:
        raise PluginError(
            f"{type(sampler).__name__}.for_study returned {_named(study_sampler)}, which has no {missing[0]}"
        )
    return _CheckedSampler(study_sampler, tuple(len(openings) for openings in noise.openings), noise.layout.dimension)

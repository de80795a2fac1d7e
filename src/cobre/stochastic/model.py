"""The noise model of a study: openings, samplers, and the mapping from noise vectors to m3/s and MW."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats, Ints
from cobre.core.case import Case
from cobre.records import dataclass
from cobre.stochastic import NoiseNote
from cobre.stochastic.independent_noise import availability_class, load_class
from cobre.stochastic.inflows import describe_inflows
from cobre.stochastic.layout import NoiseLayout, noise_layout
from cobre.stochastic.par.initial_lags import LagSteps, next_lags
from cobre.stochastic.par.model import inflow_memory, inflow_model
from cobre.stochastic.sampling import SourceData, correlation, openings, sampler, training_libraries


@dataclass(frozen=True, slots=True)
class Realisation:
    """Inflows, loads and availabilities of noise vectors, one row for each draw; inflows without autoregression."""

    inflow_m3s: Floats
    load_mw: Floats
    availability: Floats


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """Arrays by stage: inflows (stage, [lag,] hydro), loads (stage, bus), availability factors (stage, source).

    `lag_coefficients` are those of lags; `ar_coefficients` those of the slots of the state, which are the lags unless
    `lag_steps` says how slots change. `openings` are noise vectors (opening, entity) of each stage, equally likely.
    The samplers give the noise of forward passes (iterations count from 1) and of simulations (iteration 0).
    `notes`: warnings for the user.
    """

    layout: NoiseLayout
    ar_coefficients: Floats
    lag_coefficients: Floats
    lag_steps: LagSteps | None
    inflow_base: Floats
    inflow_sigma: Floats
    initial_lags: Floats
    load_mean: Floats
    load_std: Floats
    availability_mean: Floats
    availability_std: Floats
    openings: tuple[Floats, ...]
    training_sampler: Any  # a NoiseSampler, or a plug-in with its methods
    simulation_sampler: Any
    notes: tuple[NoiseNote, ...] = ()

    @property
    def num_stages(self) -> int:
        """T, the number of stages of the study."""
        return len(self.openings)

    @property
    def num_hydros(self) -> int:
        """N, the number of hydro plants of the study."""
        return len(self.layout.hydro_ids)

    @property
    def max_order(self) -> int:
        """Lags of each hydro in the state, or slots."""
        return int(self.ar_coefficients.shape[1])

    def lag_changes(self, stage: int) -> tuple[Ints, Floats]:
        """Return by lag slot at a stage the slot that it continues, and its share of the inflow.

        Empty where lags just move on.
        """
        if self.lag_steps is None:
            return np.zeros(0, np.int32), np.zeros(0)
        steps = self.lag_steps
        return np.ascontiguousarray(steps.taken_from[stage]), np.ascontiguousarray(steps.inflow_share[stage])

    def next_lags(self, stage: int, lags: Floats, inflow: Floats) -> Floats:
        """Return lags (lag, hydro) of the next stage, after a stage with some inflows (hydro)."""
        return next_lags(self.lag_steps, stage, lags, inflow)

    def realise(self, stage: int, noise: Floats) -> Realisation:
        """Turn noise vectors (draw, entity) of a stage into inflows, loads and availability factors."""
        layout = self.layout
        inflow = self.inflow_base[stage] + self.inflow_sigma[stage] * noise[:, layout.inflow]
        load = _mean_plus_noise(
            self.load_mean[stage], self.load_std[stage], layout.bus_positions, noise[:, layout.load]
        )
        availability = _mean_plus_noise(
            self.availability_mean[stage], self.availability_std[stage], layout.ncs_positions, noise[:, layout.ncs]
        )
        # Noise must not make a load negative; a load without noise may be given below zero, and then feeds the bus.
        drawn = layout.bus_positions
        load[:, drawn] = np.maximum(load[:, drawn], 0.0)
        return Realisation(inflow, load, np.clip(availability, 0.0, 1.0))

    def lag_inflow(self, stage: int, lags: Floats) -> Floats:
        """Return the part of the inflows that follows from `lags` (draw, lag, hydro), added from the nearest on."""
        total = np.zeros((len(lags), self.num_hydros))
        for lag in range(self.max_order):
            total = total + self.ar_coefficients[stage, lag] * lags[:, lag]
        return total


def _mean_plus_noise(mean: Floats, std: Floats, positions: NDArray[np.intp], noise: Floats) -> Floats:
    """Return mean + std * noise, for the entities that have noise."""
    values = np.repeat(mean[None, :], len(noise), axis=0)
    values[:, positions] = values[:, positions] + std[positions] * noise
    return values


def build_noise_model(case: Case) -> NoiseModel:
    """Build the noise model of a study. Raises `NoiseModelError` for invalid data."""
    libraries = training_libraries(case)
    description = describe_inflows(case, libraries.get("inflow"))
    inflow = inflow_model(description.statistics, description.terms, description.periods)
    load, availability = load_class(case), availability_class(case)
    load = load.of_library(libraries["load"]) if "load" in libraries else load
    availability = availability.of_library(libraries["ncs"]) if "ncs" in libraries else availability
    hydro_ids = [hydro.id for hydro in case.system.hydros]
    layout = noise_layout(hydro_ids, load.entity_ids, load.has_noise, availability.entity_ids, availability.has_noise)
    memory = inflow_memory(case, inflow.psi, description.periods, may_miss=description.has_fitted_terms)
    profiles = correlation(case, layout, description.correlation)
    data = SourceData(case, layout, profiles, inflow, memory, load, availability)
    notes = (*description.notes, *inflow.notes, *memory.notes, *profiles.notes)
    return _assemble(data, openings(data, libraries), notes)


def _assemble(data: SourceData, tree: tuple[Floats, ...], notes: tuple[NoiseNote, ...]) -> NoiseModel:
    inflow = data.inflow
    return NoiseModel(
        layout=data.layout,
        ar_coefficients=data.memory.psi,
        lag_coefficients=inflow.psi,
        lag_steps=data.memory.steps,
        inflow_base=inflow.base_m3s,
        inflow_sigma=inflow.sigma_m3s,
        initial_lags=data.memory.first,
        load_mean=data.load.mean,
        load_std=data.load.std,
        availability_mean=data.availability.mean,
        availability_std=data.availability.std,
        openings=tree,
        training_sampler=sampler(data, tree, is_training=True),
        simulation_sampler=sampler(data, tree, is_training=False),
        notes=notes,
    )

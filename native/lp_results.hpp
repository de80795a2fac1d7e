// Results of the LP kernel as Python sees them: NumPy arrays that it fills.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <vector>

#include "lp_engine.hpp"

namespace cobre::lp {

// Which results a call asks for, beyond objectives.
struct Outputs {
    bool basis, solution, gradient;
};

// One row a solve, in the order of the chains or as `result_index` says; bases have one row a chain.
struct ChainResults {
    nanobind::object objective, future_cost, gradient, decided, inflow, primal, dual, basis_status, basis_cuts;
    SolveCounts counts;
    bool has_stray_coefficients = false;  // of cuts that were made

    // New arrays; those that are not wanted have no rows.
    Results allocate(const StageModel& stage, size_t chains, size_t solves, Outputs outputs);
    // (objective, gradient, future_cost, decided, inflow, primal, dual, basis_status, basis_cuts) in memory that
    // several processes share; what is None is not stored.
    Results use_shared(const StageModel& stage, const nanobind::tuple& tables, size_t chains, size_t solves);
};

// Paths through several stages; the first axis is the stage.
struct PathResults {
    nanobind::object states, objective, future_cost;
    nanobind::list basis_status, basis_cuts;
    SolveCounts counts;

    void allocate(const std::vector<PathStage>& stages, Py_ssize_t paths, Py_ssize_t dimension);
    // (states, objective, future_cost, basis_status, basis_cuts) in memory that several processes share.
    void use_shared(const nanobind::tuple& tables);
    // Point every stage at its part of the arrays; gives the array of states.
    double* point(std::vector<PathStage>& stages, size_t paths, size_t dimension) const;
};

}  // namespace cobre::lp

// Results of the LP kernel as Python sees them: NumPy arrays that it fills.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <vector>

#include "lp_engine.hpp"
#include "lp_records.hpp"

namespace cobre::lp {

// One row a solve, in the order of the chains or as `result_index` says. Where tables are shared there are objectives,
// only gradients and bases, and the rest is None.
struct ChainResults {
    nanobind::object objective, future_cost, gradient, decided, inflow, primal, dual, basis_status, basis_cuts;
    SolveCounts counts;
    bool has_stray_coefficients = false;  // of cuts that were made

    // New arrays; those that are not wanted have no rows.
    Results allocate(const StageModel& stage, size_t solves, const Outputs& outputs);
    // Arrays in memory that several processes share.
    Results use(const StageModel& stage, size_t solves, const SharedBatch& shared);
};

// Paths through several stages: arrays whose first axis is the stage, or lists by stage. What is not wanted is None, or
// an empty list.
struct PathResults {
    nanobind::object states, objective, future_cost, leaving;
    nanobind::list basis_status, basis_cuts, inflow, primal, dual;
    SolveCounts counts;

    void allocate(const std::vector<PathStage>& stages, size_t paths, size_t dimension, const PathOutputs& outputs);
    void use(const SharedPaths& shared);
    // Point every stage at its part of the arrays.
    void point(std::vector<PathStage>& stages, size_t paths) const;
    // The numbers of `states` or `leaving`; null if they are not wanted.
    static double* table(const nanobind::object& array, const char* name, size_t size);
};

}  // namespace cobre::lp

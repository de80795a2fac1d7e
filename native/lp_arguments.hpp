// What Python passes to the LP kernel: read from NumPy arrays, checked, never copied.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <span>

#include "lp_arrays.hpp"
#include "lp_cut_target.hpp"
#include "lp_cuts.hpp"
#include "lp_records.hpp"
#include "lp_solver.hpp"
#include "lp_stage.hpp"
#include "thread_pool.hpp"

namespace cobre::lp {

// A stage and the arrays that hold its numbers.
struct BoundStage {
    explicit BoundStage(nanobind::dict given);

    StageModel model;
    nanobind::dict parts;  // keeps the arrays alive: `model` has spans into them
};

// The cuts of a stage, or any cuts on states of this dimension.
CutView read_cuts(Int dimension, const CutRows& cuts);

// Chains of a stage. Every index is checked against the tables that it points into.
ChainBatch read_chains(const StageModel& stage, const Chains& chains);

void read_realisations(ChainBatch& batch, const StageModel& stage, const Realisations& realisations,
                       const Array<Int>& index);
// index: by chain, the basis it starts from; empty when the caller sets it.
void read_bases(ChainBatch& batch, const StageModel& stage, const Bases& bases, std::span<const Int> index);

// The counter in shared memory from which several processes take their chains.
WorkCounter* read_counter(nanobind::handle counter);

// Where the cuts of a batch go; null where none are wanted. The batch has the same number of chains for each trial
// point, and its results are ordered by trial point, then by opening. finished: counters of the chains of each trial
// point in memory that several processes share; None: this process solves all.
std::unique_ptr<CutTarget> read_cut_target(const Outputs& outputs, const StageModel& stage, const ChainBatch& batch,
                                           const Results& results);

}  // namespace cobre::lp

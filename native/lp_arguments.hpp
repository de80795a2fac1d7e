// What Python passes to the LP kernel: read from NumPy arrays, checked, never copied.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <span>

#include "lp_arrays.hpp"
#include "lp_cut_target.hpp"
#include "lp_cuts.hpp"
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

// The cuts of a stage. rows: by component of the state, its row in the chunks; None: all components have one, in order.
CutView read_cuts(Int dimension, const nanobind::list& chunks, Int cuts, const nanobind::object& rows,
                  nanobind::handle selected);

void read_chains(ChainBatch& batch, const StageModel& stage, const Array<double>& states, Int chains_per_point,
                 const Array<Int>& start, const Array<Int>& realisation_index, size_t bases);
void read_realisations(ChainBatch& batch, const StageModel& stage, const Array<Int>& realisation_index,
                       nanobind::handle inflow, nanobind::handle load, nanobind::handle availability);
// index: by chain, the basis it starts from; empty when the caller sets it.
void read_bases(ChainBatch& batch, const StageModel& stage, nanobind::handle status, nanobind::handle cuts,
                std::span<const Int> index);
void read_result_index(ChainBatch& batch, const nanobind::object& result_index, size_t solves);

// The counter in shared memory from which several processes take their chains; null for None: this process solves all.
WorkCounter* read_counter(const nanobind::object& counter);

// (spectral_weights, chunks, first_slot, rows): where the cuts of a batch go; null for None. The batch has the same
// number of chains for each trial point, and its results are ordered by trial point, then by opening. finished:
// counters of the chains of each trial point in memory that several processes share; None: this process solves all.
std::unique_ptr<CutTarget> read_cut_target(const nanobind::object& given, const nanobind::object& finished,
                                           const StageModel& stage, const ChainBatch& batch, const Results& results);

}  // namespace cobre::lp

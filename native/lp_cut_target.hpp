// Cuts of a backward pass, made where the solves are done: the thread that solves the last chain of a trial point
// makes its cut.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lp_solver.hpp"
#include "thread_pool.hpp"

namespace cobre::lp {

// Where the cuts of the stage before go, one for each trial point. The chains of a trial point are consecutive; they
// may be solved by several threads, and by several processes that see the same tables and counters.
class CutTarget {
public:
    // The columns of one chunk of the pool.
    struct Chunk {
        double* numbers;  // rows x width
        size_t width;
    };

    // spectral_weights: by descending cost of the openings. finished: by trial point, how many of
    // its chains are solved, 0 at first; null: no other process solves any. rows: by component, its row of the chunks,
    // -1 where none is stored; empty: the row 1 + component.
    CutTarget(std::span<const double> spectral_weights, size_t points, WorkCounter* finished, std::vector<Chunk> chunks,
              size_t first_slot, std::span<const Int> rows, size_t dimension);

    // The results of a chain are there; makes the cut when it was the last chain of its trial point.
    void finish_chain(Int chain, const ChainBatch& batch, const Results& results);
    // Whether some cut has a coefficient that is not 0 for a component that is not stored. To be read after the solves:
    // relaxed, because the thread pool has waited for the threads that set it.
    bool has_stray_coefficients() const { return has_stray_coefficients_.load(std::memory_order_relaxed); }

private:
    void make_cut(size_t point, const double* state, const Results& results);
    std::vector<double> weights(const double* costs) const;
    void write(size_t slot, const std::vector<double>& cut);

    std::span<const double> spectral_weights_;
    bool is_even_;  // all openings have the same weight
    std::vector<WorkCounter> own_finished_;
    WorkCounter* finished_;
    std::vector<Chunk> chunks_;
    size_t first_slot_;
    std::span<const Int> rows_;
    size_t dimension_;
    std::atomic<bool> has_stray_coefficients_{false};
};

}  // namespace cobre::lp

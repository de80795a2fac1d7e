#include "lp_cut_target.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lp_cut_average.hpp"

namespace cobre::lp {

CutTarget::CutTarget(std::span<const double> spectral_weights, size_t points, WorkCounter* finished,
                     std::vector<Chunk> chunks, size_t first_slot, std::span<const Int> rows, size_t dimension)
    : spectral_weights_(spectral_weights),
      is_even_(std::adjacent_find(spectral_weights.begin(), spectral_weights.end(), std::not_equal_to<>()) ==
               spectral_weights.end()),
      own_finished_(finished ? 0 : points),
      finished_(finished ? finished : own_finished_.data()),
      chunks_(std::move(chunks)),
      first_slot_(first_slot),
      rows_(rows),
      dimension_(dimension) {}

void CutTarget::finish_chain(Int chain, const ChainBatch& batch, const Results& results) {
    const auto point = static_cast<size_t>(chain / batch.chains_per_point);
    // acquire and release: the results of the point's other chains, which another thread may have solved, are read
    // next.
    if (finished_[point].fetch_add(1, std::memory_order_acq_rel) + 1 < batch.chains_per_point) return;
    make_cut(point, batch.states + point * dimension_, results);
}

void CutTarget::make_cut(size_t point, const double* state, const Results& results) {
    const size_t openings = spectral_weights_.size(), first = point * openings;
    const double* const costs = results.objective + first;
    const std::vector<double> weight = weights(costs);
    std::vector<double> cut(1 + dimension_);
    average_cuts({1, openings, dimension_, costs, weight.data(), results.gradient + first * dimension_, state},
                 cut.data());
    write(first_slot_ + point, cut);
}

// The weight of each opening. Openings of equal cost keep their order.
std::vector<double> CutTarget::weights(const double* costs) const {
    std::vector<double> weight(spectral_weights_.begin(), spectral_weights_.end());
    if (is_even_) return weight;
    std::vector<size_t> by_cost(weight.size());  // openings, the most expensive one first
    std::iota(by_cost.begin(), by_cost.end(), size_t{0});
    std::stable_sort(by_cost.begin(), by_cost.end(), [&](size_t a, size_t b) { return costs[a] > costs[b]; });
    for (size_t position = 0; position < by_cost.size(); ++position)
        weight[by_cost[position]] = spectral_weights_[position];
    return weight;
}

void CutTarget::write(size_t slot, const std::vector<double>& cut) {
    auto chunk = chunks_.begin();
    for (; slot >= chunk->width; ++chunk) slot -= chunk->width;
    chunk->numbers[chunk_index(0, chunk->width, slot)] = cut[0];
    for (size_t component = 0; component < dimension_; ++component) {
        const Int row = rows_.empty() ? static_cast<Int>(1 + component) : rows_[component];
        if (row >= 0) chunk->numbers[chunk_index(static_cast<size_t>(row), chunk->width, slot)] = cut[1 + component];
        // relaxed: the thread pool publishes it with the results
        else if (cut[1 + component] != 0.0) has_stray_coefficients_.store(true, std::memory_order_relaxed);
    }
}

}  // namespace cobre::lp

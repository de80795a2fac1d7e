#include "lp_cuts.hpp"

#include <algorithm>
#include <utility>

#include "lp_kernels.hpp"

namespace cobre::lp {

namespace {

constexpr Int kTile = 32;  // components whose coefficients stay in the nearest cache while vectors take turns

}  // namespace

CutView::CutView(std::vector<CutChunk> chunks, Int count, const Int* row_of, const uint8_t* selected)
    : chunks_(std::move(chunks)), count_(count), row_of_(row_of), is_selected_(selected) {
    for (const CutChunk& chunk : chunks_)
        for (Int first = 0; first < chunk.width; first += kCutsPerBlock)
            blocks_.push_back({chunk.data + first, chunk.width});
    find_runs();
}

void CutView::intercepts(double* out) const {
    Int start = 0;
    for (const CutChunk& chunk : chunks_) {
        if (start >= count_) return;
        std::copy_n(chunk.data, std::min(chunk.width, count_ - start), out + start);
        start += chunk.width;
    }
}

// Blocks without a selected cut are skipped: after cut selection these are most of a pool.
void CutView::find_runs() {
    Int start = 0;
    for (const CutChunk& chunk : chunks_) {
        bool is_open = false;
        for (Int first = 0; first < chunk.width && start + first < count_; first += kCutsPerBlock) {
            const Int length = std::min(kCutsPerBlock, count_ - start - first);
            const uint8_t* flags = is_selected_ + start + first;
            const bool has_cuts = std::any_of(flags, flags + length, [](uint8_t flag) { return flag != 0; });
            if (has_cuts && is_open) runs_.back().length += length;
            else if (has_cuts) runs_.push_back({chunk.data + first, chunk.width, start + first, length});
            is_open = has_cuts;
        }
        start += chunk.width;
    }
}

// Cut by cut the components are added in ascending order, whatever the tiles: the bits do not depend on the number of
// vectors.
void CutView::add_products(Int first, Int n, const double* x, double* out, Int vectors) const {
    const auto count = static_cast<size_t>(count_);
    for (const Run& run : runs_)
        for (Int begin = first; begin < first + n; begin += kTile)
            for (Int vector = 0; vector < vectors; ++vector)
                for (Int component = begin; component < std::min(begin + kTile, first + n); ++component) {
                    const double factor = x[static_cast<size_t>(vector) * n + component - first];
                    const Int row = row_of(component);
                    if (factor == 0.0 || row < 0) continue;
                    add_scaled(out + vector * count + run.start, factor,
                               run.data + static_cast<size_t>(row) * run.width, static_cast<size_t>(run.length));
                }
}

}  // namespace cobre::lp

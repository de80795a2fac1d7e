#include "lp_cuts.hpp"

#include <algorithm>
#include <utility>

#include "lp_kernels.hpp"

namespace cobre::lp {

CutView::CutView(std::vector<CutChunk> chunks, Int count, const Int* row_of, const uint8_t* in_play)
    : chunks_(std::move(chunks)), count_(count), row_of_(row_of), in_play_(in_play) {
    for (const CutChunk& chunk : chunks_)
        for (Int first = 0; first < chunk.width; first += kCutsPerBlock) blocks_.push_back({chunk.data + first, chunk.width});
}

void CutView::intercepts(double* out) const {
    Int start = 0;
    for (const CutChunk& chunk : chunks_) {
        if (start >= count_) return;
        std::copy_n(chunk.data, std::min(chunk.width, count_ - start), out + start);
        start += chunk.width;
    }
}

void CutView::add_products(Int first, Int n, const double* x, double* out) const {
    Int start = 0;
    for (const CutChunk& chunk : chunks_) {
        if (start >= count_) return;
        const Int width = std::min(chunk.width, count_ - start);
        for (Int component = first; component < first + n; ++component) {
            const double factor = x[component - first];
            const Int row = row_of(component);
            if (factor == 0.0 || row < 0) continue;
            add_scaled(out + start, factor, chunk.data + static_cast<size_t>(row) * chunk.width, static_cast<size_t>(width));
        }
        start += chunk.width;
    }
}

}  // namespace cobre::lp

#include "lp_cuts.hpp"

#include <algorithm>

#include "lp_kernels.hpp"

namespace cobre::lp {

void CutView::intercepts(double* out) const {
    for (Int start = 0; start < count_; start += kCutsPerChunk) {
        const double* chunk = chunk_of(start);
        std::copy(chunk, chunk + std::min(kCutsPerChunk, count_ - start), out + start);
    }
}

void CutView::add_products(Int first, Int n, const double* x, double* out) const {
    for (Int start = 0; start < count_; start += kCutsPerChunk) {
        const Int width = std::min(kCutsPerChunk, count_ - start);
        for (Int component = first; component < first + n; ++component) {
            const double factor = x[component - first];
            if (factor == 0.0) continue;
            add_scaled(out + start, factor, chunk_of(start) + (1 + component) * kCutsPerChunk, static_cast<size_t>(width));
        }
    }
}

}  // namespace cobre::lp

// The cuts of one stage as they lie in the pool: chunks of a fixed number of cuts, component after component, so that
// all cuts of a chunk are evaluated side by side while the order of additions stays that of the components.
#pragma once

#include <cstdint>
#include <vector>

#include "highs_api.hpp"

namespace cobre::lp {

constexpr Int kCutsPerChunk = 256;

// theta >= intercept + coefficients . outgoing state. Row 0 of a chunk holds the intercepts, row 1 + i component i.
class CutView {
   public:
    CutView(std::vector<const double*> chunks, Int count, Int dimension, const uint8_t* in_play)
        : chunks_(std::move(chunks)), count_(count), dimension_(dimension), in_play_(in_play) {}

    Int count() const { return count_; }
    bool is_in_play(Int cut) const { return in_play_[cut]; }
    double intercept(Int cut) const { return chunk_of(cut)[cut % kCutsPerChunk]; }
    double coefficient(Int cut, Int component) const {
        return chunk_of(cut)[(1 + component) * kCutsPerChunk + cut % kCutsPerChunk];
    }

    // out[cut] = intercept of every cut
    void intercepts(double* out) const;
    // out[cut] += sum over components first .. first + n of coefficient * x
    void add_products(Int first, Int n, const double* x, double* out) const;

   private:
    const double* chunk_of(Int cut) const { return chunks_[static_cast<size_t>(cut / kCutsPerChunk)]; }

    std::vector<const double*> chunks_;
    Int count_;
    Int dimension_;
    const uint8_t* in_play_;
};

}  // namespace cobre::lp

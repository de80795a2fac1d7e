// The chains of a backward pass: from what a trial point's path met to the wettest opening, and to the driest.
#pragma once

#include <cstddef>
#include <span>

#include "highs_api.hpp"

namespace cobre::lp {

// Where the chains go; two for each point.
struct FanOut {
    Int* start;        // 2 x points + 1
    Int* items;        // points x openings: which opening
    Int* places;       // points x openings: where its results belong, by point and opening
    Int* basis_index;  // 2 x points: the point
};

// `order`: openings from the driest to the wettest. `met`: by point, a place in the order.
void fan_out(std::span<const Int> order, std::span<const Int> met, const FanOut& out);

}  // namespace cobre::lp

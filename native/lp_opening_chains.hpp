// The chains of a backward pass: from the opening that a trial point's forward path sampled to the wettest one, and to
// the driest. Neighbours in a chain differ little, so that few pivots lead from one to the next.
#pragma once

#include <span>

#include "highs_api.hpp"

namespace cobre::lp {

// Where the chains go, two for each trial point; memory belongs to the caller.
struct OpeningChains {
    Int* start;              // 2 x points + 1
    Int* realisation_index;  // points x openings: which opening
    Int* result_index;       // points x openings: row of its results, by point and opening
    Int* basis_index;        // 2 x points: the basis to start from, which is the point's
};

// order: openings from the driest to the wettest. sampled: by point, a position in that order.
void build_opening_chains(std::span<const Int> order, std::span<const Int> sampled, const OpeningChains& out);

}  // namespace cobre::lp

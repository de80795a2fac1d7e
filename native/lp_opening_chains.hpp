// The chains of a backward pass: which openings of a trial point are solved one after the other, each from the basis of
// the one before. Neighbours in a chain differ little, so that few pivots lead from one to the next.
//
// In small stages two chains begin at the opening that the forward path sampled and go to the wettest one and to the
// driest. In large ones a trial point has a given number of blocks, each a chain that begins with a jump from the
// sampled opening; they are chosen by distances between openings, so that jumps and steps are short.
#pragma once

#include <span>
#include <vector>

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

// How far realisations (rows of `others`) are from openings, rows x openings: the sum over all components of how much
// they differ, each divided by the 3/4th power of its standard deviation over the openings.
struct NoiseTable {
    const double* value;  // rows x width
    size_t rows, width;
};
void measure_distances(const NoiseTable& openings, const NoiseTable& others, double* distance);

// The openings in blocks, each in the order in which it is solved. distance: openings x openings, symmetric. Blocks are
// joined from single openings by savings (Clarke and Wright), where the depot is the opening `sampled`. limits: by
// block, the longest first, how many openings it may have; where blocks of such sizes cannot be joined to so few, all
// may have one more.
std::vector<std::vector<Int>> opening_blocks(std::span<const double> distance, Int sampled, std::vector<Int> limits);

}  // namespace cobre::lp

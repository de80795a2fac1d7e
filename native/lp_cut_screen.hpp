// A copy of the selected cuts in single precision, which tells the few cuts that may be the highest at a point: half
// the memory and twice the lanes of a scan in double precision. Bounds on its error make sure that no cut is missed;
// the candidates are then evaluated exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lp_cuts.hpp"

namespace cobre::lp {

class CutScreen {
public:
    // rows: of the chunks of the pool, the one of the intercepts included.
    CutScreen(const CutView& cuts, size_t rows);

    // One number for each cut of a tile, on cache lines of their own.
    static constexpr size_t kLanes = 64;
    struct alignas(64) Tile {
        float lane[kLanes];
    };

    // What is known of the values of cuts in a solve, before there is a point: intercepts and the first terms.
    struct Known {
        std::vector<Tile> sums;
        std::vector<double> size;  // by tile: a bound on the sum of the sizes of all terms
        size_t terms = 0;
    };
    // For several solves: the terms that all of them have, then those of each. The numbers are read once.
    void sum_known(const CutTerms& common, std::span<const CutTerms> own, std::span<Known> known) const;

    // What a search computes on its way: one for each thread, so that searches allocate nothing.
    struct Workspace {
        std::vector<float> factors;
        std::vector<float> highest;  // by tile
        std::vector<double> margin;  // by tile: a bound on the error of its sums
        std::vector<double> most;    // by tile: a bound on all values
        struct Candidate {
            Int cut;
            double most;  // a bound on its value
        };
        std::vector<Candidate> candidates;
    };
    // All cuts that may be the highest of those above a limit, in any order: given the other terms of their values, and
    // without those that are excluded (by cut). They are in `workspace.candidates`.
    void find_candidates(const Known& known, const CutTerms& terms, double limit, const uint8_t* is_excluded,
                         Workspace& workspace) const;

private:
    void find_lanes(const CutView& cuts);
    void copy_tile(const CutView& cuts, size_t tile);
    void add_sizes(const CutTerms& terms, std::vector<double>& sizes) const;
    void search_tile(const Known& known, const CutTerms& terms, size_t tile, const uint8_t* is_excluded, double& lower,
                     Workspace& workspace) const;
    const Tile* rows_of(size_t tile) const { return numbers_.data() + tile * rows_; }

    size_t rows_, tiles_ = 0;
    std::vector<Int> cuts_;       // tiles x lanes; -1: none
    std::vector<Int> first_cut_;  // by block of lanes, which is one of the pool
    std::vector<Tile> numbers_;   // tiles x rows
    std::vector<double> size_;    // rows x tiles: bounds on the sizes of numbers
};

}  // namespace cobre::lp

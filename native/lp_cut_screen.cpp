#include "lp_cut_screen.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "lp_kernels.hpp"
#include "wide_instructions.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cobre::lp {

namespace {

using Tile = CutScreen::Tile;
constexpr size_t kLanes = CutScreen::kLanes;

constexpr float kNoValue = -std::numeric_limits<float>::infinity();
constexpr double kNoBound = std::numeric_limits<double>::infinity();

// A sum of n terms in single precision has n additions, and each term a product and two conversions, all with a
// relative error of up to 2^-24. An eighth more covers products of errors, the rounding of bounds, and the error of the
// exact sum.
constexpr double kUnitError = 0x1p-24 * 1.125;
constexpr size_t kOtherErrors = 8;
// Added to every size. Where a number or a product underflows (below 1.2e-38) its error is not relative to it; but the
// unit error times this is larger.
constexpr double kTinySize = 1e-24;
// With sizes beyond it single precision may overflow: then there is no bound.
constexpr double kLargestSize = 1e37;

double bound_of(double size) { return size <= kLargestSize ? size + kTinySize : kNoBound; }

// Terms of sums over rows of a tile. The bits of estimates may differ between processors: bounds on their errors hold
// for any order of additions.
struct FloatTerms {
    const float* factors;
    const Int* rows;
    size_t count;
};

void sum_tile_plain(const Tile& base, const FloatTerms& terms, const Tile* rows, Tile& out) {
    out = base;
    for (size_t term = 0; term < terms.count; ++term) {
        const Tile& row = rows[terms.rows[term]];
        for (size_t lane = 0; lane < kLanes; ++lane) out.lane[lane] += terms.factors[term] * row.lane[lane];
    }
}

#if defined(__x86_64__)

// Looked up once: kernels are called millions of times a second.
const bool use_avx2 = wide_instructions_allowed() && has_avx2();

constexpr size_t kVectors = kLanes / 8;

// In registers while the rows take turns.
__attribute__((target("avx2"), always_inline)) inline void add_terms(const Tile& base, const FloatTerms& terms,
                                                                     const Tile* rows, __m256* sums) {
    for (size_t part = 0; part < kVectors; ++part) sums[part] = _mm256_load_ps(base.lane + 8 * part);
    for (size_t term = 0; term < terms.count; ++term) {
        const __m256 factor = _mm256_set1_ps(terms.factors[term]);
        const float* const row = rows[terms.rows[term]].lane;
        for (size_t part = 0; part < kVectors; ++part)
            sums[part] = _mm256_add_ps(sums[part], _mm256_mul_ps(factor, _mm256_load_ps(row + 8 * part)));
    }
}

__attribute__((target("avx2"))) void sum_tile_wide(const Tile& base, const FloatTerms& terms, const Tile* rows,
                                                   Tile& out) {
    __m256 sums[kVectors];
    add_terms(base, terms, rows, sums);
    for (size_t part = 0; part < kVectors; ++part) _mm256_store_ps(out.lane + 8 * part, sums[part]);
}

__attribute__((target("avx2"))) uint64_t sum_lanes_wide(const Tile& base, const FloatTerms& terms, const Tile* rows,
                                                        float limit, Tile& out) {
    __m256 sums[kVectors];
    add_terms(base, terms, rows, sums);
    const __m256 limits = _mm256_set1_ps(limit);
    uint64_t found = 0;
    for (size_t part = 0; part < kVectors; ++part) {
        _mm256_store_ps(out.lane + 8 * part, sums[part]);
        const int lanes = _mm256_movemask_ps(_mm256_cmp_ps(sums[part], limits, _CMP_NLT_UQ));
        found |= static_cast<uint64_t>(static_cast<unsigned>(lanes)) << (8 * part);
    }
    return found;
}

__attribute__((target("avx2"))) void find_highest_wide(const Tile* base, const FloatTerms& terms, const Tile* rows,
                                                       size_t stride, size_t tiles, float* highest) {
    for (size_t tile = 0; tile < tiles; ++tile, rows += stride) {
        __m256 sums[kVectors];
        add_terms(base[tile], terms, rows, sums);
        for (size_t half = kVectors / 2; half > 0; half /= 2)
            for (size_t part = 0; part < half; ++part) sums[part] = _mm256_max_ps(sums[part], sums[part + half]);
        __m128 most = _mm_max_ps(_mm256_castps256_ps128(sums[0]), _mm256_extractf128_ps(sums[0], 1));
        most = _mm_max_ps(most, _mm_movehl_ps(most, most));
        highest[tile] = _mm_cvtss_f32(_mm_max_ss(most, _mm_movehdup_ps(most)));
    }
}

#endif

void sum_tile(const Tile& base, const FloatTerms& terms, const Tile* rows, Tile& out) {
#if defined(__x86_64__)
    if (use_avx2) return sum_tile_wide(base, terms, rows, out);
#endif
    sum_tile_plain(base, terms, rows, out);
}

// The same, and which sums are not below a limit, by bit.
uint64_t sum_lanes(const Tile& base, const FloatTerms& terms, const Tile* rows, float limit, Tile& out) {
#if defined(__x86_64__)
    if (use_avx2) return sum_lanes_wide(base, terms, rows, limit, out);
#endif
    sum_tile_plain(base, terms, rows, out);
    uint64_t found = 0;
    for (size_t lane = 0; lane < kLanes; ++lane) found |= static_cast<uint64_t>(!(out.lane[lane] < limit)) << lane;
    return found;
}

// The highest sum of every tile.
void find_highest(const Tile* base, const FloatTerms& terms, const Tile* rows, size_t stride, size_t tiles,
                  float* highest) {
#if defined(__x86_64__)
    if (use_avx2) return find_highest_wide(base, terms, rows, stride, tiles, highest);
#endif
    for (size_t tile = 0; tile < tiles; ++tile, rows += stride) {
        Tile sums;
        sum_tile_plain(base[tile], terms, rows, sums);
        highest[tile] = *std::max_element(sums.lane, sums.lane + kLanes);
    }
}

// NaN if one of the numbers is: without their signs, numbers are in the order of their bits, and NaN comes last.
double largest_size(const Tile& tile) {
    int32_t largest = 0;
    for (const float number : tile.lane) largest = std::max(largest, std::bit_cast<int32_t>(number) & 0x7fffffff);
    return std::bit_cast<float>(largest);
}

FloatTerms float_terms(const CutTerms& terms, const std::vector<float>& factors) {
    return {factors.data(), terms.rows.data(), factors.size()};
}

void take_factors(const CutTerms& terms, std::vector<float>& factors) {
    factors.resize(terms.factors.size());
    for (size_t term = 0; term < factors.size(); ++term) factors[term] = static_cast<float>(terms.factors[term]);
}

}  // namespace

CutScreen::CutScreen(const CutView& cuts, size_t rows) : rows_(rows) {
    find_lanes(cuts);
    tiles_ = cuts_.size() / kLanes;
    numbers_.resize(tiles_ * rows_);
    size_.resize(rows_ * tiles_);
    for (size_t tile = 0; tile < tiles_; ++tile) copy_tile(cuts, tile);
}

void CutScreen::find_lanes(const CutView& cuts) {
    for (Int first = 0; first < cuts.count(); first += kCutsPerBlock) {
        const size_t before = cuts_.size();
        for (Int cut = first; cut < first + kCutsPerBlock; ++cut)
            cuts_.push_back(cut < cuts.count() && cuts.is_selected(cut) ? cut : -1);
        if (*std::max_element(cuts_.begin() + static_cast<ptrdiff_t>(before), cuts_.end()) < 0) cuts_.resize(before);
        else first_cut_.push_back(first);
    }
    cuts_.resize((cuts_.size() + kLanes - 1) / kLanes * kLanes, -1);
}

// Lanes without a cut hold zeros, and an intercept that is below all others.
void CutScreen::copy_tile(const CutView& cuts, size_t tile) {
    constexpr size_t kBlocks = kLanes / kCutsPerBlock;
    const size_t first = tile * kBlocks, blocks = std::min(kBlocks, first_cut_.size() - first);
    std::vector<size_t> unused;
    for (size_t lane = 0; lane < kLanes; ++lane)
        if (cuts_[tile * kLanes + lane] < 0) unused.push_back(lane);
    for (size_t row = 0; row < rows_; ++row) {
        Tile& to = numbers_[tile * rows_ + row];
        for (size_t block = 0; block < blocks; ++block) {
            const double* const from = cuts.row_from(first_cut_[first + block], static_cast<Int>(row));
            for (size_t lane = 0; lane < kCutsPerBlock; ++lane)
                to.lane[block * kCutsPerBlock + lane] = static_cast<float>(from[lane]);
        }
        for (const size_t lane : unused) to.lane[lane] = 0.0f;
        size_[row * tiles_ + tile] = bound_of(largest_size(to));
        if (row == 0)
            for (const size_t lane : unused) to.lane[lane] = kNoValue;
    }
}

void CutScreen::add_sizes(const CutTerms& terms, std::vector<double>& sizes) const {
    for (size_t term = 0; term < terms.factors.size(); ++term)
        add_scaled(sizes.data(), bound_of(std::abs(terms.factors[term])),
                   size_.data() + static_cast<size_t>(terms.rows[term]) * tiles_, tiles_);
}

void CutScreen::sum_known(const CutTerms& common, std::span<const CutTerms> own, std::span<Known> known) const {
    std::vector<double> sizes(size_.begin(), size_.begin() + static_cast<ptrdiff_t>(tiles_));
    add_sizes(common, sizes);
    std::vector<float> common_factors;
    take_factors(common, common_factors);
    std::vector<std::vector<float>> factors(known.size());
    for (size_t solve = 0; solve < known.size(); ++solve) {
        take_factors(own[solve], factors[solve]);
        known[solve].size = sizes;
        add_sizes(own[solve], known[solve].size);
        known[solve].terms = common.factors.size() + own[solve].factors.size();
        known[solve].sums.resize(tiles_);
    }
    for (size_t tile = 0; tile < tiles_; ++tile) {
        const Tile* const rows = rows_of(tile);
        Tile sums;
        sum_tile(rows[0], float_terms(common, common_factors), rows, sums);
        for (size_t solve = 0; solve < known.size(); ++solve)
            sum_tile(sums, float_terms(own[solve], factors[solve]), rows, known[solve].sums[tile]);
    }
}

// The most promising tile comes first: it gives a lower bound on the highest value, and most other tiles are below it.
void CutScreen::find_candidates(const Known& known, const CutTerms& terms, double limit, const uint8_t* is_excluded,
                                Workspace& workspace) const {
    auto& [factors, highest, margin, most, candidates] = workspace;
    candidates.clear();
    take_factors(terms, factors);
    highest.resize(tiles_);
    find_highest(known.sums.data(), float_terms(terms, factors), numbers_.data(), rows_, tiles_, highest.data());
    margin = known.size;
    add_sizes(terms, margin);
    most.resize(tiles_);
    const double unit = kUnitError * static_cast<double>(known.terms + terms.factors.size() + kOtherErrors);
    for (size_t tile = 0; tile < tiles_; ++tile) {
        margin[tile] = margin[tile] <= kLargestSize ? unit * margin[tile] : kNoBound;
        most[tile] = margin[tile] < kNoBound ? highest[tile] + margin[tile] : kNoBound;
    }
    const auto best = std::max_element(most.begin(), most.end());
    if (best == most.end() || !(*best > limit)) return;
    double lower = limit;
    search_tile(known, terms, static_cast<size_t>(best - most.begin()), is_excluded, lower, workspace);
    *best = -kNoBound;
    for (size_t tile = 0; tile < tiles_; ++tile)
        if (most[tile] >= lower && most[tile] > -kNoBound)
            search_tile(known, terms, tile, is_excluded, lower, workspace);
    std::erase_if(candidates, [lower](const Workspace::Candidate& candidate) { return candidate.most < lower; });
}

// Add the cuts of a tile that may be the highest. lower: a value that the highest one has at least.
void CutScreen::search_tile(const Known& known, const CutTerms& terms, size_t tile, const uint8_t* is_excluded,
                            double& lower, Workspace& workspace) const {
    const double margin = workspace.margin[tile];
    const bool is_bounded = margin < kNoBound;
    // Rounded down: a lane too many does not matter.
    const float limit = is_bounded ? std::nextafter(static_cast<float>(lower - margin), kNoValue) : kNoValue;
    Tile sums;
    for (uint64_t left = sum_lanes(known.sums[tile], float_terms(terms, workspace.factors), rows_of(tile), limit, sums);
         left != 0; left &= left - 1) {
        const auto lane = static_cast<size_t>(std::countr_zero(left));
        const double value = sums.lane[lane], most = is_bounded ? value + margin : kNoBound;
        const Int cut = cuts_[tile * kLanes + lane];
        if (cut < 0 || is_excluded[cut] || most < lower) continue;
        workspace.candidates.push_back({cut, most});
        if (is_bounded) lower = std::max(lower, value - margin);
    }
}

}  // namespace cobre::lp

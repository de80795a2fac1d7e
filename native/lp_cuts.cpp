#include "lp_cuts.hpp"

#include <algorithm>
#include <utility>

#include "lp_cut_screen.hpp"
#include "lp_kernels.hpp"

namespace cobre::lp {

namespace {

constexpr size_t kTile = 32;  // components whose coefficients stay in the nearest cache while vectors take turns

}  // namespace

CutView::CutView(std::vector<CutChunk> chunks, size_t rows, Int count, const Int* row_of, const uint8_t* selected)
    : chunks_(std::move(chunks)),
      rows_(rows),
      count_(count),
      row_of_(row_of),
      is_selected_(selected),
      screen_(std::make_unique<LazyScreen>()) {
    for (const CutChunk& chunk : chunks_)
        for (Int first = 0; first < chunk.width; first += kCutsPerBlock)
            blocks_.push_back({chunk.data + first, chunk.width});
    find_runs();
}

CutView::~CutView() = default;
CutView::CutView(CutView&&) noexcept = default;

const CutScreen& CutView::screen() const {
    std::call_once(screen_->once, [this] { screen_->screen = std::make_unique<const CutScreen>(*this, rows_); });
    return *screen_->screen;
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

void CutView::add_terms(Int first, Int n, const double* x, CutTerms& terms) const {
    for (Int component = first; component < first + n; ++component) {
        const double factor = x[component - first];
        const Int row = row_of(component);
        if (factor == 0.0 || row < 0) continue;
        terms.factors.push_back(factor);
        terms.rows.push_back(row);
    }
}

double CutView::sum(Int cut, double start, const CutTerms& terms) const {
    const double* const numbers = &number(cut, 0);
    const auto width = static_cast<size_t>(blocks_[static_cast<size_t>(cut / kCutsPerBlock)].width);
    for (size_t term = 0; term < terms.factors.size(); ++term)
        start += terms.factors[term] * numbers[static_cast<size_t>(terms.rows[term]) * width];
    return start;
}

// Cut by cut the components are added in ascending order, whatever the tiles: the bits do not depend on the number of
// vectors.
void CutView::add_products(Int first, Int n, const double* x, const double* base, double* out, Int vectors) const {
    CutTerms terms;
    std::vector<size_t> start{0};  // of the terms of each vector
    for (Int vector = 0; vector < vectors; ++vector) {
        add_terms(first, n, x + static_cast<size_t>(vector) * n, terms);
        start.push_back(terms.factors.size());
    }
    const double* rows[kTile];
    for (const Run& run : runs_)
        for (size_t begin = 0; begin == 0 || begin < static_cast<size_t>(n); begin += kTile)
            for (Int vector = 0; vector < vectors; ++vector) {
                const size_t from = start[vector] + begin, end = std::min(from + kTile, start[vector + 1]);
                double* const sums = out + static_cast<size_t>(vector) * count_ + run.start;
                const double* const before = base && begin == 0 ? base + run.start : sums;
                if (from >= end && before == sums) continue;
                for (size_t term = from; term < end; ++term)
                    rows[term - from] = run.data + static_cast<size_t>(terms.rows[term]) * run.width;
                add_scaled_rows(before, sums, terms.factors.data() + from, rows, end > from ? end - from : 0,
                                static_cast<size_t>(run.length));
            }
}

CutView::Value CutView::highest(const double* rhs, const double* cut_value, double limit,
                                const uint8_t* is_excluded) const {
    Value found{-1, limit};
    for (const Run& run : runs_) {
        const auto end = static_cast<size_t>(run.start + run.length);
        for (auto at = static_cast<size_t>(run.start); (at = next_above(rhs, cut_value, found.value, at, end)) < end;
             ++at)
            if (!is_excluded[at] && is_selected_[at]) found = {static_cast<Int>(at), rhs[at] + cut_value[at]};
    }
    return found;
}

CutView::Value CutView::highest_at(Int n, const double* x, const double* rhs, double limit,
                                   const uint8_t* is_excluded) const {
    CutTerms terms;
    add_terms(0, n, x, terms);
    const size_t count = terms.factors.size();
    std::vector<const double*> rows(count);
    double sums[kSumsPerBlock];
    Value found{-1, limit};
    for (const Run& run : runs_) {
        for (size_t term = 0; term < count; ++term)
            rows[term] = run.data + static_cast<size_t>(terms.rows[term]) * run.width;
        const auto length = static_cast<size_t>(run.length);
        for (size_t at = 0; (at = next_sums_above(found.value, rhs + run.start, terms.factors.data(), rows.data(),
                                                  count, at, length, sums)) < length;
             at += kSumsPerBlock)
            for (size_t lane = 0; lane < std::min(kSumsPerBlock, length - at); ++lane) {
                const size_t cut = static_cast<size_t>(run.start) + at + lane;
                if (sums[lane] > found.value && !is_excluded[cut] && is_selected_[cut])
                    found = {static_cast<Int>(cut), sums[lane]};
            }
    }
    return found;
}

}  // namespace cobre::lp

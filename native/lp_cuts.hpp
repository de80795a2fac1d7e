// The cuts of one stage as the pool stores them: chunks of cuts, one row for each component, so that all cuts of a
// chunk are evaluated at once (SIMD across cuts) while each cut adds its terms in the order of the components.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "highs_api.hpp"

namespace cobre::lp {

constexpr Int kCutsPerBlock = 16;  // chunks hold a multiple of that

// Some consecutive cuts: row r of cut c is at data[r * width + c].
struct CutChunk {
    const double* data;
    Int width;
};

// Terms of a sum over components: their factors, and their rows in the chunks. Components that are zero, or that no cut
// depends on, have none.
struct CutTerms {
    std::vector<double> factors;
    std::vector<Int> rows;

    void clear() {
        factors.clear();
        rows.clear();
    }
};

class CutScreen;

// theta >= intercept + coefficients . outgoing state. Row 0 of a chunk holds the intercepts; the others hold the
// components that some cut depends on. row_of: by component, its row, or -1 if no cut depends on it; null: row 1 +
// component. selected: by cut, whether cut selection keeps it (`CutPool.active` in Python; here "active" is a cut at
// its bound).
class CutView {
public:
    // rows: of the chunks.
    CutView(std::vector<CutChunk> chunks, size_t rows, Int count, const Int* row_of, const uint8_t* selected);
    ~CutView();
    CutView(CutView&&) noexcept;

    Int count() const { return count_; }
    size_t numbers() const { return static_cast<size_t>(count_) * rows_; }
    bool is_selected(Int cut) const { return is_selected_[cut]; }
    double coefficient(Int cut, Int component) const {
        const Int row = row_of(component);
        return row < 0 ? 0.0 : number(cut, row);
    }

    // Numbers of one row of the chunks, from a cut on, which is the first one of a block.
    const double* row_from(Int cut, Int row) const { return &number(cut, row); }

    // out[cut] = intercept of every cut
    void intercepts(double* out) const;
    // out[cut] += sum over components first .. first + n of coefficient * x, for the cuts of all blocks that have a
    // selected one
    void add_products(Int first, Int n, const double* x, double* out) const {
        add_products(first, n, x, nullptr, out, 1);
    }
    // The same for several vectors at once, stored one after the other (of n numbers in x, of count() in out): the
    // coefficients are read from memory once. base: by cut, what the products
    // are added to; null: `out` itself.
    void add_products(Int first, Int n, const double* x, const double* base, double* out, Int vectors) const;

    void add_terms(Int first, Int n, const double* x, CutTerms& terms) const;
    // start + the terms of one cut: the bits that `add_products` gives.
    double sum(Int cut, double start, const CutTerms& terms) const;
    double intercept(Int cut) const { return number(cut, 0); }

    // A copy to search, made by the first thread that asks for it.
    const CutScreen& screen() const;

    // A cut and its value; -1: none.
    struct Value {
        Int cut = -1;
        double value = 0.0;
    };
    // The selected cut of the largest rhs[cut] + cut_value[cut] above a limit, the first of equals. is_excluded: by
    // cut.
    Value highest(const double* rhs, const double* cut_value, double limit, const uint8_t* is_excluded) const;
    // The same for rhs[cut] + sum over the first n components of coefficient * x, added in this order.
    Value highest_at(Int n, const double* x, const double* rhs, double limit, const uint8_t* is_excluded) const;

private:
    // Consecutive blocks of one chunk that have selected cuts: the others cost nothing.
    struct Run {
        const double* data;
        Int width, start, length;
    };
    struct LazyScreen {
        std::once_flag once;
        std::unique_ptr<const CutScreen> screen;
    };
    void find_runs();

    Int row_of(Int component) const { return row_of_ ? row_of_[component] : 1 + component; }
    const double& number(Int cut, Int row) const {
        const CutChunk& block = blocks_[static_cast<size_t>(cut / kCutsPerBlock)];
        return block.data[static_cast<size_t>(row) * block.width + cut % kCutsPerBlock];
    }

    std::vector<CutChunk> chunks_;
    std::vector<CutChunk> blocks_;  // by block of cuts: address of its first cut
    std::vector<Run> runs_;         // what products are computed for
    size_t rows_;
    Int count_;
    const Int* row_of_;
    const uint8_t* is_selected_;  // by cut
    std::unique_ptr<LazyScreen> screen_;
};

}  // namespace cobre::lp

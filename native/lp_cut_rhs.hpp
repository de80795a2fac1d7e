// Right-hand sides of the cuts of a stage in the solves of a chain, and the search for the highest cut.
//
// A right-hand side is the intercept plus the products with what is known of the outgoing state: lags of inflows, and
// states that a stage passes on. With few cuts all of them are computed for every solve. With many, the few that matter
// are computed when they are asked for, with the same bits, and `CutScreen` tells which ones may be the highest.
#pragma once

#include <cstdint>
#include <vector>

#include "lp_cut_screen.hpp"
#include "lp_cuts.hpp"

namespace cobre::lp {

class CutRhs {
public:
    // is_lazy: whether right-hand sides are computed when they are asked for.
    void load(const CutView& cuts, bool is_lazy);

    // A chain: its number of solves, then what is known, in the order of addition. x: n numbers of the components from
    // `first` on; of `add_each` n for every solve. All calls of `add_each` come last.
    void begin_chain(size_t solves);
    void add(Int first, Int n, const double* x);
    void add_each(Int first, Int n, const double* x);
    // Go to a solve of the chain.
    void choose(size_t solve);

    // In the solve that was chosen: of a cut, which is selected, and of all selected cuts.
    double at(Int cut) { return is_lazy_ ? lazy_at(cut) : numbers_[cut]; }
    const double* all();
    // The selected cut of the largest value above a limit at the n decided states x, the first of equals. is_excluded:
    // by cut.
    CutView::Value highest_at(Int n, const double* x, double limit, const uint8_t* is_excluded);

private:
    double lazy_at(Int cut);

    const CutView* cuts_ = nullptr;
    bool is_lazy_ = false;
    size_t solves_ = 0, chosen_ = 0;

    // Not lazy: by cut, and solves x cuts if they have terms of their own.
    std::vector<double> common_, each_;
    bool has_each_ = false;
    const double* numbers_ = nullptr;  // of the solve

    // Lazy: terms of the whole chain and of each solve.
    CutTerms common_terms_;
    std::vector<CutTerms> terms_;
    std::vector<CutScreen::Known> known_;
    bool is_known_ = false;
    CutScreen::Workspace workspace_;
    CutTerms point_;
    // By cut: its right-hand side, which is that of the present solve if the solve's number is `computed_in_`.
    std::vector<double> computed_;
    std::vector<uint64_t> computed_in_;
    uint64_t solve_number_ = 0;  // of all solves, so that no number comes twice
};

}  // namespace cobre::lp

#include "lp_cut_rhs.hpp"

#include <algorithm>

namespace cobre::lp {

void CutRhs::load(const CutView& cuts, bool is_lazy) {
    cuts_ = &cuts;
    is_lazy_ = is_lazy;
    const auto count = static_cast<size_t>(cuts.count());
    if (!is_lazy) return common_.resize(count);
    computed_.resize(count);
    computed_in_.resize(count);
}

void CutRhs::begin_chain(size_t solves) {
    solves_ = solves;
    has_each_ = false;
    is_known_ = false;
    if (!is_lazy_) return cuts_->intercepts(common_.data());
    common_terms_.clear();
    terms_.resize(solves);
    for (CutTerms& terms : terms_) terms.clear();
}

void CutRhs::add(Int first, Int n, const double* x) {
    if (is_lazy_) cuts_->add_terms(first, n, x, common_terms_);
    else cuts_->add_products(first, n, x, common_.data());
}

void CutRhs::add_each(Int first, Int n, const double* x) {
    if (is_lazy_) {
        for (CutTerms& terms : terms_) {
            cuts_->add_terms(first, n, x, terms);
            x += n;
        }
        return;
    }
    each_.resize(solves_ * common_.size());
    cuts_->add_products(first, n, x, has_each_ ? nullptr : common_.data(), each_.data(), static_cast<Int>(solves_));
    has_each_ = true;
}

void CutRhs::choose(size_t solve) {
    chosen_ = solve;
    ++solve_number_;
    numbers_ = has_each_ ? each_.data() + solve * common_.size() : common_.data();
}

double CutRhs::lazy_at(Int cut) {
    if (computed_in_[cut] != solve_number_) {
        computed_in_[cut] = solve_number_;
        computed_[cut] = cuts_->sum(cut, cuts_->sum(cut, cuts_->intercept(cut), common_terms_), terms_[chosen_]);
    }
    return computed_[cut];
}

const double* CutRhs::all() {
    if (!is_lazy_) return numbers_;
    for (Int cut = 0; cut < cuts_->count(); ++cut)
        if (cuts_->is_selected(cut)) lazy_at(cut);
    return computed_.data();
}

CutView::Value CutRhs::highest_at(Int n, const double* x, double limit, const uint8_t* is_excluded) {
    if (!is_lazy_) return cuts_->highest_at(n, x, numbers_, limit, is_excluded);
    const CutScreen& screen = cuts_->screen();
    if (!is_known_) {
        known_.resize(std::max(known_.size(), solves_));
        screen.sum_known(common_terms_, terms_, {known_.data(), solves_});
        is_known_ = true;
    }
    point_.clear();
    cuts_->add_terms(0, n, x, point_);
    screen.find_candidates(known_[chosen_], point_, limit, is_excluded, workspace_);
    CutView::Value found{-1, limit};
    for (const auto& candidate : workspace_.candidates) {
        if (candidate.most < found.value) continue;
        const double value = cuts_->sum(candidate.cut, lazy_at(candidate.cut), point_);
        if (value > found.value || (value == found.value && candidate.cut < found.cut)) found = {candidate.cut, value};
    }
    return found;
}

}  // namespace cobre::lp

// A dual simplex method for LPs that are solved again and again with other right sides.
//
// Only rows at a bound and basic columns take part in the linear algebra: with k of each, everything follows from the
// k x k matrix between them and its inverse, which is kept dense. A cut that is not binding costs nothing but a look at
// its value, so every cut of a pool takes part in every LP. Sums have one order; nothing here depends on earlier LPs
// but the basis.
#pragma once

#include <cstdint>
#include <vector>

#include "lp_simplex_method.hpp"

namespace cobre::lp {

class DualSimplex final : public SimplexMethod {
   public:
    void load(const StageModel& stage, const CutView& cuts, double feasibility, double violation) override;
    bool start(const int8_t* status, const Int* tight_cuts, Int most_cuts) override;
    void start_loose() override;
    Outcome optimise(const Bounds& bounds) override;
    void solution(std::vector<double>& columns, std::vector<double>& column_duals, std::vector<double>& row_duals,
                  std::vector<Int>& tight_cuts) const override;
    void basis(int8_t* status, Int* cuts) const override;

   private:
    struct Row {
        Int index;     // of a row of the stage, or of a cut
        bool is_cut;
        bool at_upper;
        Int copy = -1;  // of a cut: where its coefficients are at hand
    };

    struct Leaving {
        bool is_row = false;
        size_t place = 0;      // in basic_ when it is a column
        Row row{};
        double missing = 0.0;  // how far it is from its bound, with the sign of the way back
    };
    struct Candidate {
        Int index;             // a column, or columns + place of a tight row
        double slope, ratio;
        double limit;          // the ratio at which its price is off by as much as is allowed
    };

    template <typename Use>
    void for_entries(const Row& row, Use use) const;
    double entry(const Row& row, Int column) const;
    void entries_of(Int column);
    Row copied(Int cut);
    double bound_of(const Row& row) const;
    bool is_fixed(const Row& row) const;
    double range_of(const Row& row) const;
    double value_of(const Row& row) const;
    double size_of(const Row& row) const;

    bool factor();
    void place_nonbasic();
    void put_at_bound(Int column);
    void compute_values();
    void compute_prices();
    bool find_leaving(Leaving& leaving);
    bool find_violated_cut(Leaving& leaving);
    double outside(double value, double lower, double upper) const;
    double column_weight(size_t place) const;
    double row_weight(const Row& row);
    void express(const Row& row);
    bool pivot(const Leaving& leaving);
    void slopes_of(const Leaving& leaving);
    bool choose_entering(double missing, Int& entering);
    void flip(Int candidate);
    double move_prices(Int entering);
    bool exchange(const Leaving& leaving, Int entering);
    void mark(const Row& row, bool is_tight);
    void replace_column(size_t place, Int entering);
    void replace_row(size_t place, const Row& row);
    void drop(size_t column_place, size_t row_place);
    void border(const Row& row, Int column);
    bool is_consistent() const;
    double& inverse(size_t column_place, size_t row_place) { return inverse_[column_place * stride_ + row_place]; }
    double inverse(size_t column_place, size_t row_place) const { return inverse_[column_place * stride_ + row_place]; }

    const StageModel* stage_ = nullptr;
    const CutView* cuts_ = nullptr;
    Bounds bounds_{};
    double feasibility_ = 1e-9, violation_ = 1e-9;
    size_t stride_ = 0;
    std::vector<int8_t> status_;        // by column
    std::vector<uint8_t> is_tight_;     // by row of the stage
    std::vector<uint8_t> is_tight_cut_; // by cut
    std::vector<Int> basic_;            // basic columns
    std::vector<Row> tight_;            // rows at a bound, as many
    std::vector<double> copies_;        // of tight cuts: coefficients as in a row, cut by cut
    std::vector<Int> free_copies_;
    std::vector<Int> place_of_row_;     // of a tight row of the stage, in tight_; others: anything
    std::vector<double> inverse_;       // basic columns x tight rows
    std::vector<double> x_, reduced_, prices_;
    std::vector<double> slopes_, row_slopes_, weights_, scratch_, cut_values_, outgoing_;
    std::vector<Candidate> candidates_;
    std::vector<Int> moving_, flips_;
    Int updates_ = 0;
};

template <typename Use>
void DualSimplex::for_entries(const Row& row, Use use) const {
    const StageModel& stage = *stage_;
    if (row.is_cut) {
        const double* coefficients = copies_.data() + static_cast<size_t>(row.copy) * stage.states;
        for (Int state = 0; state < stage.states; ++state) use(stage.state_column[state], coefficients[state]);
        use(stage.future_cost, 1.0);
        return;
    }
    for (Int at = stage.row_start[row.index]; at < stage.row_start[row.index + 1]; ++at)
        use(stage.column_index[at], stage.value[at]);
}

}  // namespace cobre::lp

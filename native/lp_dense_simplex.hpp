// The dual simplex method with a dense inverse, for stages with few rows whose LPs differ only in right-hand sides.
//
// Only active rows (at a bound) and basic columns take part in the linear algebra: with k of each, everything follows
// from the k x k matrix between them and its inverse. A cut that is not active costs nothing but the evaluation of its
// value, so every cut of a pool takes part in every LP. Sums have one order; nothing depends on earlier LPs but the
// basis.
#pragma once

#include <cstdint>
#include <vector>

#include "lp_dual_simplex.hpp"

namespace cobre::lp {

class DenseDualSimplex final : public DualSimplex {
public:
    bool start(const int8_t* status, const Int* active_cuts, Int max_cuts) override;
    void start_from_slacks() override;
    SimplexStatus optimise(const Bounds& bounds) override;
    void solution(std::vector<double>& columns, std::vector<double>& column_duals, std::vector<double>& row_duals,
                  std::vector<Int>& active_cuts) const override;
    void basis(int8_t* status, Int* cuts) const override;

private:
    void begin_stage() override;

    struct Row {
        Int index;  // of a row of the stage, or of a cut
        bool is_cut;
        bool at_upper;
        Int copy = -1;  // of a cut: its index in `cut_coefficients_`
    };

    struct Leaving {
        bool is_row = false;
        size_t position = 0;  // of a column: in `basic_columns_`
        Row row{};
        double infeasibility = 0.0;  // signed distance to the violated bound; positive: below the lower one
    };
    struct Candidate {
        Int index;            // a column, or columns + position of an active row
        double pivot, ratio;  // size of its entry in the pivot row, and dual step at which its reduced cost is zero
        double limit;         // the step at which its reduced cost has the wrong sign by the tolerance (Harris)
    };

    template <typename Use>
    void for_each_entry(const Row& row, Use use) const;
    double entry(const Row& row, Int column) const;
    void load_column(Int column);
    Row copy_cut(Int cut);
    double bound_of(const Row& row) const;
    bool is_fixed(const Row& row) const;
    double range_of(const Row& row) const;
    double value_of(const Row& row) const;
    double size_of(const Row& row) const;

    bool refactor();
    void reset_nonbasic();
    void move_to_bound(Int column);
    void compute_primal();
    void compute_duals();
    bool find_leaving(Leaving& leaving);
    bool find_violated_cut(Leaving& leaving);
    double column_edge_weight(size_t position) const;
    double row_edge_weight(const Row& row);
    void btran_row(const Row& row);
    bool pivot(const Leaving& leaving);
    void compute_pivot_row(const Leaving& leaving);
    void list_candidates(double sign);
    bool ratio_test(double infeasibility, Int& entering);
    void flip(Int candidate);
    double update_duals(Int entering);
    bool update_basis(const Leaving& leaving, Int entering);
    void set_active(const Row& row, bool is_active);
    void replace_column(size_t position, Int entering);
    void replace_row(size_t position, const Row& row);
    void shrink_inverse(size_t column_position, size_t row_position);
    void extend_inverse(const Row& row, Int column);
    bool is_consistent() const;
    double& inverse(size_t column_position, size_t row_position) {
        return inverse_[column_position * stride_ + row_position];
    }
    double inverse(size_t column_position, size_t row_position) const {
        return inverse_[column_position * stride_ + row_position];
    }

    size_t stride_ = 0;
    std::vector<int8_t> status_;          // by column
    std::vector<uint8_t> is_active_row_;  // by row of the stage
    std::vector<uint8_t> is_active_cut_;  // by cut
    std::vector<Int> basic_columns_;
    std::vector<Row> active_rows_;          // rows and cuts at a bound; as many as basic columns
    std::vector<double> cut_coefficients_;  // of active cuts, cut by cut, as in a row
    std::vector<Int> free_copies_;
    std::vector<Int> position_of_row_;      // of an active row of the stage, in `active_rows_`; others: anything
    std::vector<double> inverse_;           // basic columns x active rows
    std::vector<double> x_, reduced_;       // by column: value and reduced cost
    std::vector<double> duals_;             // by active row
    std::vector<double> pivot_row_;         // by column
    std::vector<double> pivot_row_slacks_;  // by active row: entries of their slacks
    std::vector<double> ftran_, scratch_, outgoing_state_;
    std::vector<Candidate> candidates_;
    std::vector<Int> nonzeros_, flips_;
    Int updates_ = 0;  // of the inverse since it was computed
};

template <typename Use>
void DenseDualSimplex::for_each_entry(const Row& row, Use use) const {
    const StageModel& stage = *stage_;
    if (row.is_cut) {
        const double* coefficients = cut_coefficients_.data() + static_cast<size_t>(row.copy) * stage.num_decided;
        for (Int state = 0; state < stage.num_decided; ++state) use(stage.state_column[state], coefficients[state]);
        use(stage.future_cost, 1.0);
        return;
    }
    for (Int at = stage.row_start[row.index]; at < stage.row_start[row.index + 1]; ++at)
        use(stage.column_index[at], stage.value[at]);
}

}  // namespace cobre::lp

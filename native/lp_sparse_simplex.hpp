// The dual simplex method with a sparse factorisation, for stages with many rows.
//
// The working LP has rows of the stage and those cuts that were ever violated. Row i says a_i x - s_i = 0, so that its
// slack s_i is its activity and has its bounds; the basis has one variable a row. Columns of the stage are variables
// 0 .. columns - 1, the slack of working row i is variable columns + i, and its reduced cost is the row's dual.
//
// A column with one entry, in row i, is priced by the row's dual alone: it bounds that dual from one side until it enters
// the basis. So the ratio test looks at the nearest of these bounds, the slack's among them, and never at the columns.
//
// A pivot touches what its vectors touch: no step looks at all rows or columns. Values, reduced costs and weights are
// updated; the first two are computed anew when the basis is factorised anew and when a solution stands. Sums have one
// order; nothing depends on earlier LPs but the basis and its weights, which are a function of the chain so far.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "lp_factor.hpp"
#include "lp_simplex_method.hpp"
#include "lp_sparse_vector.hpp"

namespace cobre::lp {

class SparseDualSimplex final : public SimplexMethod {
   public:
    void load(const StageModel& stage, const CutView& cuts, double feasibility, double violation) override;
    bool start(const int8_t* status, const Int* tight_cuts, Int most_cuts) override;
    void start_loose() override;
    Outcome optimise(const Bounds& bounds) override;
    void solution(std::vector<double>& columns, std::vector<double>& column_duals, std::vector<double>& row_duals,
                  std::vector<Int>& tight_cuts) const override;
    void basis(int8_t* status, Int* cuts) const override;

   private:
    // A row of the working LP.
    struct WorkingRow {
        Int index;      // of a row of the stage, or of a cut
        Int copy = -1;  // of a cut: where its coefficients are
        Int start = 0, split = 0, end = 0;  // its entries: those that a pivot row needs come first, up to `split`
        bool is_cut() const { return copy >= 0; }
    };
    // A bound on the dual of a row: where the reduced cost of its slack or of a singleton becomes zero.
    struct DualBound {
        Int variable = -1;
        double price = 0.0;
        double size = 0.0;  // of the variable's coefficient
    };
    using DualBounds = std::array<DualBound, 2>;  // the nearest one below, and above
    struct Joined {
        Int row;
        double value;
    };
    struct Leaving {
        Int slot = -1;
        double missing = 0.0;  // from its bound, with the sign of the way back
    };
    // lp_sparse_basis.cpp: the working LP and its basis
    Int slack(Int row) const { return columns_ + row; }
    Int row_count() const { return static_cast<Int>(rows_.size()); }
    void clear_rows();
    void forget_states();
    void push_row(WorkingRow row, int8_t status);
    void push_cut(Int cut, int8_t status);
    bool is_deferred(Int row) const { return stage_->family[static_cast<size_t>(row)] >= 0; }
    bool may_leave(Int row) const {
        return status_[slack(row)] == basic && (rows_[row].is_cut() || is_deferred(rows_[row].index));
    }
    bool drop_loose_rows();
    void push_entry(Int column, double value);
    bool is_in_pivot_rows(Int column) const { return status_[column] != basic && stage_->singleton_row[column] < 0; }
    void split_entries(WorkingRow& row);
    void move_entries(Int column, bool is_basic);
    template <typename Use>
    void for_row(Int row, Use use) const;
    template <typename Use>
    void for_column(Int column, Use use) const;
    void load_column(Int variable, double factor, SparseVector& out) const;
    bool factor();
    void resize_work();
    void seat(Int variable, Int slot) { head_[slot] = variable, slot_of_[variable] = slot; }

    // lp_sparse_values.cpp: values and reduced costs from scratch
    void take_bounds(const Bounds& bounds);
    void bound_row(Int row);
    void place_nonbasic();
    void put_at_bound(Int variable);
    void compute_values();
    void compute_reduced_costs();
    void list_infeasible();
    void note_value(Int slot);
    void bound_dual(Int row);
    void bound_dual_again(Int variable);
    double missing_of(double value, double lower, double upper) const;
    bool is_consistent() const;

    // lp_sparse_pricing.cpp: the leaving variable
    bool find_leaving(Leaving& leaving);
    bool join_violated_rows();
    void update_state_parts();
    bool join_violated_cut();
    void join(const WorkingRow& row);

    // lp_sparse_ratio_test.cpp: the entering variable
    void compute_pivot_row(Int slot);
    bool choose_entering(double missing, Int& entering);
    void list_candidates(double sign);
    void list_free_candidates();
    double first_limit() const;
    void list_front(double step);
    bool find_nearly_first(double step, size_t& best) const;
    bool look_behind(size_t at);
    double slope_of(Int variable) const;
    double reduced_cost_of(Int variable) const;

    // lp_sparse_update.cpp: one pivot
    enum class Step { done, inaccurate, none };
    Step pivot(const Leaving& leaving);
    void flip_bounds();
    void take_back_flips(Int entering);
    void update_reduced_costs(Int entering, Int leaving);
    void update_weights(Int slot, Int entering);
    void exchange(Int slot, Int entering, double missing);
    bool refresh();

    const StageModel* stage_ = nullptr;
    const CutView* cuts_ = nullptr;
    Bounds bounds_{};
    double feasibility_ = 1e-9, violation_ = 1e-9;
    Int columns_ = 0;

    std::vector<WorkingRow> rows_;
    std::vector<Int> place_of_row_;          // by row of the stage: its working row, or -1
    std::vector<std::pair<Int, double>> worst_of_family_;  // a violated row, or -1, and by how much
    std::vector<uint8_t> is_present_cut_;    // by cut
    std::vector<Int> cut_rows_;              // working rows that are cuts
    std::vector<double> copies_;             // their coefficients, cut by cut
    std::vector<Int> row_column_;            // entries of the working rows
    std::vector<double> row_value_;
    std::vector<std::vector<Joined>> joined_;  // by column: its entries in deferred rows that take part
    std::vector<DualBounds> dual_bounds_;    // by working row

    // by variable
    std::vector<int8_t> status_;
    std::vector<double> lower_, upper_, x_;
    std::vector<double> reduced_;            // of nonbasic singletons: as of the last computation from scratch
    std::vector<double> way_;                // of a nonbasic variable between two bounds: from its bound up (1) or down (-1);
                                             // others: 0
    bool has_free_ = false;                  // whether a nonbasic variable has no bound
    std::vector<double> weight_;             // of a basic variable (Devex): 1 for a new reference framework
    std::vector<Int> slot_of_;               // of a basic variable; others: anything
    // by slot
    std::vector<Int> head_;                  // the basic variable
    std::vector<double> missing_;
    std::vector<uint8_t> is_candidate_;
    std::vector<Int> infeasible_;            // slots that may be out of bounds

    Factorisation factor_;
    bool has_reduced_costs_ = false, is_fresh_ = false;
    BasisColumns basis_columns_;
    std::vector<uint8_t> slack_is_basic_;
    std::vector<Int> basic_columns_, slot_of_column_;
    SparseVector rho_, alpha_, flip_, pivot_row_;
    // candidates of the ratio test: what a unit of each changes in the leaving variable, and what it costs
    size_t candidates_ = 0;
    std::vector<Int> candidate_;
    std::vector<double> slope_, cost_;
    std::vector<size_t> front_;
    size_t front_count_ = 0;
    std::vector<Int> flips_;
    std::vector<double> state_, state_change_, state_part_;  // decided states, and by cut what they contribute
};

template <typename Use>
void SparseDualSimplex::for_row(Int row, Use use) const {
    for (Int at = rows_[row].start; at < rows_[row].end; ++at) use(row_column_[at], row_value_[at]);
}

// The entries of a column in the working rows.
template <typename Use>
void SparseDualSimplex::for_column(Int column, Use use) const {
    const StageModel& stage = *stage_;
    for (Int at = stage.column_start[column]; at < stage.deferred_start[column]; ++at)
        use(place_of_row_[stage.row_index[at]], stage.column_value[at]);
    for (const Joined& entry : joined_[column]) use(entry.row, entry.value);
    if (const Int state = stage.state_of_column[column]; state >= 0) {
        for (const Int row : cut_rows_) {
            const double value = copies_[static_cast<size_t>(rows_[row].copy) * stage.states + state];
            if (value != 0.0) use(row, value);
        }
    } else if (column == stage.future_cost) {
        for (const Int row : cut_rows_) use(row, 1.0);
    }
}

}  // namespace cobre::lp

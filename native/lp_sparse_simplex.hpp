// The dual simplex method with a sparse factorisation, for stages with many rows.
//
// The working LP has the rows of the stage, except for deferred ones that were never violated, and the cuts that were.
// Row i says a_i x - s_i = 0, so that its slack s_i is its activity and has its bounds; the basis has one variable a
// row. Columns of the stage are variables 0 .. columns - 1, the slack of working row i is variable columns + i, and its
// reduced cost is the row's dual.
//
// A singleton column (one entry, in row i) has a reduced cost that depends only on the row's dual: it bounds that dual
// from one side until it enters the basis. So the ratio test looks at the nearest of these bounds, the slack's among
// them, and never at the columns.
//
// Pivots are hypersparse: no step looks at all rows or columns. Values, reduced costs and weights are updated; the
// first two are computed from scratch after a refactorisation and for an optimal basis. Sums have one order; nothing
// depends on earlier LPs but the basis and its weights, which are a function of the chain so far.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "lp_dual_simplex.hpp"
#include "lp_factorisation.hpp"
#include "lp_sparse_vector.hpp"
#include "lp_substitution.hpp"

namespace cobre::lp {

class SparseDualSimplex final : public DualSimplex {
public:
    bool start(const int8_t* status, const Int* active_cuts, Int max_cuts) override;
    void start_from_slacks() override;
    bool start_carefully() override;
    SimplexStatus optimise(const Bounds& bounds) override;
    bool improve_duals() override;
    void solution(std::vector<double>& columns, std::vector<double>& column_duals, std::vector<double>& row_duals,
                  std::vector<Int>& active_cuts) const override;
    void basis(int8_t* status, Int* cuts) const override;

private:
    void begin_stage() override;

    // A row of the working LP.
    struct WorkingRow {
        Int index;                          // of a row of the stage, or of a cut
        Int copy = -1;                      // of a cut: its index in `cut_coefficients_`
        Int start = 0, split = 0, end = 0;  // its entries: those that a pivot row needs first, up to `split`
        bool is_cut() const { return copy >= 0; }
    };
    // A bound on the dual of a row: the value at which the reduced cost of its slack or of a singleton is zero.
    struct DualBound {
        Int variable = -1;
        double dual = 0.0;
        double size = 0.0;  // |coefficient| of the variable in the row
    };
    using DualBounds = std::array<DualBound, 2>;  // the nearest below, the nearest above
    struct DeferredEntry {                        // of a column, in a deferred row that is part of the working LP
        Int row;
        double value;
    };
    struct Leaving {
        Int slot = -1;
        double infeasibility = 0.0;  // signed distance to the violated bound
    };
    // lp_sparse_basis.cpp: the working LP and its basis
    Int slack(Int row) const { return columns_ + row; }
    Int row_count() const { return static_cast<Int>(rows_.size()); }
    void clear_rows();
    void reset_cut_values();
    void append_row(WorkingRow row, int8_t status);
    void append_cut(Int cut, int8_t status);
    bool is_deferred(Int row) const { return stage_->family[static_cast<size_t>(row)] >= 0; }
    bool is_removable(Int row) const {
        return status_[slack(row)] == basic && (rows_[row].is_cut() || is_deferred(rows_[row].index));
    }
    bool remove_inactive_rows();
    void append_entry(Int column, double value);
    bool is_priced(Int column) const { return status_[column] != basic && stage_->singleton_row[column] < 0; }
    void split_entries(WorkingRow& row);
    void move_entries(Int column, bool is_basic);
    template <typename Use>
    void for_each_in_row(Int row, Use use) const;
    template <typename Use>
    void for_each_in_column(Int column, Use use) const;
    void load_column(Int variable, double factor, SparseVector& out) const;
    bool factorise();
    bool factorise_repaired();
    void resize_vectors();
    void set_basic(Int variable, Int slot) { head_[slot] = variable, slot_of_[variable] = slot; }

    // lp_sparse_values.cpp: values and reduced costs from scratch
    void load_bounds(const Bounds& bounds);
    void set_row_bounds(Int row);
    bool reset_nonbasic();
    void move_to_bound(Int variable);
    void compute_primal();
    void compute_reduced_costs();
    void list_infeasible();
    void update_infeasibility(Int slot);
    void compute_dual_bounds(Int row);
    void update_dual_bounds(Int variable);
    bool is_consistent() const;

    // lp_sparse_pricing.cpp: the leaving variable, and rows that join the working LP
    bool find_leaving(Leaving& leaving);
    bool add_violated_rows();
    void update_cut_values();
    bool add_violated_cut();
    void add_row(const WorkingRow& row);

    // lp_sparse_ratio_test.cpp: the entering variable
    void compute_pivot_row(Int slot);
    bool ratio_test(double infeasibility, Int& entering);
    void list_candidates(double sign);
    bool has_free() const;
    void list_free_candidates();
    double harris_limit() const;
    void collect_group(double step);
    bool choose_in_group(double step, size_t& best) const;
    bool advance_breakpoint(size_t at);
    double pivot_entry_of(Int variable) const;
    double reduced_cost_of(Int variable) const;

    // lp_sparse_update.cpp: one pivot
    enum class PivotResult { done, inaccurate, no_entering };
    PivotResult pivot(const Leaving& leaving);
    void flip_bounds();
    void undo_flips(Int entering);
    void update_reduced_costs(Int entering, Int leaving);
    void update_weights(Int slot, Int entering);
    void update_basis(Int slot, Int entering, double infeasibility);
    bool refactor();
    SimplexStatus pivot_to_optimum(int64_t limit);

    // lp_sparse_primal.cpp: pivots that correct reduced costs
    bool find_wrong_reduced_cost(Int& entering, double& direction) const;
    bool primal_ratio_test(Int entering, double direction, Int& slot, double& side) const;
    bool primal_pivots(int64_t limit);
    bool primal_pivot(Int entering, double direction);

    Int columns_ = 0;
    // The stage that was loaded. `stage_` is the same, or what a substitution of generation makes of it.
    const StageModel* loaded_ = nullptr;
    Substitution substitution_;
    std::vector<int8_t> start_status_;

    std::vector<WorkingRow> rows_;
    std::vector<Int> working_row_of_;                      // by row of the stage; -1: deferred
    std::vector<std::pair<Int, double>> worst_of_family_;  // its most violated row, or -1, and by how much
    std::vector<uint8_t> is_present_cut_;                  // by cut
    std::vector<Int> cut_rows_;                            // working rows that are cuts
    std::vector<double> cut_coefficients_;                 // of cuts in the working LP, cut by cut
    std::vector<Int> row_column_;                          // entries of the working rows
    std::vector<double> row_value_;
    std::vector<std::vector<DeferredEntry>> deferred_entries_;  // by column
    std::vector<DualBounds> dual_bounds_;                       // by working row

    // by variable
    std::vector<int8_t> status_;
    std::vector<double> lower_, upper_, x_;
    std::vector<double> reduced_;  // reduced costs; of nonbasic singletons, as last computed from scratch
    std::vector<double>
        direction_;               // of a nonbasic variable that may move: up (1) or down (-1) from its bound; others: 0
    std::vector<Int> free_;       // variables without a bound that were nonbasic in this solve
    std::vector<double> weight_;  // Devex weights of basic variables; 1 in a new reference framework
    std::vector<Int> slot_of_;    // of a basic variable; others: anything
    // by slot
    std::vector<Int> head_;  // the basic variable
    std::vector<double> infeasibility_;
    std::vector<uint8_t> is_listed_;
    std::vector<Int> infeasible_;  // slots of variables that may be out of bounds

    Factorisation factorisation_;
    bool has_reduced_costs_ = false, is_freshly_factorised_ = false;
    double smallest_pivot_ = kSmallestPivot;  // of an entering variable
    double harris_tolerance_ = 0.0;           // how wrong the sign of a reduced cost may get in a pivot
    BasisColumns basis_columns_;
    std::vector<uint8_t> slack_is_basic_;
    std::vector<Int> basic_columns_, slot_of_column_;
    SparseVector inverse_row_, pivot_column_, flip_column_, pivot_row_;
    // Candidates of the ratio test: variable, size of its entry in the pivot row, size of its reduced cost.
    size_t candidates_ = 0;
    std::vector<Int> candidate_;
    std::vector<double> candidate_pivot_, candidate_cost_;
    std::vector<size_t> group_;
    size_t group_size_ = 0;
    std::vector<Int> flips_;
    std::vector<Int> passed_over_;
    std::vector<double> state_, state_change_,
        cut_value_;  // decided states, their last change, and by cut the sum of coefficients times states
};

// Here, because every pivot calls it for each entry of its column.
inline void SparseDualSimplex::update_infeasibility(Int slot) {
    const Int variable = head_[slot];
    infeasibility_[slot] = infeasibility_of(x_[variable], lower_[variable], upper_[variable]);
    if (infeasibility_[slot] == 0.0 || is_listed_[slot]) return;
    is_listed_[slot] = 1;
    infeasible_.push_back(slot);
}

template <typename Use>
void SparseDualSimplex::for_each_in_row(Int row, Use use) const {
    for (Int at = rows_[row].start; at < rows_[row].end; ++at) use(row_column_[at], row_value_[at]);
}

// The entries of a column in the working rows.
template <typename Use>
void SparseDualSimplex::for_each_in_column(Int column, Use use) const {
    const StageModel& stage = *stage_;
    for (Int at = stage.column_start[column]; at < stage.deferred_start[column]; ++at)
        use(working_row_of_[stage.row_index[at]], stage.column_value[at]);
    for (const DeferredEntry& entry : deferred_entries_[column]) use(entry.row, entry.value);
    if (const Int state = stage.state_of_column[column]; state >= 0) {
        for (const Int row : cut_rows_) {
            const double value = cut_coefficients_[static_cast<size_t>(rows_[row].copy) * stage.num_decided + state];
            if (value != 0.0) use(row, value);
        }
    } else if (column == stage.future_cost) {
        for (const Int row : cut_rows_) use(row, 1.0);
    }
}

}  // namespace cobre::lp

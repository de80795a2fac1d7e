// The working LP and its basis: which rows take part, and which variables are basic.
#include <algorithm>
#include <cmath>

#include "lp_sparse_simplex.hpp"

namespace cobre::lp {

namespace {

constexpr Int kFewLooseRows = 16;

}  // namespace

void SparseDualSimplex::load(const StageModel& stage, const CutView& cuts, double feasibility, double violation) {
    stage_ = &stage;
    cuts_ = &cuts;
    feasibility_ = feasibility;
    violation_ = violation;
    columns_ = stage.columns;
    place_of_row_.assign(static_cast<size_t>(stage.rows), -1);
    is_present_cut_.assign(static_cast<size_t>(cuts.count()), 0);
    state_change_.resize(static_cast<size_t>(stage.states));
    worst_of_family_.resize(static_cast<size_t>(stage.families));
    joined_.resize(static_cast<size_t>(stage.columns));
    for (std::vector<Joined>& entries : joined_) entries.clear();
    rows_.clear();
    start_loose();
}

void SparseDualSimplex::clear_rows() {
    for (Int row = 0; row < row_count(); ++row) {
        if (rows_[row].is_cut()) is_present_cut_[rows_[row].index] = 0;
        else place_of_row_[rows_[row].index] = -1;
        if (!rows_[row].is_cut() && is_deferred(rows_[row].index))
            for_row(row, [this](Int column, double) { joined_[column].clear(); });
    }
    rows_.clear();
    dual_bounds_.clear();
    cut_rows_.clear();
    copies_.clear();
    row_column_.clear();
    row_value_.clear();
    const auto columns = static_cast<size_t>(columns_);
    status_.assign(columns, at_lower);
    weight_.assign(columns, 1.0);
    slot_of_.resize(columns);
    way_.assign(columns, 0.0);
    lower_.resize(columns);
    upper_.resize(columns);
    x_.assign(columns, 0.0);
    reduced_.assign(columns, 0.0);
    head_.clear();
    missing_.clear();
    is_candidate_.clear();
    infeasible_.clear();
    has_reduced_costs_ = false;
}

void SparseDualSimplex::push_entry(Int column, double value) {
    row_column_.push_back(column);
    row_value_.push_back(value);
}

// Entries of nonbasic columns, singletons apart, to the front: the pivot row needs no others.
void SparseDualSimplex::split_entries(WorkingRow& row) {
    row.split = row.start;
    for (Int at = row.start; at < row.end; ++at) {
        if (!is_in_pivot_rows(row_column_[at])) continue;
        std::swap(row_column_[at], row_column_[row.split]);
        std::swap(row_value_[at], row_value_[row.split++]);
    }
}

// A column has become basic, or nonbasic: its entries change sides.
void SparseDualSimplex::move_entries(Int column, bool is_basic) {
    if (stage_->singleton_row[column] >= 0) return;
    for_column(column, [&](Int place, double) {
        WorkingRow& row = rows_[place];
        Int at = is_basic ? row.start : row.split;
        while (row_column_[at] != column) ++at;
        const Int to = is_basic ? --row.split : row.split++;
        std::swap(row_column_[at], row_column_[to]);
        std::swap(row_value_[at], row_value_[to]);
    });
}

void SparseDualSimplex::push_row(WorkingRow row, int8_t status) {
    const StageModel& stage = *stage_;
    row.start = static_cast<Int>(row_column_.size());
    if (row.is_cut()) {
        is_present_cut_[row.index] = 1;
        cut_rows_.push_back(row_count());
        const double* coefficients = copies_.data() + static_cast<size_t>(row.copy) * stage.states;
        for (Int state = 0; state < stage.states; ++state)
            if (coefficients[state] != 0.0) push_entry(stage.state_column[state], coefficients[state]);
        push_entry(stage.future_cost, 1.0);
    } else {
        place_of_row_[row.index] = row_count();
        for (Int at = stage.row_start[row.index]; at < stage.row_start[row.index + 1]; ++at) {
            push_entry(stage.column_index[at], stage.value[at]);
            if (is_deferred(row.index)) joined_[stage.column_index[at]].push_back({row_count(), stage.value[at]});
        }
    }
    row.end = static_cast<Int>(row_column_.size());
    split_entries(row);
    rows_.push_back(row);
    dual_bounds_.push_back({});
    status_.push_back(status);
    weight_.push_back(1.0);
    slot_of_.push_back(-1);
    way_.push_back(0.0);
    lower_.push_back(0.0);
    upper_.push_back(0.0);
    x_.push_back(0.0);
    reduced_.push_back(0.0);
    head_.push_back(-1);
    missing_.push_back(0.0);
    is_candidate_.push_back(0);
}

// A cut with its coefficients side by side: in the pool they lie far from each other.
void SparseDualSimplex::push_cut(Int cut, int8_t status) {
    const auto copy = static_cast<Int>(cut_rows_.size());
    for (Int state = 0; state < stage_->states; ++state)
        copies_.push_back(-cuts_->coefficient(cut, state) * stage_->state_scale[state]);
    push_row({cut, copy}, status);
}

// A chain must not depend on solutions before it.
void SparseDualSimplex::forget_states() {
    state_.assign(static_cast<size_t>(stage_->states), 0.0);
    state_part_.assign(static_cast<size_t>(cuts_->count()), 0.0);
}

void SparseDualSimplex::start_loose() {
    forget_states();
    clear_rows();
    for (Int row = 0; row < stage_->rows; ++row)
        if (!is_deferred(row)) push_row({row}, basic);
    factor();
}

bool SparseDualSimplex::start(const int8_t* status, const Int* tight_cuts, Int most_cuts) {
    forget_states();
    clear_rows();
    std::copy(status, status + columns_, status_.begin());
    for (Int row = 0; row < stage_->rows; ++row)
        if (status[columns_ + row] != basic || !is_deferred(row)) push_row({row}, status[columns_ + row]);
    for (Int entry = 0; entry < most_cuts && tight_cuts[entry] >= 0; ++entry)
        if (tight_cuts[entry] < cuts_->count() && cuts_->is_in_play(tight_cuts[entry])) push_cut(tight_cuts[entry], at_lower);
    if (factor()) return true;
    start_loose();
    return false;
}

// Rows that joined and are loose now leave, when they have become many: a loose row has no say but costs work.
bool SparseDualSimplex::drop_loose_rows() {
    Int loose = 0;
    for (Int row = 0; row < row_count(); ++row) loose += may_leave(row);
    if (loose <= std::max(kFewLooseRows, row_count() / 2)) return true;
    const std::vector<WorkingRow> rows = rows_;
    const std::vector<int8_t> status = status_;
    const std::vector<double> weight = weight_, reduced = reduced_;
    std::vector<uint8_t> leaves(rows.size());
    for (Int row = 0; row < row_count(); ++row) leaves[row] = may_leave(row);
    clear_rows();
    std::copy_n(status.begin(), columns_, status_.begin());
    std::copy_n(weight.begin(), columns_, weight_.begin());
    std::copy_n(reduced.begin(), columns_, reduced_.begin());
    for (size_t row = 0; row < rows.size(); ++row) {
        if (leaves[row]) continue;
        const size_t variable = static_cast<size_t>(columns_) + row;
        if (rows[row].is_cut()) push_cut(rows[row].index, status[variable]);
        else push_row(rows[row], status[variable]);
        weight_.back() = weight[variable];
        reduced_.back() = reduced[variable];
    }
    has_reduced_costs_ = true;
    return factor();
}

void SparseDualSimplex::load_column(Int variable, double factor, SparseVector& out) const {
    if (variable >= columns_) return out.add(variable - columns_, -factor);
    SparseVector::Adder sum(out);
    for_column(variable, [&](Int row, double value) { sum.add(row, factor * value); });
}

void SparseDualSimplex::resize_work() {
    for (SparseVector* vector : {&rho_, &alpha_, &flip_}) vector->resize(rows_.size());
    pivot_row_.resize(static_cast<size_t>(columns_));
}

bool SparseDualSimplex::factor() {
    ++count_.refactorisations;
    resize_work();
    basis_columns_.clear();
    basic_columns_.clear();
    for (Int column = 0; column < columns_; ++column) {
        if (status_[column] != basic) continue;
        basic_columns_.push_back(column);
        for_column(column, [this](Int row, double value) { basis_columns_.push(row, value); });
        basis_columns_.close();
    }
    slack_is_basic_.resize(rows_.size());
    for (Int row = 0; row < row_count(); ++row) slack_is_basic_[row] = status_[slack(row)] == basic;
    if (!factor_.factor(slack_is_basic_, basis_columns_, slot_of_column_)) return false;
    count_.nucleus += factor_.nucleus();
    for (Int row = 0; row < row_count(); ++row)
        if (slack_is_basic_[row]) seat(slack(row), row);
    for (size_t at = 0; at < basic_columns_.size(); ++at) seat(basic_columns_[at], slot_of_column_[at]);
    is_fresh_ = true;
    return true;
}

void SparseDualSimplex::solution(std::vector<double>& columns, std::vector<double>& column_duals,
                                 std::vector<double>& row_duals, std::vector<Int>& tight_cuts) const {
    columns.assign(x_.begin(), x_.begin() + columns_);
    column_duals.assign(reduced_.begin(), reduced_.begin() + columns_);
    row_duals.assign(static_cast<size_t>(stage_->rows), 0.0);
    for (Int row = 0; row < row_count(); ++row)
        if (!rows_[row].is_cut()) row_duals[rows_[row].index] = reduced_[slack(row)];
    tight_cuts.clear();
    for (const Int row : cut_rows_) {
        if (status_[slack(row)] == basic) continue;
        tight_cuts.push_back(rows_[row].index);
        row_duals.push_back(reduced_[slack(row)]);
    }
}

void SparseDualSimplex::basis(int8_t* status, Int* cuts) const {
    std::copy(status_.begin(), status_.begin() + columns_, status);
    std::fill(status + columns_, status + columns_ + stage_->rows, static_cast<int8_t>(basic));
    std::fill(cuts, cuts + stage_->states + 1, -1);
    for (Int row = 0; row < row_count(); ++row)
        if (!rows_[row].is_cut()) status[columns_ + rows_[row].index] = status_[slack(row)];
    Int count = 0;
    for (const Int row : cut_rows_)
        if (status_[slack(row)] != basic && count <= stage_->states) cuts[count++] = rows_[row].index;
}

}  // namespace cobre::lp

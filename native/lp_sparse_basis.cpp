// The working LP and its basis: which rows take part, and which variables are basic.
#include <algorithm>
#include <cmath>

#include "lp_sparse_simplex.hpp"

namespace cobre::lp {

void SparseDualSimplex::begin_stage() {
    const StageModel& stage = *stage_;
    columns_ = stage.columns;
    loaded_ = stage_;
    working_row_of_.assign(static_cast<size_t>(stage.rows), -1);
    is_present_cut_.assign(static_cast<size_t>(cuts_->count()), 0);
    state_change_.resize(static_cast<size_t>(stage.num_decided));
    worst_of_family_.resize(static_cast<size_t>(stage.families));
    deferred_entries_.resize(static_cast<size_t>(stage.columns));
    for (std::vector<DeferredEntry>& entries : deferred_entries_) entries.clear();
    rows_.clear();
    start_from_slacks();
}

// An empty working LP. Capacities stay: a chain allocates nothing after its first solves.
void SparseDualSimplex::clear_rows() {
    for (Int row = 0; row < row_count(); ++row) {
        if (rows_[row].is_cut()) is_present_cut_[rows_[row].index] = 0;
        else working_row_of_[rows_[row].index] = -1;
        if (!rows_[row].is_cut() && is_deferred(rows_[row].index))
            for_each_in_row(row, [this](Int column, double) { deferred_entries_[column].clear(); });
    }
    rows_.clear();
    dual_bounds_.clear();
    cut_rows_.clear();
    cut_coefficients_.clear();
    row_column_.clear();
    row_value_.clear();
    const auto columns = static_cast<size_t>(columns_);
    status_.assign(columns, at_lower);
    weight_.assign(columns, 1.0);
    slot_of_.resize(columns);
    direction_.assign(columns, 0.0);
    lower_.resize(columns);
    upper_.resize(columns);
    x_.assign(columns, 0.0);
    reduced_.assign(columns, 0.0);
    head_.clear();
    infeasibility_.clear();
    is_listed_.clear();
    infeasible_.clear();
    has_reduced_costs_ = false;
}

void SparseDualSimplex::append_entry(Int column, double value) {
    row_column_.push_back(column);
    row_value_.push_back(value);
}

// Entries of nonbasic columns that are not singletons first: the pivot row needs no others.
void SparseDualSimplex::split_entries(WorkingRow& row) {
    row.split = row.start;
    for (Int at = row.start; at < row.end; ++at) {
        if (!is_priced(row_column_[at])) continue;
        std::swap(row_column_[at], row_column_[row.split]);
        std::swap(row_value_[at], row_value_[row.split++]);
    }
}

// A column has become basic, or nonbasic: its entries move to the other side of `split`.
void SparseDualSimplex::move_entries(Int column, bool is_basic) {
    if (stage_->singleton_row[column] >= 0) return;
    for_each_in_column(column, [&](Int index, double) {
        WorkingRow& row = rows_[index];
        Int at = is_basic ? row.start : row.split;
        while (row_column_[at] != column) ++at;
        const Int to = is_basic ? --row.split : row.split++;
        std::swap(row_column_[at], row_column_[to]);
        std::swap(row_value_[at], row_value_[to]);
    });
}

// A row becomes part of the working LP, with a slack of the given status.
void SparseDualSimplex::append_row(WorkingRow row, int8_t status) {
    const StageModel& stage = *stage_;
    row.start = static_cast<Int>(row_column_.size());
    if (row.is_cut()) {
        is_present_cut_[row.index] = 1;
        cut_rows_.push_back(row_count());
        const double* coefficients = cut_coefficients_.data() + static_cast<size_t>(row.copy) * stage.num_decided;
        for (Int state = 0; state < stage.num_decided; ++state)
            if (coefficients[state] != 0.0) append_entry(stage.state_column[state], coefficients[state]);
        append_entry(stage.future_cost, 1.0);
    } else {
        working_row_of_[row.index] = row_count();
        for (Int at = stage.row_start[row.index]; at < stage.row_start[row.index + 1]; ++at) {
            append_entry(stage.column_index[at], stage.value[at]);
            if (is_deferred(row.index))
                deferred_entries_[stage.column_index[at]].push_back({row_count(), stage.value[at]});
        }
    }
    row.end = static_cast<Int>(row_column_.size());
    split_entries(row);
    rows_.push_back(row);
    dual_bounds_.push_back({});
    status_.push_back(status);
    weight_.push_back(1.0);
    slot_of_.push_back(-1);
    direction_.push_back(0.0);
    lower_.push_back(0.0);
    upper_.push_back(0.0);
    x_.push_back(0.0);
    reduced_.push_back(0.0);
    head_.push_back(-1);
    infeasibility_.push_back(0.0);
    is_listed_.push_back(0);
}

// A cut with its coefficients next to each other: in the pool a stride lies between them.
void SparseDualSimplex::append_cut(Int cut, int8_t status) {
    const auto copy = static_cast<Int>(cut_rows_.size());
    for (Int state = 0; state < stage_->num_decided; ++state)
        cut_coefficients_.push_back(-cuts_->coefficient(cut, state) * stage_->state_scale[state]);
    append_row({cut, copy}, status);
}

// Cut values are updated from one solve of a chain to the next. A new chain starts over: it must not depend on what was
// solved before.
void SparseDualSimplex::reset_cut_values() {
    state_.assign(static_cast<size_t>(stage_->num_decided), 0.0);
    cut_value_.assign(static_cast<size_t>(cuts_->count()), 0.0);
}

void SparseDualSimplex::start_from_slacks() {
    reset_cut_values();
    clear_rows();
    substitution_.clear();
    stage_ = loaded_;
    smallest_pivot_ = kSmallestPivot;
    harris_tolerance_ = stage_->harris_tolerance;
    for (Int row = 0; row < stage_->rows; ++row)
        if (!is_deferred(row)) append_row({row}, basic);
    factorise();
}

// The row and the column of a pivot agree even if both are rounding errors of the same factors. The basis is
// singular then, which shows at the next factorisation, and all pivots are lost. A wider tolerance of the ratio test
// leaves more candidates to choose a large pivot from; what it does to reduced costs is corrected at the end.
bool SparseDualSimplex::start_carefully() {
    start_from_slacks();
    smallest_pivot_ = kSmallestCarefulPivot;
    harris_tolerance_ = std::max(harris_tolerance_, kCarefulHarrisTolerance);
    return true;
}

bool SparseDualSimplex::start(const int8_t* status, const Int* active_cuts, Int max_cuts) {
    reset_cut_values();
    clear_rows();
    smallest_pivot_ = kSmallestPivot;
    harris_tolerance_ = loaded_->harris_tolerance;
    stage_ = substitution_.choose(*loaded_, status) ? &substitution_.stage() : loaded_;
    start_status_.assign(status, status + columns_ + stage_->rows);
    status = start_status_.data();
    substitution_.exchange(start_status_.data());
    std::copy(status, status + columns_, status_.begin());
    for (Int row = 0; row < stage_->rows; ++row)
        if (status[columns_ + row] != basic || !is_deferred(row)) append_row({row}, status[columns_ + row]);
    for (Int entry = 0; entry < max_cuts && active_cuts[entry] >= 0; ++entry)
        if (active_cuts[entry] < cuts_->count() && cuts_->is_selected(active_cuts[entry]))
            append_cut(active_cuts[entry], at_lower);
    if (factorise_repaired()) return true;
    start_from_slacks();
    return false;
}

// A basis that was mapped from another stage may lack a column, or have one too many: slacks replace what has no pivot.
bool SparseDualSimplex::factorise_repaired() {
    for (int attempt = 0; attempt < kMaxBasisRepairs; ++attempt) {
        if (factorise()) return true;
        for (size_t at = 0; at < basic_columns_.size(); ++at) {
            if (slot_of_column_[at] >= 0) continue;
            status_[basic_columns_[at]] = at_lower;
            move_entries(basic_columns_[at], false);
        }
        for (Int row = 0; row < row_count(); ++row)
            if (!factorisation_.has_pivot(row)) status_[slack(row)] = basic;
    }
    return factorise();
}

// Cuts and deferred rows that have become inactive leave the working LP once there are many: they cannot bind but cost
// work.
bool SparseDualSimplex::remove_inactive_rows() {
    Int inactive = 0;
    for (Int row = 0; row < row_count(); ++row) inactive += is_removable(row);
    if (inactive <= std::max(kFewInactiveRows, row_count() / 2)) return true;
    const std::vector<WorkingRow> rows = rows_;
    const std::vector<int8_t> status = status_;
    const std::vector<double> weight = weight_, reduced = reduced_;
    std::vector<uint8_t> is_removed(rows.size());
    for (Int row = 0; row < row_count(); ++row) is_removed[row] = is_removable(row);
    clear_rows();
    std::copy_n(status.begin(), columns_, status_.begin());
    std::copy_n(weight.begin(), columns_, weight_.begin());
    std::copy_n(reduced.begin(), columns_, reduced_.begin());
    for (size_t row = 0; row < rows.size(); ++row) {
        if (is_removed[row]) continue;
        const size_t variable = static_cast<size_t>(columns_) + row;
        if (rows[row].is_cut()) append_cut(rows[row].index, status[variable]);
        else append_row(rows[row], status[variable]);
        weight_.back() = weight[variable];
        reduced_.back() = reduced[variable];
    }
    has_reduced_costs_ = true;
    return factorise();
}

void SparseDualSimplex::load_column(Int variable, double factor, SparseVector& out) const {
    if (variable >= columns_) return out.add(variable - columns_, -factor);
    SparseVector::Adder sum(out);
    for_each_in_column(variable, [&](Int row, double value) { sum.add(row, factor * value); });
}

void SparseDualSimplex::resize_vectors() {
    for (SparseVector* vector : {&inverse_row_, &pivot_column_, &flip_column_}) vector->resize(rows_.size());
    pivot_row_.resize(static_cast<size_t>(columns_));
}

// Factorise the current basis from its columns. Slots are pivot rows, so that slacks keep their own.
bool SparseDualSimplex::factorise() {
    ++counts_.refactorisations;
    resize_vectors();
    basis_columns_.clear();
    basic_columns_.clear();
    for (Int column = 0; column < columns_; ++column) {
        if (status_[column] != basic) continue;
        basic_columns_.push_back(column);
        for_each_in_column(column, [this](Int row, double value) { basis_columns_.push(row, value); });
        basis_columns_.close();
    }
    slack_is_basic_.resize(rows_.size());
    for (Int row = 0; row < row_count(); ++row) slack_is_basic_[row] = status_[slack(row)] == basic;
    if (!factorisation_.factorise(slack_is_basic_, basis_columns_, slot_of_column_)) return false;
    counts_.nucleus += factorisation_.nucleus();
    for (Int row = 0; row < row_count(); ++row)
        if (slack_is_basic_[row]) set_basic(slack(row), row);
    for (size_t at = 0; at < basic_columns_.size(); ++at) set_basic(basic_columns_[at], slot_of_column_[at]);
    is_freshly_factorised_ = true;
    return true;
}

void SparseDualSimplex::solution(std::vector<double>& columns, std::vector<double>& column_duals,
                                 std::vector<double>& row_duals, std::vector<Int>& active_cuts) const {
    columns.assign(x_.begin(), x_.begin() + columns_);
    column_duals.assign(reduced_.begin(), reduced_.begin() + columns_);
    row_duals.assign(static_cast<size_t>(stage_->rows), 0.0);
    for (Int row = 0; row < row_count(); ++row)
        if (!rows_[row].is_cut()) row_duals[rows_[row].index] = reduced_[slack(row)];
    active_cuts.clear();
    for (const Int row : cut_rows_) {
        if (status_[slack(row)] == basic) continue;
        active_cuts.push_back(rows_[row].index);
        row_duals.push_back(reduced_[slack(row)]);
    }
    substitution_.restore(columns, column_duals, row_duals);
}

void SparseDualSimplex::basis(int8_t* status, Int* cuts) const {
    std::copy(status_.begin(), status_.begin() + columns_, status);
    std::fill(status + columns_, status + columns_ + stage_->rows, static_cast<int8_t>(basic));
    std::fill(cuts, cuts + stage_->num_decided + 1, -1);
    for (Int row = 0; row < row_count(); ++row)
        if (!rows_[row].is_cut()) status[columns_ + rows_[row].index] = status_[slack(row)];
    substitution_.exchange(status);
    Int count = 0;
    for (const Int row : cut_rows_)
        if (status_[slack(row)] != basic && count <= stage_->num_decided) cuts[count++] = rows_[row].index;
}

}  // namespace cobre::lp

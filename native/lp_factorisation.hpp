// A factorised basis: B = L R U up to the order of rows and columns, where R has a row eta for every change since L and
// U were computed (Forrest and Tomlin).
//
// Positions count pivots in the order of elimination. The slack columns come first, then column singletons, then row
// singletons, and last the nucleus, the only part that fills in (Markowitz, with a threshold for stability). A basic
// variable takes the row of its pivot as its slot, so that one index serves rows and slots.
//
// When a column is exchanged, its position is retired and its row moves to a new last position: there U gets what the
// new column is after L and R, and a row eta takes away what was left of the old row. U stays triangular in the order
// of positions. A retired position has an infinite pivot: whatever arrives there becomes zero.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lp_nucleus.hpp"
#include "lp_sparse_vector.hpp"
#include "lp_tolerances.hpp"

namespace cobre::lp {

// The basic columns of the matrix that are not slacks, one after the other.
struct BasisColumns {
    std::vector<Int> start{0}, row;
    std::vector<double> value;

    void clear() { start.assign(1, 0), row.clear(), value.clear(); }
    void push(Int at, double number) { row.push_back(at), value.push_back(number); }
    void close() { start.push_back(static_cast<Int>(row.size())); }
    Int count() const { return static_cast<Int>(start.size()) - 1; }
};

class Factorisation {
public:
    // Factorise; the slack of row i is -e_i and is basic where `slack_is_basic[i]`. Fills `slot_of_column`: the pivot
    // row of each column. False when the matrix is not square, or singular to working accuracy: then columns without a
    // pivot have a negative slot, and with slacks in the place of rows without one the others are a basis.
    bool factorise(std::span<const uint8_t> slack_is_basic, const BasisColumns& columns,
                   std::vector<Int>& slot_of_column);

    // After `factorise`: whether a row has a pivot.
    bool has_pivot(Int row) const { return position_[row] >= 0; }

    enum class Purpose { solution, update };
    // Solve B x = v: from rows to slots. For an update: v is the column that will enter.
    void ftran(SparseVector& v, Purpose purpose = Purpose::solution);
    // Solve B' y = v: from slots to rows. For an update: v is one at the slot that will change.
    void btran(SparseVector& v, Purpose purpose = Purpose::solution);
    // Exchange the column at a slot, for the column and row of the last `ftran` and `btran` for an update.
    void update(Int slot);
    // One row more at the end, whose slack is basic. `entries` are its coefficients at the basic columns, by slot.
    void append_row(Int row, SparseVector& entries);

    // Whether the updates cost more by now than a new factorisation would.
    bool needs_refactor() const { return update_work_ > kUpdateWork * (rows_ + fresh_entries_); }
    Int nucleus() const { return nucleus_size_; }

private:
    // Off-diagonal entries of a triangular factor by rows or columns (lines). `has`: the lines that have any.
    struct Lines {
        std::vector<Int> start, index;
        std::vector<double> value;
        PositionSet has;
    };
    // What a solve reads of a factor: pointers that stay in registers, because nothing that is written can change them.
    struct LineView {
        const Int *start, *index;
        const double* value;
        explicit LineView(const Lines& lines)
            : start(lines.start.data()), index(lines.index.data()), value(lines.value.data()) {}
        // Subtract a multiple of a line.
        void subtract(Int at, double multiple, double* work, PositionSet::Inserter pattern) const {
            for (Int entry = start[at], end = start[at + 1]; entry < end; ++entry) {
                work[index[entry]] -= value[entry] * multiple;
                pattern.insert(index[entry]);
            }
        }
    };

    void begin(std::span<const uint8_t> slack_is_basic, const BasisColumns& columns);
    void pivot_on(Int row, Int column, double value);
    void pivot_column_singletons(const BasisColumns& columns);
    void pivot_row_singletons(const BasisColumns& columns);
    void eliminate_nucleus(const BasisColumns& columns);
    void permute_to_positions(const BasisColumns& columns);
    void sort_lines(const std::vector<Entry>& entries, Lines& by_column, Lines& by_row) const;
    struct PositionValue {
        Int position;
        double value;
    };
    void begin_updates();
    void scatter(SparseVector& v, const std::vector<Int>& positions);
    void solve_upper_transposed();
    void apply_etas();
    void apply_etas_transposed();
    void collect(std::vector<PositionValue>& parts) const;
    void push_position(Int slot, Int row, double pivot);
    void close_eta(Int from, Int to);
    // Values of `row_of_column_` for columns without a pivot: so far, or for good.
    static constexpr Int kLeft = -1, kRejected = -2;
    bool is_left(Int column) const { return row_of_column_[static_cast<size_t>(column)] == kLeft; }
    Int row_of(Int column) const { return row_of_column_[static_cast<size_t>(column)]; }

    size_t rows_ = 0;                    // when it was factorised
    std::vector<Int> order_, position_;  // slot of each position in U, and the other way round
    std::vector<Int> row_at_,
        first_position_;         // the same for L, and for rows that were appended; -1: no row begins there
    std::vector<double> pivot_;  // by position
    Lines lower_columns_, lower_rows_, upper_columns_, upper_rows_;
    std::vector<double> work_;  // by position; zero between calls
    PositionSet pattern_;
    Int nucleus_size_ = 0;

    // Row etas, oldest first: the row at position `from` moves to position `to`, minus these multiples of others.
    std::vector<Int> eta_from_, eta_to_, eta_start_{0}, eta_position_;
    std::vector<double> eta_value_;
    // Entries of new columns of U by rows: lists, the newest entry first.
    std::vector<Int> newest_, older_, new_column_;
    std::vector<double> new_value_;
    std::vector<PositionValue> row_for_update_, column_for_update_;
    size_t fresh_entries_ = 0;  // of L and U when they were made
    size_t update_work_ = 0;    // entries of etas and of new columns, summed over updates

    // Only while factorising.
    std::vector<Int> row_of_column_, column_count_, row_count_, row_start_, row_columns_, queue_;
    std::vector<Entry> lower_entries_, upper_entries_;
    std::vector<Nucleus::Pivot> nucleus_pivots_;
    Nucleus nucleus_;
};

}  // namespace cobre::lp

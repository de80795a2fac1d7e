// A factorised basis: B = L U up to the order of rows and columns, then one eta for every exchange of a column.
//
// Positions count pivots in the order of elimination. The slack columns come first, then column singletons, then row
// singletons, and last the nucleus, which alone can fill in (Markowitz, with a threshold for stability). A basic variable
// takes the row of its pivot as its slot, so that one index serves rows and slots.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lp_nucleus.hpp"
#include "lp_sparse_vector.hpp"

namespace cobre::lp {

// The basic columns of the matrix that are no slacks, one after the other.
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
    // row of each column. False when the matrix is singular to working accuracy.
    bool factor(std::span<const uint8_t> slack_is_basic, const BasisColumns& columns, std::vector<Int>& slot_of_column);

    // Solve B x = v: from rows to slots.
    void ftran(SparseVector& v);
    // Solve B' y = v: from slots to rows.
    void btran(SparseVector& v);
    // Another column takes a slot; `alpha` is B^-1 times that column.
    void update(Int slot, const SparseVector& alpha);
    // One row more at the end, whose slack is basic. `entries` are its coefficients at the basic columns, by slot.
    void append_row(Int row, const SparseVector& entries);

    // Whether applying the etas has cost more than factorising anew does.
    bool is_worn() const { return eta_work_ > kEtaWork * (rows_ + upper_columns_.index.size() + lower_columns_.index.size()); }
    Int nucleus() const { return nucleus_size_; }

   private:
    // Off-diagonal entries of a triangular factor by lines; lines that have none are not members of `has`.
    struct Lines {
        std::vector<Int> start, index;
        std::vector<double> value;
        PositionSet has;
    };

    void begin(std::span<const uint8_t> slack_is_basic, const BasisColumns& columns);
    void pivot_on(Int row, Int column, double value);
    bool peel_columns(const BasisColumns& columns);
    bool peel_rows(const BasisColumns& columns);
    bool eliminate_nucleus(const BasisColumns& columns);
    void arrange(const BasisColumns& columns);
    void sort_lines(const std::vector<Entry>& entries, Lines& by_column, Lines& by_row) const;
    void scatter(SparseVector& v);
    void apply_etas(SparseVector& v) const;
    void apply_etas_transposed(SparseVector& v) const;
    void close_eta(Int slot, double pivot, bool is_row);
    Int row_of(Int column) const { return row_of_column_[static_cast<size_t>(column)]; }

    size_t rows_ = 0;
    std::vector<Int> order_, position_;      // row of each pivot, and the other way round
    std::vector<double> pivot_;              // by position
    Lines lower_columns_, lower_rows_, upper_columns_, upper_rows_;
    std::vector<double> work_;               // by position; zero between calls
    PositionSet pattern_;
    std::vector<Entry> beyond_;              // entries of a right side in appended rows
    Int nucleus_size_ = 0;

    // Etas, oldest first. One of a column exchange has its slot and pivot; one of an appended row has that row and the
    // pivot -1 of its slack, and is told apart by `eta_is_row_`.
    std::vector<Int> eta_slot_, eta_start_{0}, eta_row_;
    std::vector<double> eta_pivot_, eta_value_;
    std::vector<uint8_t> eta_is_row_;
    size_t eta_work_ = 0;                    // entries of etas, summed over updates
    static constexpr size_t kEtaWork = 16;   // entries that cost as much as one of the matrix in a factorisation

    // while factorising
    std::vector<Int> row_of_column_, column_count_, row_count_, row_start_, row_columns_, queue_;
    std::vector<Entry> lower_entries_, upper_entries_;
    std::vector<Nucleus::Pivot> nucleus_pivots_;
    Nucleus nucleus_;
};

}  // namespace cobre::lp

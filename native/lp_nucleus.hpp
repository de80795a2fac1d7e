// Elimination of the part of a basis that has no singletons: Markowitz's rule with threshold pivoting.
#pragma once

#include <vector>

#include "highs_api.hpp"

namespace cobre::lp {

// An entry of a factor: row and column of the basis.
struct Entry {
    Int row, column;
    double value;
};

class Nucleus {
public:
    struct Pivot {
        Int row, column;
        double value;
    };

    // Rows and columns are numbered by the caller; `reset` gives how many there may be.
    void reset(size_t rows, size_t columns);
    void add(Int row, Int column, double value);
    // Append pivots in the order of elimination, multipliers of L and entries of U. In a singular matrix some rows and
    // columns get no pivot.
    void eliminate(std::vector<Pivot>& pivots, std::vector<Entry>& lower, std::vector<Entry>& upper);

private:
    // Lines of one kind (rows or columns) by how many entries they have.
    class CountLists {
    public:
        void reset(size_t lines, size_t most);
        void insert(Int line, Int count);
        void remove(Int line);
        Int first(Int count) const { return head_[static_cast<size_t>(count)]; }
        Int after(Int line) const { return next_[static_cast<size_t>(line)]; }

    private:
        std::vector<Int> head_, next_, previous_, count_;
    };
    struct Cell {
        Int row;
        double value;
    };

    void list_lines();
    bool find_pivot(Pivot& pivot) const;
    void consider(Int row, Int column, double& best, Pivot& pivot) const;
    double largest(Int column) const;
    const Cell* cell(Int row, Int column) const;
    void remove_pivot(const Pivot& pivot, std::vector<Entry>& lower);
    void update_column(const Pivot& pivot, Int column, std::vector<Entry>& upper);

    std::vector<std::vector<Cell>> columns_;
    std::vector<std::vector<Int>> rows_;  // columns that have an entry in a row
    std::vector<Int> used_rows_, used_columns_;
    CountLists by_row_, by_column_;
    std::vector<Cell> multipliers_;     // of the present pivot
    std::vector<Int> position_of_row_;  // by row: position in the present column, or -1
};

}  // namespace cobre::lp

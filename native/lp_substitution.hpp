// Generation substituted out of a stage's LP: a smaller basis with the same optima.
//
// In a basis, the generation g of most families of production planes is basic and one of its planes is active. Such a
// pair of a row and a column exchanges roles here: with w the activity of the plane `alpha g + beta z`, the column of g
// becomes one of w, which has the row's bounds, and the row of the plane becomes `g = (w - beta z) / alpha`, which has
// the bounds of g and is a deferred row, because few of them bind. Both keep their indices. The variables of the LP
// and what they must satisfy are the same, and so are reduced costs: those of g and of the plane exchange places, too.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lp_dual_simplex.hpp"
#include "lp_stage.hpp"

namespace cobre::lp {

class Substitution {
public:
    // Choose the pairs of a basis (statuses of columns, then rows); false when there are few: the stage stays as it is.
    bool choose(const StageModel& stage, const int8_t* status);
    void clear() { pairs_.clear(); }

    const StageModel& stage() const { return stage_; }
    // The same bounds, with those of pairs exchanged; valid until the next call.
    Bounds exchanged(const Bounds& bounds);
    // Exchange the statuses of every pair.
    void exchange(int8_t* status) const;
    // Put back what `stage` has exchanged: values of columns, their reduced costs, and duals of rows.
    void restore(std::vector<double>& columns, std::vector<double>& column_duals, std::vector<double>& row_duals) const;

private:
    struct Pair {
        Int column, row;
        double coefficient;  // of the column in the row
    };
    void substitute(const StageModel& stage);
    void add(Int column, double value);
    void add_generation(const StageModel& stage, const Pair& pair, double multiple);
    void close_row();

    std::vector<Pair> pairs_;
    std::vector<Int> pair_of_column_, pair_of_row_;  // -1: none
    StageModel stage_;
    // What the views of `stage_` show.
    std::vector<Int> row_start_, column_index_;
    std::vector<double> value_, cost_;
    // The row that is being computed: sums and their largest terms by column, and the columns that it has.
    std::vector<double> sum_, largest_;
    std::vector<Int> touched_;
    std::vector<double> column_lower_, column_upper_, row_lower_, row_upper_;
};

}  // namespace cobre::lp

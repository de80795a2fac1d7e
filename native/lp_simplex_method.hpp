// What a solver of stage LPs asks of a dual simplex method. Two keep it: one with a dense inverse for small stages, one with
// a sparse factorisation for large ones.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lp_cuts.hpp"
#include "lp_stage.hpp"

namespace cobre::lp {

// Bounds of one solve; they belong to the caller and must stay while `optimise` runs.
struct Bounds {
    const double* column_lower;
    const double* column_upper;
    const double* row_lower;
    const double* row_upper;
    const double* cut_right;  // by cut: its right side
};

enum class Outcome { optimal, gave_up };

// Where a variable is; also the codes of a stored basis.
enum Status : int8_t { at_lower = 0, basic = 1, at_upper = 2, at_zero = 3 };

struct SimplexCount {
    int64_t pivots = 0;
    int64_t refactorisations = 0;
    int64_t nucleus = 0;      // order of what is left when singletons are peeled, summed over factorisations
    int64_t active_rows = 0;  // at a bound in optimal bases, cuts included, summed over solves
};

class SimplexMethod {
   public:
    virtual ~SimplexMethod() = default;
    virtual void load(const StageModel& stage, const CutView& cuts, double feasibility, double violation) = 0;

    // Begin from a basis; false when it is not one. Without a basis every row is loose, which is dual feasible as long as
    // rewarded columns have an upper bound.
    virtual bool start(const int8_t* status, const Int* tight_cuts, Int most_cuts) = 0;
    virtual void start_loose() = 0;

    // Optimise for these bounds from the present basis.
    virtual Outcome optimise(const Bounds& bounds) = 0;

    // The solution: values and reduced costs of columns, duals of rows, tight cuts (appended, with their duals).
    virtual void solution(std::vector<double>& columns, std::vector<double>& column_duals, std::vector<double>& row_duals,
                          std::vector<Int>& tight_cuts) const = 0;
    // Statuses of columns and rows, then the tight cuts.
    virtual void basis(int8_t* status, Int* cuts) const = 0;

    // What was done since the last call.
    SimplexCount take_count() { return std::exchange(count_, {}); }

   protected:
    SimplexCount count_;
};

}  // namespace cobre::lp

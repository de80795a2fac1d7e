// The dual simplex method as the solver of stage LPs sees it. Two implementations: a dense inverse for stages with few
// rows, a sparse factorisation for large ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "lp_cut_rhs.hpp"
#include "lp_cuts.hpp"
#include "lp_stage.hpp"
#include "lp_tolerances.hpp"
#include "stop_signal.hpp"

namespace cobre::lp {

constexpr double kInfinity = std::numeric_limits<double>::infinity();  // a bound that does not bind

// Bounds of one solve; they belong to the caller and must stay while `optimise` runs.
struct Bounds {
    const double* column_lower;
    const double* column_upper;
    const double* row_lower;
    const double* row_upper;
    CutRhs* cut_rhs;
};

enum class SimplexStatus { optimal, gave_up };

// Where a variable is; also the codes of a stored basis.
enum Status : int8_t { at_lower = 0, basic = 1, at_upper = 2, at_zero = 3 };

struct SimplexCounts {
    int64_t pivots = 0;
    int64_t refactorisations = 0;
    int64_t nucleus = 0;      // order of what is left of the basis after its singletons, summed over factorisations
    int64_t active_rows = 0;  // at a bound in optimal bases, cuts included, summed over solves

    void add(const SimplexCounts& other) {
        pivots += other.pivots;
        refactorisations += other.refactorisations;
        nucleus += other.nucleus;
        active_rows += other.active_rows;
    }
};

// The error that a value of this size may have.
inline double allowance(double tolerance, double size) { return tolerance * std::max(1.0, std::abs(size)); }

class DualSimplex {
public:
    virtual ~DualSimplex() = default;

    // Take a stage and its cuts, which must outlive the solves. feasibility: how far a value may be out of its bounds,
    // relative to the bound. violation: the same for cuts, relative to the cost-to-go.
    void load(const StageModel& stage, const CutView& cuts, double feasibility, double violation) {
        stage_ = &stage;
        cuts_ = &cuts;
        feasibility_ = feasibility;
        violation_ = violation;
        begin_stage();
    }

    // Where `optimise` looks before each pivot whether to go on. When not it throws `Stopped`; the next solve must then
    // begin with a start.
    void stop_at(const StopPoint* stop) { stop_ = stop; }

    // Start from a basis; false when it is singular, then from slacks. The slack basis is dual feasible as long as
    // columns with a negative cost have an upper bound.
    virtual bool start(const int8_t* status, const Int* active_cuts, Int max_cuts) = 0;
    virtual void start_from_slacks() = 0;
    // Start from slacks, and take no small pivots until the next start. False where that makes no difference.
    virtual bool start_carefully() { return false; }

    // Optimise for these bounds, from the current basis.
    virtual SimplexStatus optimise(const Bounds& bounds) = 0;
    // After `optimise`, when the duals do not prove the optimum: correct reduced costs of the wrong sign. False when
    // that is not possible, or nothing changed.
    virtual bool improve_duals() { return false; }

    // The solution: values and reduced costs of columns, duals of rows, then those of the active cuts.
    virtual void solution(std::vector<double>& columns, std::vector<double>& column_duals,
                          std::vector<double>& row_duals, std::vector<Int>& active_cuts) const = 0;
    // Statuses of columns and rows, and the active cuts.
    virtual void basis(int8_t* status, Int* cuts) const = 0;

    // What was done since the last call.
    SimplexCounts take_counts() { return std::exchange(counts_, {}); }

protected:
    // A new stage has been loaded: size the work arrays.
    virtual void begin_stage() = 0;

    void pass_stop() const {
        if (stop_) stop_->pass();
    }

    // Signed distance to the violated bound (positive: below the lower one); 0 within the tolerance.
    double infeasibility_of(double value, double lower, double upper) const {
        if (value >= lower && value <= upper) return 0.0;
        if (lower - value > allowance(feasibility_, lower)) return lower - value;
        if (value - upper > allowance(feasibility_, upper)) return upper - value;
        return 0.0;
    }
    // A number of pivots that only a cycle reaches.
    int64_t pivot_limit() const {
        return counts_.pivots + kLeastPivotLimit + kPivotsPerLine * (stage_->rows + stage_->columns);
    }

    const StageModel* stage_ = nullptr;
    const CutView* cuts_ = nullptr;
    Bounds bounds_{};
    double feasibility_ = 0.0, violation_ = 0.0;  // given by `load`
    SimplexCounts counts_;
    const StopPoint* stop_ = nullptr;
};

}  // namespace cobre::lp

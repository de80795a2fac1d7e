// HiGHS for the LPs that our own simplex could not finish.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "lp_solver.hpp"

namespace cobre::lp {

namespace {

// A cut as a row: theta - coefficients . decided states >= right-hand side. Lags and passed states are known when a
// stage is solved, so they are part of the right-hand side.
void append_cut(const StageModel& stage, const CutView& cuts, Int cut, std::vector<Int>& index,
                std::vector<double>& value) {
    for (Int state = 0; state < stage.num_decided; ++state) {
        const double coefficient = cuts.coefficient(cut, state) * stage.state_scale[state];
        if (coefficient == 0.0) continue;
        index.push_back(stage.state_column[state]);
        value.push_back(-coefficient);
    }
    index.push_back(stage.future_cost);
    value.push_back(1.0);
}

}  // namespace

void Solver::check(Int status, const char* what) const {
    if (status == kStatusError) throw LibraryError(std::string("HiGHS failed to ") + what);
}

void Solver::set_defaults() {
    check(api_.set_bool(highs_, "output_flag", 0), "turn its output off");
    check(api_.set_int(highs_, "threads", 1), "use one thread");
    check(api_.set_string(highs_, "parallel", "off"), "use one thread");
    check(api_.set_string(highs_, "solver", "simplex"), "select the simplex solver");
    check(api_.set_string(highs_, "presolve", "off"), "turn presolve off");
    check(api_.set_int(highs_, "simplex_strategy", 1), "select the dual simplex method");
    // Scale factors survive from one LP to the next; ours are part of the stage.
    check(api_.set_int(highs_, "simplex_scale_strategy", 0), "turn scaling off");
    // Smaller entries are dropped: with the default of 1e-9 cuts lose slopes, and lie too low or too high where volumes
    // are large.
    check(api_.set_double(highs_, "small_matrix_value", kSmallestHighsEntry), "keep small entries");
    check(api_.set_int(highs_, "ipm_iteration_limit", kMaxInteriorPointSteps), "set the iteration limit");
    check(api_.set_double(highs_, "primal_feasibility_tolerance", options_.tolerances.highs_feasibility),
          "set a tolerance");
    check(api_.set_double(highs_, "dual_feasibility_tolerance", options_.tolerances.highs_feasibility),
          "set a tolerance");
}

// HiGHS asks between pivots, and between iterations of its interior point method.
void Solver::take_interrupts() {
    const auto callback = [](int, const char*, const void*, void* in, void* data) {
        // Written in any case: the library keeps the last answer, also for its next LP.
        if (in) *static_cast<int*>(in) = static_cast<const StopPoint*>(data)->is_reached();
    };
    check(api_.set_callback(highs_, callback, &stop_), "take a callback");
    check(api_.start_callback(highs_, kSimplexInterrupt), "call back from simplex");
    check(api_.start_callback(highs_, kIpmInterrupt), "call back from its interior point method");
}

void Solver::pass_lp_to_highs(double cost_factor) {
    const StageModel& stage = *stage_;
    cost_factor_ = cost_factor;
    std::vector<double> cost(stage.cost.begin(), stage.cost.end());
    for (double& each : cost) each *= cost_factor;
    check(api_.pass_lp(highs_, stage.columns, stage.rows, static_cast<Int>(stage.value.size()), kRowwise, kMinimise,
                       0.0, cost.data(), column_lower_.data(), column_upper_.data(), row_lower_.data(),
                       row_upper_.data(), stage.row_start.data(), stage.column_index.data(), stage.value.data()),
          "load an LP");
    // Limited by iterations and not by seconds: seconds differ from run to run, and so would the results.
    check(api_.set_int(highs_, "simplex_iteration_limit",
                       kHighsPivotsPerLine * (stage.columns + stage.rows) + kLeastHighsPivotLimit),
          "set the iteration limit");
    cuts_with_dual_.clear();
    is_in_highs_.assign(static_cast<size_t>(cuts_->count()), 0);
}

void Solver::add_cuts(const std::vector<Int>& wanted) {
    std::vector<Int> start, index;
    std::vector<double> value, lower, upper;
    for (const Int cut : wanted) {
        is_in_highs_[cut] = 1;
        cuts_with_dual_.push_back(cut);
        start.push_back(static_cast<Int>(index.size()));
        append_cut(*stage_, *cuts_, cut, index, value);
        lower.push_back(cut_rhs_.at(cut));
        upper.push_back(kInfinity);
    }
    check(api_.add_rows(highs_, static_cast<Int>(lower.size()), lower.data(), upper.data(),
                        static_cast<Int>(value.size()), start.data(), index.data(), value.data()),
          "add rows for cuts");
}

bool Solver::run_highs() {
    const Int status = api_.run(highs_);
    if (stop_.is_reached()) {
        set_defaults();  // it may have been a retry with other settings
        throw Stopped{};
    }
    if (status == kStatusError || api_.model_status(highs_) != kOptimal) return false;
    column_value_.resize(static_cast<size_t>(stage_->columns));
    column_dual_.resize(column_value_.size());
    row_value_.resize(static_cast<size_t>(stage_->rows) + cuts_with_dual_.size());
    row_dual_.resize(row_value_.size());
    check(api_.get_solution(highs_, column_value_.data(), column_dual_.data(), row_value_.data(), row_dual_.data()),
          "return its solution");
    for (double& dual : column_dual_) dual /= cost_factor_;
    for (double& dual : row_dual_) dual /= cost_factor_;
    return is_feasible(options_.tolerances.highs_infeasibility) && is_accurate(options_.tolerances.highs_gap);
}

// Whether HiGHS's values satisfy the LP as it was given. They are feasible for the one that it solved: without small
// entries, and scaled in some attempts.
bool Solver::is_feasible(double tolerance) {
    const StageModel& stage = *stage_;
    const auto is_within = [tolerance](double value, double size, double lower, double upper) {
        return std::max(lower - value, value - upper) <= tolerance * (1.0 + size);
    };
    for (Int column = 0; column < stage.columns; ++column) {
        const double value = column_value_[column];
        if (!is_within(value, std::abs(value), column_lower_[column], column_upper_[column])) return false;
    }
    for (Int row = 0; row < stage.rows; ++row) {
        double value = 0.0, size = 0.0;
        for (Int at = stage.row_start[row]; at < stage.row_start[row + 1]; ++at) {
            const double term = stage.value[at] * column_value_[stage.column_index[at]];
            value += term;
            size += std::abs(term);
        }
        if (!is_within(value, size, row_lower_[row], row_upper_[row])) return false;
    }
    std::vector<Int> index;
    std::vector<double> coefficient;
    for (const Int cut : cuts_with_dual_) {
        index.clear(), coefficient.clear();
        append_cut(stage, *cuts_, cut, index, coefficient);
        double value = 0.0, size = 0.0;
        for (size_t at = 0; at < index.size(); ++at) {
            const double term = coefficient[at] * column_value_[index[at]];
            value += term;
            size += std::abs(term);
        }
        if (!is_within(value, size, cut_rhs_.at(cut), kInfinity)) return false;
    }
    return true;
}

// The tolerance of HiGHS for reduced costs is absolute: with costs of 1e-10 and ranges of 1e6 it has to be smaller than
// it can be set. The same LP in a smaller unit of money has larger costs; a power of two changes none of their digits.
bool Solver::retry_with_large_costs() {
    if (api_.model_status(highs_) != kOptimal || cost_factor_ != 1.0) return false;
    ++counts.retries;
    double largest = 0.0;
    for (const double cost : stage_->cost) largest = std::max(largest, std::abs(cost));
    const std::vector<Int> cuts = cuts_with_dual_;
    const auto pass = [&](double factor) {
        pass_lp_to_highs(factor);
        if (!cuts.empty()) add_cuts(cuts);
    };
    pass(std::ldexp(1.0, std::max(0, kExponentOfLargeCosts - std::ilogb(largest))));
    if (run_highs()) return true;
    pass(1.0);
    return false;
}

// Other settings of HiGHS, in a fixed order so that every run takes the same: with scaling, primal simplex, presolve,
// looser tolerances, interior point.
bool Solver::retry_with_other_settings() {
    struct Attempt {
        const char *solver, *presolve;
        Int strategy, scaling;
        double tolerance;
    };
    static constexpr Attempt attempts[] = {{"simplex", "off", 1, 2, 1.0},
                                           {"simplex", "off", 4, 0, 1.0},
                                           {"simplex", "on", 1, 2, 1.0},
                                           {"simplex", "off", 4, 2, 10.0},
                                           {"ipm", "on", 1, 2, 10.0}};
    bool solved = false;
    const auto count = std::min<Int>(options_.retry_attempts, std::size(attempts));
    for (Int at = 0; at < count && !solved; ++at) {
        const Attempt& attempt = attempts[at];
        ++counts.retries;
        const double tolerance = options_.tolerances.highs_feasibility * attempt.tolerance;
        check(api_.clear_solver(highs_), "reset its solver");
        check(api_.set_string(highs_, "solver", attempt.solver), "change its solver");
        check(api_.set_string(highs_, "presolve", attempt.presolve), "change presolve");
        check(api_.set_int(highs_, "simplex_strategy", attempt.strategy), "change its solver");
        check(api_.set_int(highs_, "simplex_scale_strategy", attempt.scaling), "change scaling");
        check(api_.set_double(highs_, "primal_feasibility_tolerance", tolerance), "set a tolerance");
        check(api_.set_double(highs_, "dual_feasibility_tolerance", tolerance), "set a tolerance");
        solved = run_highs();
        if (is_proved_unsolvable()) break;
    }
    set_defaults();
    return solved;
}

// Cuts of the pool that this solution violates, the worst ones first.
bool Solver::find_violated_cuts(std::vector<Int>& found) {
    const StageModel& stage = *stage_;
    found.clear();
    for (Int state = 0; state < stage.num_decided; ++state)
        decided_[state] = column_value_[stage.state_column[state]] * stage.state_scale[state];
    const double* const rhs = cut_rhs_.all();
    values_.assign(rhs, rhs + cuts_->count());
    cuts_->add_products(0, stage.num_decided, decided_.data(), values_.data());
    const double theta = column_value_[stage.future_cost];
    const double limit = theta + options_.tolerances.violation * std::max(1.0, std::abs(theta));
    for (Int cut = 0; cut < cuts_->count(); ++cut)
        if (values_[cut] > limit && !is_in_highs_[cut] && cuts_->is_selected(cut)) found.push_back(cut);
    const auto worse = [this](Int a, Int b) { return values_[a] != values_[b] ? values_[a] > values_[b] : a < b; };
    const auto added = std::min(found.size(), static_cast<size_t>(options_.max_added_per_round));
    std::partial_sort(found.begin(), found.begin() + static_cast<ptrdiff_t>(added), found.end(), worse);
    found.resize(added);
    return !found.empty();
}

// An optimum of HiGHS that its duals do not prove (reduced costs within its tolerance, which costs of 1e-10 are too,
// times ranges of 1e5) is a good start for our own simplex.
bool Solver::prove_optimum_of_highs() {
    if (api_.model_status(highs_) != kOptimal) return false;
    const std::vector<Int> rows_of_highs = cuts_with_dual_;
    if (start_from_highs_basis() && solve_by_simplex(options_.tolerances.duality_gap, /*improves_duals=*/true))
        return true;
    cuts_with_dual_ = rows_of_highs;
    return false;
}

// The tolerances of HiGHS are absolute: a cut of 1e3 was violated by 1e-3, which its gap did not show. Our own simplex
// goes on from its basis; if that fails, the solution of HiGHS stands. The dense method, without primal pivots, is not
// asked.
void Solver::improve_optimum_of_highs() {
    if (simplex_ == &sparse_) {
        const std::vector<double> values = column_value_, reduced_costs = column_dual_, duals = row_dual_;
        const double objective = objective_;
        if (prove_optimum_of_highs()) return;
        column_value_ = values, column_dual_ = reduced_costs, row_dual_ = duals, objective_ = objective;
    }
    start_from_highs_basis();
}

// HiGHS calls LPs infeasible or unbounded that are not, if costs and coefficients differ by many decades. Its rays are
// checked against the LP as it was given: what they do not prove is solved in other ways.
bool Solver::is_proved_unsolvable() {
    const Int status = api_.model_status(highs_);
    return status == kInfeasible ? has_farkas_proof() : status == kUnbounded && has_ray_of_falling_cost();
}

bool Solver::has_ray_of_falling_cost() {
    const StageModel& stage = *stage_;
    const double tolerance = options_.tolerances.ray;
    std::vector<double> ray(static_cast<size_t>(stage.columns));
    Int exists = 0;
    if (api_.primal_ray(highs_, &exists, ray.data()) == kStatusError || !exists) return false;
    double cost = 0.0, size = 0.0;
    for (Int column = 0; column < stage.columns; ++column) {
        double& pace = ray[column];
        if (std::isfinite(pace < 0.0 ? column_lower_[column] : column_upper_[column])) pace = 0.0;
        cost += stage.cost[column] * pace;
        size += std::abs(stage.cost[column] * pace);
    }
    if (!(cost < -tolerance * size)) return false;
    const auto leaves = [&](const Int* index, const double* value, size_t count, double lower, double upper) {
        double sum = 0.0, terms = 0.0;
        for (size_t entry = 0; entry < count; ++entry) {
            sum += value[entry] * ray[index[entry]];
            terms += std::abs(value[entry] * ray[index[entry]]);
        }
        return (std::isfinite(lower) && sum < -tolerance * terms) || (std::isfinite(upper) && sum > tolerance * terms);
    };
    for (Int row = 0; row < stage.rows; ++row) {
        const auto first = static_cast<size_t>(stage.row_start[row]);
        if (leaves(&stage.column_index[first], &stage.value[first], stage.row_start[row + 1] - first, row_lower_[row],
                   row_upper_[row]))
            return false;
    }
    for (const Int cut : cuts_with_dual_) {
        std::vector<Int> index;
        std::vector<double> value;
        append_cut(stage, *cuts_, cut, index, value);
        if (leaves(index.data(), value.data(), index.size(), cut_rhs_.at(cut), kInfinity)) return false;
    }
    return true;
}

// Farkas: a combination of rows whose least right-hand side is beyond what the bounds of the columns allow.
bool Solver::has_farkas_proof() {
    const StageModel& stage = *stage_;
    for (Int row = 0; row < stage.rows; ++row)
        if (row_lower_[row] > row_upper_[row]) return true;
    for (Int column = 0; column < stage.columns; ++column)
        if (column_lower_[column] > column_upper_[column]) return true;
    const double tolerance = options_.tolerances.ray;
    std::vector<double> ray(static_cast<size_t>(stage.rows) + cuts_with_dual_.size());
    Int exists = 0;
    if (api_.dual_ray(highs_, &exists, ray.data()) == kStatusError || !exists) return false;
    std::vector<double> sum, terms;
    const auto proves = [&](double sign) {
        double excess = 0.0, size = 0.0;
        sum.assign(static_cast<size_t>(stage.columns), 0.0);
        terms.assign(sum.size(), 0.0);
        const auto add = [&](double weight, double lower, double upper, const Int* index, const double* value,
                             size_t count) {
            const double bound = weight > 0.0 ? lower : upper;
            if (weight == 0.0 || !std::isfinite(bound)) return;
            excess += weight * bound;
            size += std::abs(weight * bound);
            for (size_t entry = 0; entry < count; ++entry) {
                sum[index[entry]] += weight * value[entry];
                terms[index[entry]] += std::abs(weight * value[entry]);
            }
        };
        for (Int row = 0; row < stage.rows; ++row) {
            const auto first = static_cast<size_t>(stage.row_start[row]);
            add(sign * ray[row], row_lower_[row], row_upper_[row], &stage.column_index[first], &stage.value[first],
                stage.row_start[row + 1] - first);
        }
        for (size_t at = 0; at < cuts_with_dual_.size(); ++at) {
            std::vector<Int> index;
            std::vector<double> value;
            append_cut(stage, *cuts_, cuts_with_dual_[at], index, value);
            add(sign * ray[stage.rows + at], cut_rhs_.at(cuts_with_dual_[at]), kInfinity, index.data(), value.data(),
                index.size());
        }
        for (Int column = 0; column < stage.columns; ++column) {
            const double most = sum[column] > 0.0 ? column_upper_[column] : column_lower_[column];
            if (std::isfinite(most)) {
                excess -= sum[column] * most;
                size += std::abs(sum[column] * most);
            } else if (std::abs(sum[column]) > tolerance * terms[column]) {
                return false;
            }
        }
        return excess > tolerance * size;
    };
    return proves(1.0) || proves(-1.0);
}

// Give HiGHS the LP of a failure as the caller knows it, for `save`: cuts are gone by then.
void Solver::restore_given_units() {
    if (!stage_->units) return;
    const Units& units = *stage_->units;
    for (Int column = 0; column < stage_->columns; ++column)
        column_lower_[column] *= units.column[column], column_upper_[column] *= units.column[column];
    for (Int row = 0; row < stage_->rows; ++row) row_lower_[row] /= units.row[row], row_upper_[row] /= units.row[row];
    stage_ = &units.given;
    const std::vector<Int> cuts = cuts_with_dual_;
    pass_lp_to_highs(1.0);
    if (!cuts.empty()) add_cuts(cuts);
}

// Cuts that are violated join the LP and stay: at most as many rounds as there are cuts.
void Solver::solve_by_highs(Int chain, Int item) try {
    ++counts.library_solves;
    pass_lp_to_highs(1.0);
    for (std::vector<Int> found;;) {
        if (!run_highs()) {
            if (prove_optimum_of_highs()) return;
            if (!retry_with_large_costs() && !retry_with_other_settings()) {
                Int status = api_.model_status(highs_);
                if ((status == kInfeasible || status == kUnbounded) && !is_proved_unsolvable()) status = kUnproved;
                if (prove_optimum_of_highs()) return;
                restore_given_units();
                throw LpFailure(chain, item, status, "no solver setting led to an optimum");
            }
        }
        if (!find_violated_cuts(found)) break;
        add_cuts(found);
    }
    improve_optimum_of_highs();
} catch (const LibraryError& error) {
    throw LpFailure(chain, item, kRejected, error.what());
}

// Our own simplex goes on from HiGHS's basis. False when it is singular to our accuracy.
bool Solver::start_from_highs_basis() {
    const StageModel& stage = *stage_;
    std::vector<Int> columns(static_cast<size_t>(stage.columns)),
        rows(static_cast<size_t>(stage.rows) + cuts_with_dual_.size());
    check(api_.get_basis(highs_, columns.data(), rows.data()), "return its basis");
    std::vector<int8_t> status(columns.begin(), columns.end());
    status.insert(status.end(), rows.begin(), rows.begin() + stage.rows);
    std::vector<Int> active_cuts;
    for (size_t row = 0; row < cuts_with_dual_.size(); ++row)
        if (rows[stage.rows + row] != kBasic) active_cuts.push_back(cuts_with_dual_[row]);
    return simplex_->start(status.data(), active_cuts.data(), static_cast<Int>(active_cuts.size()));
}

void Solver::save(const std::string& path, const std::vector<std::string>& columns,
                  const std::vector<std::string>& rows) {
    for (size_t column = 0; column < columns.size(); ++column)
        api_.pass_col_name(highs_, static_cast<Int>(column), columns[column].c_str());
    for (size_t row = 0; row < rows.size(); ++row) api_.pass_row_name(highs_, static_cast<Int>(row), rows[row].c_str());
    for (size_t row = 0; row < cuts_with_dual_.size(); ++row)
        api_.pass_row_name(highs_, stage_->rows + static_cast<Int>(row),
                           ("cut_" + std::to_string(cuts_with_dual_[row])).c_str());
    check(api_.write_model(highs_, path.c_str()), "write the LP");
}

}  // namespace cobre::lp

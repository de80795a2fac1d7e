// What a solve gives: the cost, its gradient in the incoming state, the outgoing state, the basis.
#include <algorithm>

#include "lp_solver.hpp"

namespace cobre::lp {

void Solver::store(size_t row, const Results& results) {
    const StageModel& stage = *stage_;
    const auto n = static_cast<size_t>(stage.num_decided);
    results.objective[row] = objective_;
    if (results.future_cost) results.future_cost[row] = column_value_[stage.future_cost];
    if (results.decided)
        for (size_t state = 0; state < n; ++state)
            results.decided[row * n + state] = column_value_[stage.state_column[state]] * stage.state_scale[state];
    if (results.inflow) std::copy(inflow_.begin(), inflow_.end(), results.inflow + row * inflow_.size());
    if (results.gradient) store_gradient(results.gradient + row * stage.dimension());
    const auto store_in_given_units = [&](const std::vector<double>& from, Int count, auto units, double* to) {
        for (Int at = 0; at < count; ++at) to[at] = stage.units ? from[at] * ((*stage.units).*units)[at] : from[at];
    };
    const size_t columns = static_cast<size_t>(stage.columns), rows = static_cast<size_t>(stage.rows);
    if (results.primal)
        store_in_given_units(column_value_, stage.columns, &Units::column, results.primal + row * columns);
    if (results.dual) store_in_given_units(row_dual_, stage.rows, &Units::row, results.dual + row * rows);
}

void Solver::outgoing_state(const double* state, double* next) const {
    const StageModel& stage = *stage_;
    for (Int at = 0; at < stage.num_decided; ++at)
        next[at] = column_value_[stage.state_column[at]] * stage.state_scale[at];
    outgoing_passed(state, next + stage.first_passed());
    if (stage.num_lags == 0) return;
    double* lags = next + stage.num_decided;
    if (!stage.shifts_lags()) return outgoing_lags(state + stage.num_decided, lags);
    std::copy(inflow_.begin(), inflow_.end(), lags);
    std::copy_n(state + stage.num_decided, static_cast<size_t>(stage.num_lags - 1) * stage.num_hydros,
                lags + stage.num_hydros);
}

// Lags that are means over a season: each continues an incoming one, and takes a share of this stage's inflow.
void Solver::outgoing_lags(const double* lags, double* next) const {
    const StageModel& stage = *stage_;
    const Int n = stage.num_hydros;
    for (Int lag = 0; lag < stage.num_lags; ++lag)
        for (Int hydro = 0; hydro < n; ++hydro) {
            const double before = stage.lag_from[lag] >= 0 ? lags[stage.lag_from[lag] * n + hydro] : 0.0;
            next[lag * n + hydro] = before + stage.lag_share[lag] * inflow_[hydro];
        }
}

// The gradient of the optimal cost in the incoming state, from the duals of the rows whose right-hand sides it moves
// and of the active cuts, whose right-hand sides depend on lags and passed states.
void Solver::store_gradient(double* gradient) {
    const StageModel& stage = *stage_;
    const Int n = stage.num_hydros;
    std::fill(gradient, gradient + stage.dimension(), 0.0);
    std::fill(inflow_gradient_.begin(), inflow_gradient_.end(), 0.0);
    for (size_t entry = 0; entry < stage.input_row.size(); ++entry) {
        const Int input = stage.input_index[entry];
        double& slope =
            stage.is_inflow(input) ? inflow_gradient_[input - stage.num_decided] : gradient[stage.component_of(input)];
        slope += stage.input_value[entry] * row_dual_[stage.input_row[entry]];
    }
    if (stage.num_lags == 0 && stage.passed() == 0) return;
    double* lags = gradient + stage.num_decided;
    for (size_t row = 0; row < cuts_with_dual_.size(); ++row) {
        const double dual = row_dual_[stage.rows + row];
        if (dual == 0.0) continue;
        const auto coefficient = [&](Int component) { return cuts_->coefficient(cuts_with_dual_[row], component); };
        for (Int entry = 0; entry < stage.passed(); ++entry)
            if (const Int from = stage.passed_from[entry]; from >= 0)
                gradient[from] += dual * coefficient(stage.first_passed() + entry);
        for (size_t lag = 0; lag < stage.lag_from.size(); ++lag)
            for (Int hydro = 0; hydro < n; ++hydro) {
                const double slope = dual * coefficient(stage.lag(static_cast<Int>(lag)) + hydro);
                inflow_gradient_[hydro] += stage.lag_share[lag] * slope;
                if (stage.lag_from[lag] >= 0) lags[stage.lag_from[lag] * n + hydro] += slope;
            }
        if (stage.num_lags == 0 || !stage.shifts_lags()) continue;
        for (Int hydro = 0; hydro < n; ++hydro)
            inflow_gradient_[hydro] += dual * coefficient(stage.num_decided + hydro);
        for (Int entry = 0; entry < (stage.num_lags - 1) * n; ++entry)
            lags[entry] += dual * coefficient(stage.num_decided + n + entry);
    }
    for (Int lag = 0; lag < stage.num_lags; ++lag)
        for (Int hydro = 0; hydro < n; ++hydro)
            lags[lag * n + hydro] +=
                stage.autoregression[static_cast<size_t>(lag) * n + hydro] * inflow_gradient_[hydro];
}

void Solver::store_basis(size_t row, const Results& results) const {
    const auto width = static_cast<size_t>(stage_->columns + stage_->rows),
               max_cuts = static_cast<size_t>(stage_->num_decided + 1);
    simplex_->basis(results.basis_status + row * width, results.basis_cuts + row * max_cuts);
}

// States that this stage only passes on.
void Solver::outgoing_passed(const double* state, double* to) const {
    for (const Int from : stage_->passed_from) *to++ = from < 0 ? 0.0 : state[from];
}

}  // namespace cobre::lp

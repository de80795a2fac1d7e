#include "lp_solver.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>

namespace cobre::lp {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Int kMaxRounds = 1000;

// A cut as a row: theta - coefficients . decided states >= right side. Lags and states that are passed on are known when a
// stage is solved and live on the right side.
void append_cut(const StageModel& stage, const CutView& cuts, Int cut, std::vector<Int>& index, std::vector<double>& value) {
    for (Int state = 0; state < stage.states; ++state) {
        const double coefficient = cuts.coefficient(cut, state) * stage.state_scale[state];
        if (coefficient == 0.0) continue;
        index.push_back(stage.state_column[state]);
        value.push_back(-coefficient);
    }
    index.push_back(stage.future_cost);
    value.push_back(1.0);
}

}  // namespace

void Count::add(const SimplexCount& done) {
    pivots += done.pivots;
    refactorisations += done.refactorisations;
    active_rows += done.active_rows;
    nucleus += done.nucleus;
}

void Count::add(const Count& other) {
    solves += other.solves;
    pivots += other.pivots;
    library_solves += other.library_solves;
    retries += other.retries;
    refactorisations += other.refactorisations;
    active_rows += other.active_rows;
    nucleus += other.nucleus;
    solve_seconds += other.solve_seconds;
    busy_seconds += other.busy_seconds;
}

Solver::Solver(const HighsApi& api, const Settings& settings) : api_(api), settings_(settings), highs_(api.create()) {
    set_defaults();
}

Solver::~Solver() { api_.destroy(highs_); }

void Solver::check(Int status, const char* what) const {
    if (status == kStatusError) throw std::runtime_error(std::string("the LP library refused to ") + what);
}

void Solver::set_defaults() {
    check(api_.set_bool(highs_, "output_flag", 0), "be quiet");
    check(api_.set_int(highs_, "threads", 1), "use one thread");
    check(api_.set_string(highs_, "parallel", "off"), "use one thread");
    check(api_.set_string(highs_, "solver", "simplex"), "use simplex");
    check(api_.set_string(highs_, "presolve", "off"), "leave presolve out");
    check(api_.set_int(highs_, "simplex_strategy", 1), "use the dual simplex method");
    // Scale factors survive from one LP to the next; ours are part of the stage.
    check(api_.set_int(highs_, "simplex_scale_strategy", 0), "leave scaling to us");
    check(api_.set_double(highs_, "primal_feasibility_tolerance", settings_.tolerances.feasibility), "take a tolerance");
    check(api_.set_double(highs_, "dual_feasibility_tolerance", settings_.tolerances.feasibility), "take a tolerance");
}

void Solver::load(const StageModel& stage, const CutView& cuts) {
    stage_ = &stage;
    cuts_ = &cuts;
    simplex_ = stage.rows > settings_.most_dense_rows ? static_cast<SimplexMethod*>(&sparse_) : &dense_;
    simplex_->load(stage, cuts, settings_.tolerances.own, settings_.tolerances.violation);
    chain_base_.resize(static_cast<size_t>(cuts.count()));
    values_.resize(chain_base_.size());
    row_lower_.assign(stage.row_lower.begin(), stage.row_lower.end());
    row_upper_.assign(stage.row_upper.begin(), stage.row_upper.end());
    column_lower_.assign(stage.column_lower.begin(), stage.column_lower.end());
    column_upper_.assign(stage.column_upper.begin(), stage.column_upper.end());
    inflow_.resize(stage.hydros);
    inflow_slope_.resize(stage.hydros);
    decided_.resize(stage.states);
    passed_.resize(stage.passed());
}

void Solver::begin_chain(Int unit, const Work& work, const double* state) {
    const StageModel& stage = *stage_;
    shift_state_.assign(stage.rows, 0.0);
    for (size_t entry = 0; entry < stage.input_row.size(); ++entry)
        if (!stage.is_inflow(stage.input_index[entry]))
            shift_state_[stage.input_row[entry]] +=
                stage.input_value[entry] * state[stage.component_of(stage.input_index[entry])];
    cuts_->intercepts(chain_base_.data());
    // The outgoing lag l + 1 is the incoming lag l; the outgoing lag 1 is this stage's inflow and comes later.
    if (stage.shifts_lags() && stage.order > 1)
        cuts_->add_products(stage.states + stage.hydros, (stage.order - 1) * stage.hydros, state + stage.states,
                            chain_base_.data());
    for (size_t lag = 0; lag < stage.lag_from.size(); ++lag)
        if (stage.lag_from[lag] >= 0)
            cuts_->add_products(stage.lag(static_cast<Int>(lag)), stage.hydros, state + stage.lag(stage.lag_from[lag]),
                                chain_base_.data());
    pass_on(state, passed_.data());
    if (stage.passed()) cuts_->add_products(stage.first_passed(), stage.passed(), passed_.data(), chain_base_.data());
    compute_inflows(unit, work, state);
    compute_right_sides(work.chain_start[unit + 1] - work.chain_start[unit]);
}

void Solver::pass_on(const double* state, double* to) const {
    for (const Int from : stage_->passed_from) *to++ = from < 0 ? 0.0 : state[from];
}

void Solver::compute_inflows(Int unit, const Work& work, const double* state) {
    const StageModel& stage = *stage_;
    const Int n = stage.hydros, first = work.chain_start[unit], end = work.chain_start[unit + 1];
    inflows_.resize(static_cast<size_t>(end - first) * n);
    for (Int item = first; item < end; ++item)
        for (Int hydro = 0; hydro < n; ++hydro) {
            double inflow = work.inflow[static_cast<size_t>(work.chain_items[item]) * n + hydro];
            for (Int lag = 0; lag < stage.order; ++lag)
                inflow += stage.autoregression[static_cast<size_t>(lag) * n + hydro] * state[stage.states + lag * n + hydro];
            inflows_[static_cast<size_t>(item - first) * n + hydro] = stage.truncates && inflow < 0.0 ? 0.0 : inflow;
        }
}

// The right sides of cuts for all items of a chain: the coefficients come from memory once.
void Solver::compute_right_sides(Int items) {
    const StageModel& stage = *stage_;
    const Int n = stage.hydros;
    rights_.resize(static_cast<size_t>(items) * chain_base_.size());
    for (Int item = 0; item < items; ++item)
        std::copy(chain_base_.begin(), chain_base_.end(), rights_.begin() + static_cast<ptrdiff_t>(item * chain_base_.size()));
    if (stage.order > 0 && stage.shifts_lags()) cuts_->add_products(stage.states, n, inflows_.data(), rights_.data(), items);
    share_.resize(inflows_.size());
    for (size_t lag = 0; lag < stage.lag_share.size(); ++lag) {
        if (stage.lag_share[lag] == 0.0) continue;
        for (size_t at = 0; at < inflows_.size(); ++at) share_[at] = stage.lag_share[lag] * inflows_[at];
        cuts_->add_products(stage.lag(static_cast<Int>(lag)), n, share_.data(), rights_.data(), items);
    }
}

// Inflows of one item, and the right sides that follow from them.
void Solver::realise(const Work& work, Int realisation, Int item) {
    const StageModel& stage = *stage_;
    const auto* inflow = inflows_.data() + static_cast<size_t>(item) * stage.hydros;
    inflow_.assign(inflow, inflow + stage.hydros);
    right_ = rights_.data() + static_cast<size_t>(item) * chain_base_.size();
    shift_ = shift_state_;
    for (size_t entry = 0; entry < stage.input_row.size(); ++entry)
        if (stage.is_inflow(stage.input_index[entry]))
            shift_[stage.input_row[entry]] += stage.input_value[entry] * inflow_[stage.input_index[entry] - stage.states];
    for (size_t entry = 0; entry < stage.load_row.size(); ++entry)
        shift_[stage.load_row[entry]] +=
            stage.load_factor[entry] * work.load[static_cast<size_t>(realisation) * work.buses + stage.load_bus[entry]];
}

void Solver::set_bounds(const Work& work, Int realisation) {
    const StageModel& stage = *stage_;
    for (const Int row : stage.moving_rows) {
        row_lower_[row] = stage.row_lower[row] + shift_[row];
        row_upper_[row] = stage.row_upper[row] + shift_[row];
    }
    for (size_t entry = 0; entry < stage.source_column.size(); ++entry) {
        const double most = stage.source_factor[entry] *
                            work.availability[static_cast<size_t>(realisation) * work.sources + stage.source_index[entry]];
        column_upper_[stage.source_column[entry]] = most;
        column_lower_[stage.source_column[entry]] = stage.source_is_pinned[entry] ? most : 0.0;
    }
}

void Solver::begin_basis(const Work& work, Int unit) {
    const Int base = work.start_index[unit];
    if (base < 0) return simplex_->start_loose();
    const auto width = static_cast<size_t>(stage_->columns + stage_->rows), most = static_cast<size_t>(stage_->states + 1);
    simplex_->start(work.start_status + base * width, work.start_cuts + base * most, stage_->states + 1);
}

bool Solver::solve_by_pivots() {
    const Bounds bounds{column_lower_.data(), column_upper_.data(), row_lower_.data(), row_upper_.data(), right_};
    if (simplex_->optimise(bounds) != Outcome::optimal) return false;
    simplex_->solution(column_value_, column_dual_, row_dual_, cuts_now_);
    return is_accurate(settings_.tolerances.duality_gap);
}

// A basis that led nowhere may be to blame.
bool Solver::solve_by_pivots_anew() {
    ++count.retries;
    simplex_->start_loose();
    return solve_by_pivots();
}

// The dual solution must prove the primal one: a cut is made of the duals.
bool Solver::is_accurate(double tolerance) {
    const StageModel& stage = *stage_;
    double dual_objective = 0.0, wrong = 0.0;
    const auto add = [&](double dual, double lower, double upper) {
        if (dual == 0.0) return;
        const double bound = dual > 0.0 ? lower : upper;
        if (std::isfinite(bound)) dual_objective += dual * bound;
        else wrong = std::max(wrong, std::abs(dual));
    };
    for (Int row = 0; row < stage.rows; ++row) add(row_dual_[row], row_lower_[row], row_upper_[row]);
    for (size_t row = 0; row < cuts_now_.size(); ++row) add(row_dual_[stage.rows + row], right_[cuts_now_[row]], kInfinity);
    objective_ = 0.0;
    for (Int column = 0; column < stage.columns; ++column) {
        add(column_dual_[column], column_lower_[column], column_upper_[column]);
        objective_ += stage.cost[column] * column_value_[column];
    }
    const double gap = std::abs(objective_ - dual_objective);
    return wrong <= settings_.tolerances.dual && gap <= tolerance * (1.0 + std::abs(objective_));
}

void Solver::load_library() {
    const StageModel& stage = *stage_;
    check(api_.pass_lp(highs_, stage.columns, stage.rows, static_cast<Int>(stage.value.size()), kRowwise, kMinimise, 0.0,
                       stage.cost.data(), column_lower_.data(), column_upper_.data(), row_lower_.data(), row_upper_.data(),
                       stage.row_start.data(), stage.column_index.data(), stage.value.data()),
          "take an LP");
    // The watchdog counts iterations and not seconds: seconds differ from run to run.
    check(api_.set_int(highs_, "simplex_iteration_limit", 50 * (stage.columns + stage.rows) + 10000), "take a limit");
    cuts_now_.clear();
    is_present_.assign(static_cast<size_t>(cuts_->count()), 0);
}

void Solver::add_cuts(const std::vector<Int>& wanted) {
    std::vector<Int> start, index;
    std::vector<double> value, lower, upper;
    for (const Int cut : wanted) {
        is_present_[cut] = 1;
        cuts_now_.push_back(cut);
        start.push_back(static_cast<Int>(index.size()));
        append_cut(*stage_, *cuts_, cut, index, value);
        lower.push_back(right_[cut]);
        upper.push_back(kInfinity);
    }
    check(api_.add_rows(highs_, static_cast<Int>(lower.size()), lower.data(), upper.data(), static_cast<Int>(value.size()),
                        start.data(), index.data(), value.data()),
          "take further cuts");
}

bool Solver::run_library() {
    const Int status = api_.run(highs_);
    if (status == kStatusError || api_.model_status(highs_) != kOptimal) return false;
    column_value_.resize(static_cast<size_t>(stage_->columns));
    column_dual_.resize(column_value_.size());
    row_value_.resize(static_cast<size_t>(stage_->rows) + cuts_now_.size());
    row_dual_.resize(row_value_.size());
    check(api_.get_solution(highs_, column_value_.data(), column_dual_.data(), row_value_.data(), row_dual_.data()),
          "show its solution");
    return is_accurate(settings_.tolerances.library_gap);
}

// Other ways to the same optimum, in a fixed order.
bool Solver::climb_ladder() {
    struct Rung {
        const char *solver, *presolve;
        Int strategy, scaling;
        double tolerance;
    };
    static constexpr Rung rungs[] = {{"simplex", "off", 1, 2, 1.0}, {"simplex", "off", 4, 0, 1.0}, {"simplex", "on", 1, 2, 1.0},
                                     {"simplex", "off", 4, 2, 10.0}, {"ipm", "on", 1, 2, 10.0}};
    bool solved = false;
    for (Int rung = 0; rung < std::min<Int>(settings_.retry_attempts, std::size(rungs)) && !solved; ++rung) {
        ++count.retries;
        const double tolerance = settings_.tolerances.feasibility * rungs[rung].tolerance;
        check(api_.clear_solver(highs_), "start anew");
        check(api_.set_string(highs_, "solver", rungs[rung].solver), "change its method");
        check(api_.set_string(highs_, "presolve", rungs[rung].presolve), "change presolve");
        check(api_.set_int(highs_, "simplex_strategy", rungs[rung].strategy), "change its method");
        check(api_.set_int(highs_, "simplex_scale_strategy", rungs[rung].scaling), "change its scaling");
        check(api_.set_double(highs_, "primal_feasibility_tolerance", tolerance), "take a tolerance");
        check(api_.set_double(highs_, "dual_feasibility_tolerance", tolerance), "take a tolerance");
        solved = run_library();
        const Int status = api_.model_status(highs_);
        if (status == kInfeasible || status == kUnbounded) break;
    }
    set_defaults();
    return solved;
}

// Cuts of the pool that this solution violates, the worst ones first.
bool Solver::violated(std::vector<Int>& found) {
    const StageModel& stage = *stage_;
    found.clear();
    for (Int state = 0; state < stage.states; ++state)
        decided_[state] = column_value_[stage.state_column[state]] * stage.state_scale[state];
    values_.assign(right_, right_ + chain_base_.size());
    cuts_->add_products(0, stage.states, decided_.data(), values_.data());
    const double theta = column_value_[stage.future_cost];
    const double limit = theta + settings_.tolerances.violation * std::max(1.0, std::abs(theta));
    for (Int cut = 0; cut < cuts_->count(); ++cut)
        if (values_[cut] > limit && !is_present_[cut] && cuts_->is_in_play(cut)) found.push_back(cut);
    const auto worse = [this](Int a, Int b) { return values_[a] != values_[b] ? values_[a] > values_[b] : a < b; };
    std::sort(found.begin(), found.end(), worse);
    if (static_cast<Int>(found.size()) > settings_.max_added_per_round) found.resize(settings_.max_added_per_round);
    return !found.empty();
}

void Solver::solve_by_library(Int unit, Int item) {
    ++count.library_solves;
    load_library();
    std::vector<Int> found;
    for (Int round = 0; round < kMaxRounds; ++round) {
        if (!run_library() && !climb_ladder())
            throw LpFailure(unit, item, api_.model_status(highs_), "no solver setting led to an optimum");
        if (!violated(found)) return continue_from_library();
        add_cuts(found);
    }
    throw LpFailure(unit, item, kOptimal, "cuts keep being violated");
}

// The next realisation starts from the library's basis.
void Solver::continue_from_library() {
    const StageModel& stage = *stage_;
    std::vector<Int> columns(static_cast<size_t>(stage.columns)), rows(static_cast<size_t>(stage.rows) + cuts_now_.size());
    check(api_.get_basis(highs_, columns.data(), rows.data()), "show its basis");
    std::vector<int8_t> status(columns.begin(), columns.end());
    status.insert(status.end(), rows.begin(), rows.begin() + stage.rows);
    std::vector<Int> tight;
    for (size_t row = 0; row < cuts_now_.size(); ++row)
        if (rows[stage.rows + row] != kBasic) tight.push_back(cuts_now_[row]);
    simplex_->start(status.data(), tight.data(), static_cast<Int>(tight.size()));
}

void Solver::solve_chain(Int unit, const Work& work, const Results& results) {
    const Int first = work.chain_start[unit], end = work.chain_start[unit + 1];
    if (first == end) return;
    const double* state = work.states + static_cast<size_t>(unit) * stage_->dimension();
    begin_chain(unit, work, state);
    for (Int item = first; item < end; ++item) {
        realise(work, work.chain_items[item], item - first);
        set_bounds(work, work.chain_items[item]);
        const auto began = std::chrono::steady_clock::now();
        if (item == first) begin_basis(work, unit);
        if (!solve_by_pivots() && !solve_by_pivots_anew()) solve_by_library(unit, item);
        count.solve_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        const SimplexCount done = simplex_->take_count();
        count.add(done);
        ++count.solves;
        const auto place = static_cast<size_t>(work.places ? work.places[item] : item);
        if (results.iterations) results.iterations[place] = static_cast<Int>(done.pivots);
        keep(place, results);
        if (results.basis_status && item == first) keep_basis(unit, results);
    }
}

void Solver::keep(size_t place, const Results& results) {
    const StageModel& stage = *stage_;
    const auto n = static_cast<size_t>(stage.states);
    results.objective[place] = objective_;
    if (results.future_cost) results.future_cost[place] = column_value_[stage.future_cost];
    if (results.decided)
        for (size_t state = 0; state < n; ++state)
            results.decided[place * n + state] = column_value_[stage.state_column[state]] * stage.state_scale[state];
    if (results.inflow) std::copy(inflow_.begin(), inflow_.end(), results.inflow + place * inflow_.size());
    if (results.gradient) keep_gradient(results.gradient + place * stage.dimension());
    if (results.primal) std::copy(column_value_.begin(), column_value_.end(), results.primal + place * stage.columns);
    if (results.dual) std::copy(row_dual_.begin(), row_dual_.begin() + stage.rows, results.dual + place * stage.rows);
}

void Solver::leave(const double* state, double* next) const {
    const StageModel& stage = *stage_;
    for (Int at = 0; at < stage.states; ++at)
        next[at] = column_value_[stage.state_column[at]] * stage.state_scale[at];
    pass_on(state, next + stage.first_passed());
    if (stage.order == 0) return;
    double* lags = next + stage.states;
    if (!stage.shifts_lags()) return leave_lags(state + stage.states, lags);
    std::copy(inflow_.begin(), inflow_.end(), lags);
    std::copy_n(state + stage.states, static_cast<size_t>(stage.order - 1) * stage.hydros, lags + stage.hydros);
}

// Lags that are means of seasons: each goes on from another one, and has a share of this stage's inflow.
void Solver::leave_lags(const double* lags, double* next) const {
    const StageModel& stage = *stage_;
    const Int n = stage.hydros;
    for (Int lag = 0; lag < stage.order; ++lag)
        for (Int hydro = 0; hydro < n; ++hydro) {
            const double before = stage.lag_from[lag] >= 0 ? lags[stage.lag_from[lag] * n + hydro] : 0.0;
            next[lag * n + hydro] = before + stage.lag_share[lag] * inflow_[hydro];
        }
}

// The slope of the optimal cost in the incoming state, from the duals of the rows that the state moves.
void Solver::keep_gradient(double* gradient) {
    const StageModel& stage = *stage_;
    const Int n = stage.hydros;
    std::fill(gradient, gradient + stage.dimension(), 0.0);
    std::fill(inflow_slope_.begin(), inflow_slope_.end(), 0.0);
    for (size_t entry = 0; entry < stage.input_row.size(); ++entry) {
        const Int input = stage.input_index[entry];
        double& slope = stage.is_inflow(input) ? inflow_slope_[input - stage.states] : gradient[stage.component_of(input)];
        slope += stage.input_value[entry] * row_dual_[stage.input_row[entry]];
    }
    if (stage.order == 0 && stage.passed() == 0) return;
    double* lags = gradient + stage.states;
    for (size_t row = 0; row < cuts_now_.size(); ++row) {
        const double dual = row_dual_[stage.rows + row];
        if (dual == 0.0) continue;
        const auto coefficient = [&](Int component) { return cuts_->coefficient(cuts_now_[row], component); };
        for (Int entry = 0; entry < stage.passed(); ++entry)
            if (const Int from = stage.passed_from[entry]; from >= 0)
                gradient[from] += dual * coefficient(stage.first_passed() + entry);
        for (size_t lag = 0; lag < stage.lag_from.size(); ++lag)
            for (Int hydro = 0; hydro < n; ++hydro) {
                const double slope = dual * coefficient(stage.lag(static_cast<Int>(lag)) + hydro);
                inflow_slope_[hydro] += stage.lag_share[lag] * slope;
                if (stage.lag_from[lag] >= 0) lags[stage.lag_from[lag] * n + hydro] += slope;
            }
        if (stage.order == 0 || !stage.shifts_lags()) continue;
        for (Int hydro = 0; hydro < n; ++hydro) inflow_slope_[hydro] += dual * coefficient(stage.states + hydro);
        for (Int entry = 0; entry < (stage.order - 1) * n; ++entry) lags[entry] += dual * coefficient(stage.states + n + entry);
    }
    for (Int lag = 0; lag < stage.order; ++lag)
        for (Int hydro = 0; hydro < n; ++hydro)
            lags[lag * n + hydro] += stage.autoregression[static_cast<size_t>(lag) * n + hydro] * inflow_slope_[hydro];
}

void Solver::keep_basis(Int unit, const Results& results) const {
    const auto width = static_cast<size_t>(stage_->columns + stage_->rows), most = static_cast<size_t>(stage_->states + 1);
    simplex_->basis(results.basis_status + unit * width, results.basis_cuts + unit * most);
}

void Solver::save(const std::string& path, const std::vector<std::string>& columns, const std::vector<std::string>& rows) {
    for (size_t column = 0; column < columns.size(); ++column)
        api_.pass_col_name(highs_, static_cast<Int>(column), columns[column].c_str());
    for (size_t row = 0; row < rows.size(); ++row) api_.pass_row_name(highs_, static_cast<Int>(row), rows[row].c_str());
    for (size_t row = 0; row < cuts_now_.size(); ++row)
        api_.pass_row_name(highs_, stage_->rows + static_cast<Int>(row), ("cut_" + std::to_string(cuts_now_[row])).c_str());
    check(api_.write_model(highs_, path.c_str()), "write the LP");
}

}  // namespace cobre::lp

#include "lp_engine.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace cobre::lp {

namespace {

// The longest chains first: short ones fill up what is left at the end.
std::vector<Int> longest_first(const ChainBatch& batch) {
    std::vector<Int> order(static_cast<size_t>(batch.chains));
    std::iota(order.begin(), order.end(), 0);
    const auto length = [&](Int chain) { return batch.chain_start[chain + 1] - batch.chain_start[chain]; };
    std::stable_sort(order.begin(), order.end(), [&](Int a, Int b) { return length(a) > length(b); });
    return order;
}

// The basis that a path has at the end of a stage, as one to start the next stage from.
class CarriedBasis {
public:
    ChainBatch start_from(const PathStage& before, const PathStage& stage, Int path) {
        const StageModel &old = *before.model, &model = *stage.model;
        const auto width = [](const StageModel& of) { return static_cast<size_t>(of.columns + of.rows); };
        const int8_t* const status = before.results.basis_status + static_cast<size_t>(path) * width(old);
        status_.assign(status, status + (stage.carried_from ? 0 : width(model)));
        if (stage.carried_from) {
            for (size_t at = 0; at < width(model); ++at) {
                const int8_t missing = at < static_cast<size_t>(model.columns) ? at_lower : basic;
                status_.push_back(stage.carried_from[at] < 0 ? missing : status[stage.carried_from[at]]);
            }
        }
        cuts_.assign(static_cast<size_t>(model.num_decided + 1), -1);
        if (old.num_decided == model.num_decided)
            std::copy_n(before.results.basis_cuts + static_cast<size_t>(path) * cuts_.size(), cuts_.size(),
                        cuts_.begin());
        index_.assign(static_cast<size_t>(path) + 1, 0);
        ChainBatch batch = stage.batch;
        batch.basis_status = status_.data();
        batch.basis_cuts = cuts_.data();
        batch.basis_index = index_.data();
        return batch;
    }

private:
    std::vector<int8_t> status_;
    std::vector<Int> cuts_, index_;
};

}  // namespace

Engine::Engine(const std::string& library, Int threads, Int cores, const SimplexOptions& options)
    : api_(library),
      pool_(static_cast<size_t>(std::max<Int>(1, threads)), static_cast<size_t>(std::max<Int>(1, cores))) {
    for (size_t thread = 0; thread < pool_.threads(); ++thread)
        solvers_.push_back(std::make_unique<Solver>(api_, options, StopPoint{&stop_, thread == 0}));
}

SolveCounts Engine::run(const std::vector<Int>& order, const ThreadPool::Task& task, const StopSignal::Ask& ask,
                        WorkCounter* shared_counter) {
    failed_ = nullptr;
    stop_.begin(ask);
    for (auto& solver : solvers_) solver->counts = {};
    try {
        pool_.run(order, task, shared_counter, &stop_);
    } catch (...) {
        if (!stop_.is_set()) {  // else the failure of an LP no longer matters
            failed_ = solvers_[pool_.failed_thread()].get();
            throw;
        }
    }
    stop_.rethrow();
    SolveCounts total;
    for (const auto& solver : solvers_) total.add(solver->counts);
    return total;
}

SolveCounts Engine::solve_chains(const StageModel& stage, const CutView& cuts, const ChainBatch& batch,
                                 const Results& results, const StopSignal::Ask& ask, WorkCounter* shared_counter,
                                 CutTarget* new_cuts) {
    std::vector<uint8_t> is_loaded(solvers_.size(), 0);  // by thread
    const auto task = [&](size_t thread, Int chain) {
        Solver& solver = *solvers_[thread];
        if (!is_loaded[thread]) solver.load(stage, cuts, static_cast<size_t>(batch.chain_start[batch.chains]));
        is_loaded[thread] = 1;
        solve_chain(solver, stage, chain, batch, results);
        // relaxed: a number to show, see solves_done()
        solves_done_.fetch_add(batch.chain_start[chain + 1] - batch.chain_start[chain], std::memory_order_relaxed);
        if (new_cuts) new_cuts->finish_chain(chain, batch, results);
    };
    return run(longest_first(batch), task, ask, shared_counter);
}

SolveCounts Engine::solve_paths(std::vector<PathStage>& stages, const PathStates& states, const StopSignal::Ask& ask,
                                WorkCounter* shared_counter) {
    if (stages.empty()) return {};
    const auto dimension = static_cast<size_t>(stages[0].model->dimension());
    const auto paths = static_cast<size_t>(stages[0].batch.chains);
    std::vector<double> own(states.entering ? 0 : stages.size() * paths * dimension);
    double* const entering = states.entering ? states.entering : own.data();
    for (size_t at = 0; at < stages.size(); ++at) stages[at].batch.states = entering + at * paths * dimension;
    std::vector<Int> order(paths);
    std::iota(order.begin(), order.end(), 0);
    const auto task = [&](size_t thread, Int path) {
        Solver& solver = *solvers_[thread];
        const size_t offset = static_cast<size_t>(path) * dimension;
        const auto state_of = [&](size_t at) { return entering + at * paths * dimension + offset; };
        CarriedBasis carried;
        std::copy_n(states.first + offset, dimension, state_of(0));
        for (size_t at = 0; at < stages.size(); ++at) {
            const PathStage& stage = stages[at];
            solver.load(*stage.model, *stage.cuts, paths);
            solve_chain(solver, *stage.model, path,
                        stage.carries_basis ? carried.start_from(stages[at - 1], stage, path) : stage.batch,
                        stage.results);
            solves_done_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a number to show
            double* const next = at + 1 < stages.size() ? state_of(at + 1)
                                 : states.leaving       ? states.leaving + offset
                                                        : nullptr;
            if (next) solver.outgoing_state(state_of(at), next);
        }
    };
    return run(order, task, ask, shared_counter);
}

// Solve a chain; a failure gets all inputs of its LP before it is rethrown.
void Engine::solve_chain(Solver& solver, const StageModel& stage, Int chain, const ChainBatch& batch,
                         const Results& results) {
    try {
        solver.solve_chain(chain, batch, results);
    } catch (LpFailure& failure) {
        const auto dimension = static_cast<size_t>(stage.dimension());
        const double* const state = batch.states + static_cast<size_t>(chain / batch.chains_per_point) * dimension;
        failure.stage = batch.stage;
        failure.realisation = batch.realisation_index[failure.item];
        failure.solved_before = failure.item - batch.chain_start[chain];
        failure.state.assign(state, state + dimension);
        if (const Int basis = batch.basis_index[chain]; basis >= 0) {
            const auto width = static_cast<size_t>(stage.columns + stage.rows),
                       cuts = static_cast<size_t>(stage.num_decided + 1);
            const int8_t* const status = batch.basis_status + static_cast<size_t>(basis) * width;
            const Int* const active = batch.basis_cuts + static_cast<size_t>(basis) * cuts;
            failure.basis_status.assign(status, status + width);
            std::copy_if(active, active + cuts, std::back_inserter(failure.basis_cuts),
                         [](Int cut) { return cut >= 0; });
        }
        throw;
    }
}

void Engine::save_failed(const std::string& path, const std::vector<std::string>& columns,
                         const std::vector<std::string>& rows) {
    if (failed_) failed_->save(path, columns, rows);
}

}  // namespace cobre::lp

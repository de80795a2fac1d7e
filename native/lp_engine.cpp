#include "lp_engine.hpp"

#include <algorithm>
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

// Path p starts from the p-th basis of the stage before.
ChainBatch warm_started(ChainBatch batch, const Results& before, const std::vector<Int>& paths) {
    batch.basis_status = before.basis_status;
    batch.basis_cuts = before.basis_cuts;
    batch.basis_index = paths.data();
    return batch;
}

}  // namespace

Engine::Engine(const std::string& library, Int threads, Int cores, const Settings& settings)
    : api_(library),
      pool_(static_cast<size_t>(std::max<Int>(1, threads)), static_cast<size_t>(std::max<Int>(1, cores))) {
    for (size_t thread = 0; thread < pool_.threads(); ++thread)
        solvers_.push_back(std::make_unique<Solver>(api_, settings, StopPoint{&stop_, thread == 0}));
}

SolveCounts Engine::run(const std::vector<Int>& order, const ThreadPool::Task& task, const StopSignal::Ask& ask,
                        WorkCounter* shared_counter) {
    failed_ = nullptr;
    stop_.begin(ask);
    for (auto& solver : solvers_) solver->counts = {};
    try {
        pool_.run(order, task, shared_counter, &stop_);
    } catch (...) {
        if (!stop_.is_set()) {  // else nobody looks at the failure of an LP any more
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
        if (!is_loaded[thread]) solver.load(stage, cuts);
        is_loaded[thread] = 1;
        solver.solve_chain(chain, batch, results);
        solves_done_.fetch_add(batch.chain_start[chain + 1] - batch.chain_start[chain], std::memory_order_relaxed);
        if (new_cuts) new_cuts->finish_chain(chain, batch, results);
    };
    return run(longest_first(batch), task, ask, shared_counter);
}

SolveCounts Engine::solve_paths(const std::vector<PathStage>& stages, const double* first, double* states,
                                const StopSignal::Ask& ask, WorkCounter* shared_counter) {
    if (stages.empty()) return {};
    const auto dimension = static_cast<size_t>(stages[0].model->dimension());
    const auto paths = static_cast<size_t>(stages[0].batch.chains);
    std::vector<Int> order(paths);
    std::iota(order.begin(), order.end(), 0);
    const auto task = [&](size_t thread, Int path) {
        Solver& solver = *solvers_[thread];
        const auto state_of = [&](size_t at) { return states + (at * paths + static_cast<size_t>(path)) * dimension; };
        std::copy_n(first + static_cast<size_t>(path) * dimension, dimension, state_of(0));
        for (size_t at = 0; at < stages.size(); ++at) {
            const PathStage& stage = stages[at];
            solver.load(*stage.model, *stage.cuts);
            solver.solve_chain(
                path, stage.carries_basis ? warm_started(stage.batch, stages[at - 1].results, order) : stage.batch,
                stage.results);
            solves_done_.fetch_add(1, std::memory_order_relaxed);
            if (at + 1 < stages.size()) solver.outgoing_state(state_of(at), state_of(at + 1));
        }
    };
    return run(order, task, ask, shared_counter);
}

void Engine::save_failed(const std::string& path, const std::vector<std::string>& columns,
                         const std::vector<std::string>& rows) {
    if (failed_) failed_->save(path, columns, rows);
}

}  // namespace cobre::lp

#include "lp_batch.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace cobre::lp {

namespace {

using Clock = std::chrono::steady_clock;

// The longest chains first: short ones fill up what is left at the end.
std::vector<Int> longest_first(const Work& work) {
    std::vector<Int> order(static_cast<size_t>(work.units));
    std::iota(order.begin(), order.end(), 0);
    const auto length = [&](Int unit) { return work.chain_start[unit + 1] - work.chain_start[unit]; };
    std::stable_sort(order.begin(), order.end(), [&](Int a, Int b) { return length(a) > length(b); });
    return order;
}

// Path p starts from the p-th basis that was kept at the step before.
Work continued(Work work, const Results& before, const std::vector<Int>& paths) {
    work.start_status = before.basis_status;
    work.start_cuts = before.basis_cuts;
    work.start_index = paths.data();
    return work;
}

}  // namespace

Engine::Engine(const std::string& library, Int threads, const Settings& settings)
    : api_(library), crew_(static_cast<size_t>(std::max<Int>(1, threads))) {
    for (size_t thread = 0; thread < crew_.threads(); ++thread) solvers_.push_back(std::make_unique<Solver>(api_, settings));
}

Count Engine::run(const std::vector<Int>& order, const Crew::Task& task, Crew::Counter* common) {
    failed_ = nullptr;
    for (auto& solver : solvers_) solver->count = {};
    try {
        crew_.run(order, task, common);
    } catch (...) {
        failed_ = solvers_[crew_.failed_thread()].get();
        throw;
    }
    Count total;
    for (const auto& solver : solvers_) total.add(solver->count);
    return total;
}

Count Engine::solve(const StageModel& stage, const CutView& cuts, const Work& work, const Results& results,
                    Crew::Counter* common) {
    std::vector<uint8_t> is_loaded(solvers_.size(), 0);
    const auto task = [&](size_t thread, Int unit) {
        const auto began = Clock::now();
        Solver& solver = *solvers_[thread];
        if (!is_loaded[thread]) solver.load(stage, cuts);
        is_loaded[thread] = 1;
        solver.solve_chain(unit, work, results);
        solver.count.busy_seconds += std::chrono::duration<double>(Clock::now() - began).count();
    };
    return run(longest_first(work), task, common);
}

Count Engine::walk(const std::vector<Step>& steps, const double* first, double* states, Crew::Counter* common) {
    if (steps.empty()) return {};
    const auto dimension = static_cast<size_t>(steps[0].stage->dimension()), paths = static_cast<size_t>(steps[0].work.units);
    std::vector<Int> order(paths);
    std::iota(order.begin(), order.end(), 0);
    const auto task = [&](size_t thread, Int path) {
        const auto began = Clock::now();
        Solver& solver = *solvers_[thread];
        std::copy_n(first + static_cast<size_t>(path) * dimension, dimension, states + static_cast<size_t>(path) * dimension);
        for (size_t at = 0; at < steps.size(); ++at) {
            const Step& step = steps[at];
            solver.load(*step.stage, *step.cuts);
            solver.solve_chain(path, step.follows ? continued(step.work, steps[at - 1].results, order) : step.work, step.results);
            const double* state = states + (at * paths + static_cast<size_t>(path)) * dimension;
            if (at + 1 < steps.size()) solver.leave(state, states + ((at + 1) * paths + static_cast<size_t>(path)) * dimension);
        }
        solver.count.busy_seconds += std::chrono::duration<double>(Clock::now() - began).count();
    };
    return run(order, task, common);
}

void Engine::save_failed(const std::string& path, const std::vector<std::string>& columns,
                         const std::vector<std::string>& rows) {
    if (failed_) failed_->save(path, columns, rows);
}

}  // namespace cobre::lp

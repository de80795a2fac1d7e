// Many LPs at once: the chains of one stage, or paths through several stages, spread over threads.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "lp_cut_target.hpp"
#include "lp_solver.hpp"
#include "thread_pool.hpp"

namespace cobre::lp {

// A stage that paths go through. Chain p of `batch` is path p, with one item; its state comes from the stage before.
struct PathStage {
    const StageModel* model;
    const CutView* cuts;
    ChainBatch batch;
    Results results;
    bool carries_basis = false;  // whether a path starts from its basis of the stage before
    // By column and row: the one of the stage before whose status it takes over, -1: none; null: the same.
    const Int* carried_from = nullptr;
};

// The states of paths, path by path; memory belongs to the caller.
struct PathStates {
    const double* first;  // paths x dimension: at the start of the first stage
    double* entering;     // stages x paths x dimension, filled; null: not wanted
    double* leaving;      // paths x dimension, at the end of the last stage, filled; null: not wanted
};

class Engine {
public:
    // cores: that this process may use; with fewer cores than threads, idle threads sleep at once.
    Engine(const std::string& library, Int threads, Int cores, const SimplexOptions& options);

    // Solve all chains, or those that this process takes from a shared counter; throws the LpFailure of the first chain
    // that failed. new_cuts: makes the cut of a trial point when its last chain is solved; null: no cuts are wanted.
    // ask: called at least every 100 ms, between solves and inside them; what it throws ends the call.
    SolveCounts solve_chains(const StageModel& stage, const CutView& cuts, const ChainBatch& batch,
                             const Results& results, const StopSignal::Ask& ask, WorkCounter* shared_counter = nullptr,
                             CutTarget* new_cuts = nullptr);
    // Take every path through all stages, or those paths that this process takes from a shared counter. Throws the
    // LpFailure of the first path that failed.
    SolveCounts solve_paths(std::vector<PathStage>& stages, const PathStates& states, const StopSignal::Ask& ask,
                            WorkCounter* shared_counter = nullptr);
    // Write the LP that the last call failed on.
    void save_failed(const std::string& path, const std::vector<std::string>& columns,
                     const std::vector<std::string>& rows);
    const char* version() const { return api_.version(); }
    // LPs that this engine has solved since it was made; `ask` may read it while a call goes on. A chain counts when it
    // is whole. relaxed: a number to show, which orders nothing.
    int64_t solves_done() const { return solves_done_.load(std::memory_order_relaxed); }

private:
    void solve_chain(Solver& solver, const StageModel& stage, Int chain, const ChainBatch& batch,
                     const Results& results);
    SolveCounts run(const std::vector<Int>& order, const ThreadPool::Task& task, const StopSignal::Ask& ask,
                    WorkCounter* shared_counter);

    HighsApi api_;
    StopSignal stop_;                               // before the solvers, which look at it
    std::vector<std::unique_ptr<Solver>> solvers_;  // by thread
    ThreadPool pool_;
    std::atomic<int64_t> solves_done_{0};
    Solver* failed_ = nullptr;
};

}  // namespace cobre::lp

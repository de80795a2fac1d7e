// Many LPs at once: the chains of one stage, or paths through all stages, spread over threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lp_crew.hpp"
#include "lp_solver.hpp"

namespace cobre::lp {

// A stage that paths go through. Unit u of `work` is path u, with one item; its state is filled in on the way.
struct Step {
    const StageModel* stage;
    const CutView* cuts;
    Work work;
    Results results;
    bool follows = false;  // whether paths start from the bases in which they left the step before
};

class Engine {
   public:
    Engine(const std::string& library, Int threads, const Settings& settings);

    // Solve all chains, or those of them that this process takes from a common counter; throws LpFailure for the first one
    // that failed.
    Count solve(const StageModel& stage, const CutView& cuts, const Work& work, const Results& results,
                Crew::Counter* common = nullptr);
    // Take every path through all steps, or those paths that this process takes from a common counter, each from the state
    // that the step before left. `first`: paths x dimension. `states`: steps x paths x dimension, filled here. Throws
    // LpFailure of some path that failed.
    Count walk(const std::vector<Step>& steps, const double* first, double* states, Crew::Counter* common = nullptr);
    // The LP that the last solve failed on.
    void save_failed(const std::string& path, const std::vector<std::string>& columns, const std::vector<std::string>& rows);
    const char* version() const { return api_.version(); }
    Int threads() const { return static_cast<Int>(solvers_.size()); }

   private:
    Count run(const std::vector<Int>& order, const Crew::Task& task, Crew::Counter* common);

    HighsApi api_;
    std::vector<std::unique_ptr<Solver>> solvers_;  // by thread
    Crew crew_;
    Solver* failed_ = nullptr;
};

}  // namespace cobre::lp

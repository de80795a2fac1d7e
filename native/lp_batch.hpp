// Threads that share the chains of a batch. Which thread solves which chain does not matter to the result.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lp_solver.hpp"

namespace cobre::lp {

class Engine {
   public:
    Engine(const std::string& library, Int threads, const Settings& settings);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Solve everything; throws LpFailure for the first chain, in order, that failed.
    std::unique_ptr<Batch> solve(const StageModel& stage, const CutView& cuts, const Work& work);
    // The LP that the last solve failed on.
    void save_failed(const std::string& path, const std::vector<std::string>& columns, const std::vector<std::string>& rows);
    const char* version() const { return api_.version(); }
    Int threads() const { return static_cast<Int>(solvers_.size()); }

   private:
    struct Job;
    void serve(size_t thread);
    void work_off(size_t thread, Job& job);

    HighsApi api_;
    std::vector<std::unique_ptr<Solver>> solvers_;
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    Job* job_ = nullptr;
    uint64_t generation_ = 0;
    size_t busy_ = 0;
    bool stops_ = false;
    Solver* failed_ = nullptr;
};

}  // namespace cobre::lp

#include "lp_batch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace cobre::lp {

struct Engine::Job {
    Job(const StageModel& stage, const CutView& cuts, const Work& work, Batch& batch)
        : stage(stage), cuts(cuts), work(work), batch(batch) {}

    const StageModel& stage;
    const CutView& cuts;
    const Work& work;
    Batch& batch;
    std::atomic<Int> next{0};
    std::mutex mutex;
    std::exception_ptr error;
    Int failed_unit = -1;
    Solver* failed = nullptr;

    // Chains before the first failed one still run, so that the same failure is reported whatever the threads did.
    bool takes(Int unit) {
        const std::lock_guard lock(mutex);
        return failed_unit < 0 || unit < failed_unit;
    }

    void fail(Int unit, Solver* solver) {
        const std::lock_guard lock(mutex);
        if (failed_unit >= 0 && failed_unit < unit) return;
        failed_unit = unit;
        failed = solver;
        error = std::current_exception();
    }
};

Engine::Engine(const std::string& library, Int threads, const Settings& settings) : api_(library) {
    for (Int thread = 0; thread < threads; ++thread) solvers_.push_back(std::make_unique<Solver>(api_, settings));
    for (size_t thread = 1; thread < solvers_.size(); ++thread) threads_.emplace_back([this, thread] { serve(thread); });
}

Engine::~Engine() {
    {
        const std::lock_guard lock(mutex_);
        stops_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
}

void Engine::serve(size_t thread) {
    uint64_t seen = 0;
    while (true) {
        Job* job = nullptr;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [&] { return stops_ || generation_ != seen; });
            if (stops_) return;
            seen = generation_;
            job = job_;
        }
        work_off(thread, *job);
        const std::lock_guard lock(mutex_);
        if (--busy_ == 0) done_.notify_one();
    }
}

void Engine::work_off(size_t thread, Job& job) {
    const auto began = std::chrono::steady_clock::now();
    Solver& solver = *solvers_[thread];
    bool is_loaded = false;
    Int unit = -1;
    try {
        while ((unit = job.next.fetch_add(1, std::memory_order_relaxed)) < job.work.units && job.takes(unit)) {
            if (!is_loaded) solver.load(job.stage, job.cuts);
            is_loaded = true;
            solver.solve_chain(unit, job.work, job.batch);
        }
    } catch (...) {
        job.fail(unit, &solver);
    }
    if (!is_loaded) return;
    const std::lock_guard lock(job.mutex);
    job.batch.library_solves += solver.library_solves;
    job.batch.retries += solver.retries;
    job.batch.solve_seconds += solver.solve_seconds;
    job.batch.busy_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

std::unique_ptr<Batch> Engine::solve(const StageModel& stage, const CutView& cuts, const Work& work) {
    auto batch = std::make_unique<Batch>();
    const auto solves = static_cast<size_t>(work.chain_start[work.units]), units = static_cast<size_t>(work.units);
    batch->objective.resize(solves);
    batch->future_cost.resize(solves);
    batch->iterations.resize(solves);
    batch->storage.resize(solves * stage.hydros);
    batch->inflow.resize(solves * stage.hydros);
    if (work.keeps_gradient) batch->gradient.resize(solves * stage.dimension());
    if (work.keeps_solution) {
        batch->primal.resize(solves * stage.columns);
        batch->dual.resize(solves * stage.rows);
    }
    if (work.keeps_basis) {
        batch->basis_status.resize(units * (stage.columns + stage.rows));
        batch->basis_cuts.assign(units * (stage.hydros + 1), -1);
    }

    Job job(stage, cuts, work, *batch);
    const bool is_shared = work.units > 1 && !threads_.empty();
    if (is_shared) {
        const std::lock_guard lock(mutex_);
        job_ = &job;
        busy_ = threads_.size();
        ++generation_;
    }
    if (is_shared) wake_.notify_all();
    work_off(0, job);
    if (is_shared) {
        std::unique_lock lock(mutex_);
        done_.wait(lock, [&] { return busy_ == 0; });
    }
    failed_ = job.failed;
    if (job.error) std::rethrow_exception(job.error);
    return batch;
}

void Engine::save_failed(const std::string& path, const std::vector<std::string>& columns,
                         const std::vector<std::string>& rows) {
    if (failed_) failed_->save(path, columns, rows);
}

}  // namespace cobre::lp

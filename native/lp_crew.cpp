#include "lp_crew.hpp"

#include <sched.h>

#include <chrono>

namespace cobre::lp {

namespace {

// Waking a thread that sleeps takes 15 to 50 us. Between two jobs of a pass lie some tens of microseconds.
constexpr auto kPatience = std::chrono::microseconds(200);
constexpr int kLooksPerYield = 64;

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace

struct Crew::Job {
    const std::vector<int32_t>& order;
    const Task& task;
    alignas(64) Counter own{0};
    Counter& next;
    alignas(64) std::atomic<int32_t> failed_unit{INT32_MAX};
    std::mutex mutex;
    std::exception_ptr error;
    size_t failed_thread = 0;

    Job(const std::vector<int32_t>& order, const Task& task, Counter* common)
        : order(order), task(task), next(common ? *common : own) {}

    void fail(int32_t unit, size_t thread) {
        const std::lock_guard lock(mutex);
        if (failed_unit.load() < unit) return;
        failed_unit = unit;
        failed_thread = thread;
        error = std::current_exception();
    }
};

Crew::Crew(size_t threads) : is_patient_(std::thread::hardware_concurrency() >= threads) {
    for (size_t thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { serve(thread); });
}

Crew::~Crew() {
    {
        const std::lock_guard lock(mutex_);
        stops_ = true;
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
}

// Look for a while. Yields let others run when, after all, there is no core for every thread.
template <typename Ready>
bool Crew::look(Ready ready) const {
    if (!is_patient_) return ready();
    const auto until = std::chrono::steady_clock::now() + kPatience;
    do {
        for (int turn = 0; turn < kLooksPerYield; ++turn) {
            if (ready()) return true;
            pause();
        }
        sched_yield();
    } while (std::chrono::steady_clock::now() < until);
    return ready();
}

Crew::Job* Crew::wait_for_job(uint64_t& seen) {
    const auto is_ready = [&] { return stops_.load() || generation_.load(std::memory_order_acquire) != seen; };
    if (!look(is_ready)) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, is_ready);
    }
    if (stops_) return nullptr;
    seen = generation_.load(std::memory_order_acquire);
    return job_;
}

void Crew::serve(size_t thread) {
    uint64_t seen = 0;
    while (Job* job = wait_for_job(seen)) {
        work_off(thread, *job);
        if (busy_.fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
        const std::lock_guard lock(mutex_);  // nobody misses the news between looking and sleeping
        done_.notify_one();
    }
}

// Units before the first failed one still run, so that the same failure is reported whatever the threads did.
void Crew::work_off(size_t thread, Job& job) {
    // relaxed: a number is all that is taken; inputs were there before, and results are handed over by what follows the job
    for (int64_t at; (at = job.next.fetch_add(1, std::memory_order_relaxed)) < static_cast<int64_t>(job.order.size());) {
        const int32_t unit = job.order[static_cast<size_t>(at)];
        if (unit > job.failed_unit.load(std::memory_order_relaxed)) continue;
        try {
            job.task(thread, unit);
        } catch (...) {
            job.fail(unit, thread);
        }
    }
}

void Crew::run(const std::vector<int32_t>& order, const Task& task, Counter* common) {
    Job job(order, task, common);
    const bool is_shared = order.size() > 1 && !workers_.empty();
    if (is_shared) {
        {
            const std::lock_guard lock(mutex_);
            job_ = &job;
            busy_.store(workers_.size(), std::memory_order_relaxed);
            generation_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
    }
    work_off(0, job);
    if (is_shared) {
        const auto is_done = [this] { return busy_.load(std::memory_order_acquire) == 0; };
        if (!look(is_done)) {
            std::unique_lock lock(mutex_);
            done_.wait(lock, is_done);
        }
    }
    failed_thread_ = job.failed_thread;
    if (job.error) std::rethrow_exception(job.error);
}

}  // namespace cobre::lp

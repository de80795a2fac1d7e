#include "thread_pool.hpp"

#include <chrono>
#include <exception>
#include <limits>

namespace cobre::lp {

namespace {

// Two jobs of a pass are tens of microseconds apart: spinning that long saves the pool a wake-up.
constexpr SpinPolicy kSpinPolicy{
    .spins = 64, .yields = std::numeric_limits<uint32_t>::max(), .spins_per_yield = 63, .max_yield_ns = 200'000};

}  // namespace

struct ThreadPool::Job {
    const std::vector<int32_t>& order;
    const Task& task;
    alignas(64) WorkCounter own_counter{0};
    WorkCounter& next;
    StopSignal* const stop;
    alignas(64) std::atomic<int32_t> failed_item{std::numeric_limits<int32_t>::max()};
    std::mutex mutex;
    std::exception_ptr error;
    size_t failed_thread = 0;

    Job(const std::vector<int32_t>& order, const Task& task, WorkCounter* shared_counter, StopSignal* stop)
        : order(order), task(task), next(shared_counter ? *shared_counter : own_counter), stop(stop) {}

    void fail(int32_t item, size_t thread) {
        const std::lock_guard lock(mutex);
        // relaxed: all writers hold the mutex; readers only use it to skip items early
        if (failed_item.load(std::memory_order_relaxed) < item) return;
        failed_item.store(item, std::memory_order_relaxed);
        failed_thread = thread;
        error = std::current_exception();
    }
};

ThreadPool::ThreadPool(size_t threads, size_t cores) : spin_policy_(threads <= cores ? kSpinPolicy : SpinPolicy{}) {
    for (size_t thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { worker_loop(thread); });
}

ThreadPool::~ThreadPool() {
    {
        const std::lock_guard lock(mutex_);             // no worker misses it between looking and sleeping
        stops_.store(true, std::memory_order_relaxed);  // relaxed: only a flag, which publishes nothing else
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
}

ThreadPool::Job* ThreadPool::wait_for_job(uint64_t& seen) {
    // acquire: pairs with the release in run(), which publishes `job_` and everything that the job refers to
    const auto is_ready = [&] {
        return stops_.load(std::memory_order_relaxed) || generation_.load(std::memory_order_acquire) != seen;
    };
    if (!spin_until(spin_policy_, is_ready, [] {})) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, is_ready);
    }
    if (stops_.load(std::memory_order_relaxed)) return nullptr;  // relaxed: only a flag
    seen = generation_.load(std::memory_order_acquire);  // acquire: as above, also when `stops_` ended the wait first
    return job_;
}

void ThreadPool::worker_loop(size_t thread) {
    uint64_t seen = 0;
    while (Job* job = wait_for_job(seen)) {
        run_items(thread, *job);
        // acq_rel: hands this thread's results to the last one to finish, and through it to the caller
        if (busy_.fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
        const std::lock_guard lock(mutex_);  // the caller cannot miss this between looking and sleeping
        done_.notify_one();
    }
}

// Items before the first failed one still run, so that the same failure is reported whatever the threads did.
void ThreadPool::run_items(size_t thread, Job& job) {
    const auto end = static_cast<int64_t>(job.order.size());
    // relaxed: the counter hands out numbers only. Inputs were published with the job; results are published by
    // `busy_`, and between processes by the barrier that follows
    for (int64_t at; (at = job.next.fetch_add(1, std::memory_order_relaxed)) < end;) {
        if (job.stop && job.stop->is_set()) return;
        const int32_t item = job.order[static_cast<size_t>(at)];
        if (item > job.failed_item.load(std::memory_order_relaxed)) continue;  // relaxed: late news costs one more item
        try {
            job.task(thread, item);
        } catch (const Stopped&) {
            return;
        } catch (...) {
            job.fail(item, thread);
        }
    }
}

bool ThreadPool::is_done() const {
    // acquire: the workers' results and errors are visible after this
    return busy_.load(std::memory_order_acquire) == 0;
}

// The last item of a worker may take long, and only this thread can ask, which has none left.
void ThreadPool::wait_for_workers(StopSignal* stop) {
    const auto is_ready = [this] { return is_done(); };
    if (spin_until(spin_policy_, is_ready, [] {})) return;
    std::unique_lock lock(mutex_);
    if (!stop) return done_.wait(lock, is_ready);
    while (!done_.wait_for(lock, std::chrono::nanoseconds(StopSignal::kIntervalNs), is_ready)) {
        lock.unlock();  // asking may take as long as another Python thread holds the GIL
        stop->ask_when_due();
        lock.lock();
    }
}

void ThreadPool::run(const std::vector<int32_t>& order, const Task& task, WorkCounter* shared_counter,
                     StopSignal* stop) {
    Job job(order, task, shared_counter, stop);
    const bool uses_workers = order.size() > 1 && !workers_.empty();
    if (uses_workers) {
        {
            const std::lock_guard lock(mutex_);
            job_ = &job;
            busy_.store(workers_.size(), std::memory_order_relaxed);  // published by the release below
            generation_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
    }
    run_items(0, job);
    if (uses_workers) wait_for_workers(stop);
    failed_thread_ = job.failed_thread;
    if (job.error) std::rethrow_exception(job.error);
}

}  // namespace cobre::lp

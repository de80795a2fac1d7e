// A fixed pool of threads that share the items of one task. Which thread runs which item does not matter to the
// results.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "spin_wait.hpp"
#include "stop_signal.hpp"

namespace cobre::lp {

// How many items have been taken. It may be in memory that other processes map: then their pools, given the same
// order, take items from it too, and each item is run by exactly one of them.
using WorkCounter = std::atomic<int64_t>;
static_assert(WorkCounter::is_always_lock_free, "a counter in shared memory must not hide a lock");

class ThreadPool {
public:
    // Runs one item on one thread.
    using Task = std::function<void(size_t thread, int32_t item)>;

    // The calling thread is one of `threads`. cores: that this process may use, by affinity and quota.
    ThreadPool(size_t threads, size_t cores);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    size_t threads() const { return workers_.size() + 1; }

    // Run all items, started in this order. When some throw, the exception of the item with the smallest number is
    // rethrown. Returns after every thread has finished with the task; items that other processes took may still run.
    // stop: once it is set no further item is started, and an item that throws `Stopped` has not failed; the calling
    // thread goes on asking while it waits for the others. The caller then throws the answer.
    void run(const std::vector<int32_t>& order, const Task& task, WorkCounter* shared_counter = nullptr,
             StopSignal* stop = nullptr);
    // The thread whose item failed in the last run; only after a failure.
    size_t failed_thread() const { return failed_thread_; }

private:
    struct Job;
    void worker_loop(size_t thread);
    Job* wait_for_job(uint64_t& seen);
    void run_items(size_t thread, Job& job);
    bool is_done() const;
    void wait_for_workers(StopSignal* stop);

    std::vector<std::thread> workers_;
    SpinPolicy spin_policy_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    Job* job_ = nullptr;  // written before `generation_` is released, read after it is acquired
    // Each on a cache line of its own: waiting threads poll one while finishing threads write the other.
    alignas(64) std::atomic<uint64_t> generation_{0};  // counts jobs
    alignas(64) std::atomic<size_t> busy_{0};          // workers that have not finished the present job
    std::atomic<bool> stops_{false};
    size_t failed_thread_ = 0;
};

}  // namespace cobre::lp

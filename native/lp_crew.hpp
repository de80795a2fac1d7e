// Threads that share units of work. Which thread does which unit does not matter to the results.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cobre::lp {

class Crew {
   public:
    // Does unit `unit` on thread `thread`.
    using Task = std::function<void(size_t thread, int32_t unit)>;
    // How many units have been taken. It may lie in memory that other processes see: then their crews, given the same order,
    // take units from it too, and each unit is done by one of them.
    using Counter = std::atomic<int64_t>;
    static_assert(Counter::is_always_lock_free, "a counter in shared memory must not hide a lock");

    explicit Crew(size_t threads);  // the calling thread is one of them
    ~Crew();
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    size_t threads() const { return workers_.size() + 1; }

    // Do all units, in this order of starting. When some fail, what the one with the smallest number threw is thrown.
    // Returns nothing before every thread has let go of the task; what other processes took may still be under way.
    void run(const std::vector<int32_t>& order, const Task& task, Counter* common = nullptr);
    // The thread whose unit failed in the last run; only after a failure.
    size_t failed_thread() const { return failed_thread_; }

   private:
    struct Job;
    void serve(size_t thread);
    Job* wait_for_job(uint64_t& seen);
    void work_off(size_t thread, Job& job);
    template <typename Ready>
    bool look(Ready ready) const;

    std::vector<std::thread> workers_;
    bool is_patient_;  // a core for every thread: looking for a while is cheaper than sleeping
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    Job* job_ = nullptr;
    alignas(64) std::atomic<uint64_t> generation_{0};
    alignas(64) std::atomic<size_t> busy_{0};
    std::atomic<bool> stops_{false};
    size_t failed_thread_ = 0;
};

}  // namespace cobre::lp

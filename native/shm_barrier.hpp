// The barrier of all ranks: how they arrive, wait, detect that others are lost, and raise the same failure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "shm_failure.hpp"
#include "shm_layout.hpp"
#include "spin_wait.hpp"

namespace cobre {

// Python's global interpreter lock, as waits see it. Defined in comm_bindings.cpp, and without effect in tests that run
// the transport without an interpreter.
//
// Holds the GIL at first. Released when waiting or copying gets long, acquired again at the end: a short call never
// gives it up.
class Gil {
public:
    Gil() = default;
    ~Gil() { acquire(); }
    Gil(const Gil&) = delete;
    Gil& operator=(const Gil&) = delete;
    void release();
    void acquire();
    // Acquire the GIL and run pending signal handlers; throws the Python error that one of them raised. The GIL stays
    // held: the caller may have more to do with it, and releases it before it waits again.
    void check_signals();

private:
    void* state_ = nullptr;  // of the thread while the GIL is released
};

}  // namespace cobre

namespace cobre::shm {

// How long this many ranks on this many cores spin at a barrier before they sleep; during the first spins the GIL is
// held.
SpinPolicy spin_policy_for(uint32_t ranks, uint32_t cores);

struct BarrierConfig {
    uint32_t rank;
    int64_t timeout_ns;                 // after this long without a heartbeat a rank is lost
    int64_t operation_timeout_ns;       // 0: none
    int64_t progress_ns;                // between two calls of on_wait
    bool condvar;                       // sleep on condition variables instead of a futex
    std::vector<uint32_t> world_ranks;  // by rank here, its rank in the world, for messages; empty: the same
};

// A central barrier with a generation counter. The last rank to arrive opens it; calls are compared on the way.
class Barrier {
public:
    // is_dead(rank): whether this rank's process is known to have ended.
    // on_wait(seconds, missing): called with the GIL held, every `progress_ns` of waiting.
    using OnWait = std::function<void(double, const std::vector<std::string>&)>;
    Barrier(Control control, BarrierConfig config, std::function<bool(uint32_t)> is_dead, OnWait on_wait);

    void set_spin_policy(SpinPolicy policy) { spin_policy_ = policy; }

    // Arrive with this call's hash and wait for all ranks. Throws CollectiveFailure, or the Python error that a signal
    // handler raised.
    void arrive_and_wait(uint64_t call_hash, Gil& gil);

    // Record a failure, unless another rank was first, and wake all ranks, which throw it.
    void record_failure(Failure kind, const std::vector<uint32_t>& failed_ranks, const std::string& text);
    void leave(RankState state);  // from now on this rank takes part in no call: broken or closed
    void wake_all();

    RankSlot& own_slot() { return control_.slots[config_.rank]; }
    const Control& control() const { return control_; }

    // The limit of the calls that follow, instead of operation_timeout_ns; 0: that one again.
    void override_operation_timeout(int64_t limit_ns) { timeout_override_ns_ = limit_ns; }

private:
    bool arrive(uint64_t call_hash, uint32_t generation);
    bool is_open_acquire(uint32_t generation) const {
        // acquire: what the others wrote before they arrived is visible after this
        return control_.generation->value.load(std::memory_order_acquire) != generation;
    }
    // The same for a rank that is about to sleep: in one total order with the waker's read of who sleeps, see arrive().
    bool is_open_seq_cst(uint32_t generation) const {
        return control_.generation->value.load(std::memory_order_seq_cst) != generation;
    }
    bool has_failed() const { return failures_.is_recorded(); }
    void wait_until_open(uint32_t generation, Gil& gil);
    void sleep_until_open(uint32_t generation, Gil& gil);
    void sleep_slice(uint32_t generation);
    void sleep_on_futex(uint32_t generation);
    void sleep_on_condition(uint32_t generation);
    void check_peers(uint32_t generation, int64_t since_ns, int64_t limit_ns);
    void report_wait(uint32_t generation, int64_t since_ns, int64_t& next_report_ns);
    std::vector<uint32_t> missing(uint32_t generation) const;
    std::vector<uint32_t> add_silent(std::vector<uint32_t> absent, int64_t now) const;

    Control control_;
    BarrierConfig config_;
    FailureLog failures_;
    SpinPolicy spin_policy_{};
    std::function<bool(uint32_t)> is_dead_;
    OnWait on_wait_;
    int64_t timeout_override_ns_ = 0;
};

}  // namespace cobre::shm

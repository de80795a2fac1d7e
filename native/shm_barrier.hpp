// The barrier of all ranks: how they arrive, wait, detect that others are lost, and raise the same failure.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gil.hpp"
#include "shm_layout.hpp"
#include "spin_wait.hpp"

namespace cobre::shm {

// A failure that broke the transport; every rank throws the same kind, about the same ranks.
struct CollectiveFailure : std::exception {
    struct FailedRank {
        uint32_t rank;
        int pid;
        std::string status;
    };
    Failure kind;
    std::vector<FailedRank> failed_ranks;
    std::string text;
    CollectiveFailure(Failure kind, std::vector<FailedRank> failed_ranks, std::string text)
        : kind(kind), failed_ranks(std::move(failed_ranks)), text(std::move(text)) {}
    const char* what() const noexcept override { return text.c_str(); }
};

// How long ranks on so many cores spin at a barrier before they sleep; during the first spins the GIL is held.
SpinPolicy spin_policy_for(uint32_t ranks, uint32_t cores);

struct BarrierConfig {
    uint32_t rank;
    int64_t timeout_ns;            // after so long without a heartbeat a rank is lost
    int64_t operation_timeout_ns;  // 0: none
    bool condvar;                  // sleep on condition variables instead of a futex
    std::vector<uint32_t> names;   // numbers of the ranks in messages; empty: 0, 1, ...
};

// A central barrier with a generation counter. The last rank to arrive opens it; calls are compared on the way.
class Barrier {
public:
    // dead(rank): whether this rank's process is known to have ended.
    // on_wait(seconds, missing): called with the GIL held, every 30 s of waiting.
    using OnWait = std::function<void(double, const std::vector<std::string>&)>;
    Barrier(Control control, BarrierConfig config, std::function<bool(uint32_t)> dead, OnWait on_wait);

    void set_spin_policy(SpinPolicy policy) { spin_policy_ = policy; }

    // Arrive with this call's hash and wait for all ranks. Throws CollectiveFailure, or the Python error that a signal
    // handler raised.
    void arrive_and_wait(uint64_t call_hash, Gil& gil);

    // Record a failure, unless another rank was first, and wake all ranks, which throw it.
    void record_failure(Failure kind, const std::vector<uint32_t>& failed_ranks, const std::string& text);
    void leave(RankState state);  // from now on this rank takes part in no call: broken or closed
    void wake_all();

    // A rank and its last call, for messages.
    std::string describe(uint32_t rank) const;
    RankSlot& own() { return control_.slots[config_.rank]; }
    const Control& control() const { return control_; }

    void set_next_timeout(int64_t limit_ns) { next_timeout_ns_ = limit_ns; }

private:
    bool arrive(uint64_t call_hash, uint32_t generation);
    bool passed(uint32_t generation) const {
        // acquire: what the others wrote before they arrived is visible after this
        return control_.generation->value.load(std::memory_order_acquire) != generation;
    }
    // The same for a rank that is about to sleep: in one total order with the waker's look at who sleeps, see arrive().
    bool has_opened(uint32_t generation) const {
        return control_.generation->value.load(std::memory_order_seq_cst) != generation;
    }
    // relaxed: a flag to look at; throw_failure() acquires before it reads the record
    bool has_failed() const { return control_.generation->failure.load(std::memory_order_relaxed) != 0; }
    void wait_until_open(uint32_t generation, Gil& gil);
    void sleep_until_open(uint32_t generation, Gil& gil);
    void sleep_slice(uint32_t generation);
    void sleep_on_futex(uint32_t generation);
    void sleep_on_condition(uint32_t generation);
    void check_peers(uint32_t generation, int64_t since_ns, int64_t limit_ns);
    void report_wait(uint32_t generation, int64_t since_ns, int64_t& next_report_ns);
    std::vector<uint32_t> missing(uint32_t generation) const;
    std::vector<uint32_t> with_silent(std::vector<uint32_t> absent, int64_t now) const;
    bool has_joined(uint32_t rank) const;
    int64_t silence_ns(uint32_t rank, int64_t now) const;
    [[noreturn]] void throw_failure() const;
    [[noreturn]] void throw_mismatch() const;
    std::string status_of(uint32_t rank, Failure kind) const;
    uint32_t name_of(uint32_t rank) const { return config_.names.empty() ? rank : config_.names[rank]; }

    Control control_;
    BarrierConfig config_;
    SpinPolicy spin_policy_{};
    std::function<bool(uint32_t)> dead_;
    OnWait on_wait_;
    int64_t next_timeout_ns_ = 0;
};

}  // namespace cobre::shm

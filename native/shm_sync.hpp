// The barrier, and everything a rank does while it waits for others.
#pragma once

#include <Python.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>
#include <string>
#include <vector>

#include "shm_layout.hpp"

namespace cobre::shm {

// The world failed; every rank raises the same kind, about the same ranks.
struct WorldFailure : std::exception {
    struct Culprit {
        uint32_t rank;
        int pid;
        std::string status;
    };
    Failure kind;
    std::vector<Culprit> culprits;
    std::string text;
    WorldFailure(Failure kind, std::vector<Culprit> culprits, std::string text)
        : kind(kind), culprits(std::move(culprits)), text(std::move(text)) {}
    const char* what() const noexcept override { return text.c_str(); }
};

// Holds the GIL at first; released once when waiting or copying gets long, taken back at the end.
class Gil {
public:
    Gil() = default;
    ~Gil() { acquire(); }
    Gil(const Gil&) = delete;
    Gil& operator=(const Gil&) = delete;
    void release() {
        if (!state_) state_ = PyEval_SaveThread();
    }
    void acquire() {
        if (state_) PyEval_RestoreThread(std::exchange(state_, nullptr));
    }

private:
    PyThreadState* state_ = nullptr;
};

// How long to burn before sleeping: waking a sleeping core costs more than a short wait, but with more ranks than
// cores the one we wait for may need the very core that we burn.
struct Patience {
    uint32_t spins;            // at first, with the GIL held
    uint32_t yields;           // then offer the core to others so often,
    uint32_t spins_per_yield;  // and look so often in between
    static Patience for_ranks(uint32_t ranks, uint32_t cores);
};

struct SyncConfig {
    uint32_t rank;
    int64_t timeout_ns;            // silence after which a rank is given up
    int64_t operation_timeout_ns;  // 0: none
    bool condvar;
    std::vector<uint32_t> names;   // what messages call the ranks; empty: as they are numbered
};

class Sync {
public:
    // dead(rank): whether this rank's process is known to have ended.
    // on_wait(seconds, missing): called with the GIL every 30 s of waiting.
    using OnWait = std::function<void(double, const std::vector<std::string>&)>;
    Sync(Control control, SyncConfig config, std::function<bool(uint32_t)> dead, OnWait on_wait);

    void set_patience(Patience patience) { patience_ = patience; }

    // Arrive with this call's hash and wait for all. Throws WorldFailure, or a Python error for a signal handler's.
    void barrier(uint64_t call_hash, Gil& gil);

    // Declare the world failed, unless somebody has; wakes everybody.
    void declare(Failure kind, const std::vector<uint32_t>& culprits, const std::string& text);
    void leave(Life life);  // say that this rank will not come any more
    void wake_all();

    // How the rank's last call looks to others, for messages.
    std::string describe(uint32_t rank) const;
    RankSlot& own() { return control_.slots[config_.rank]; }
    const Control& control() const { return control_; }

    void limit_next(int64_t limit_ns) { next_limit_ns_ = limit_ns; }

private:
    bool arrive(uint64_t call_hash, uint32_t generation);
    bool passed(uint32_t generation) const {
        // acquire: what the others wrote before they arrived is visible after this
        return control_.generation->value.load(std::memory_order_acquire) != generation;
    }
    bool troubled() const { return control_.generation->verdict.load(std::memory_order_relaxed) != 0; }
    void wait(uint32_t generation, Gil& gil);
    void sleep_until_passed(uint32_t generation, Gil& gil);
    void sleep_slice(uint32_t generation);
    void sleep_on_futex(uint32_t generation);
    void sleep_on_condition(uint32_t generation);
    void look_around(uint32_t generation, int64_t since_ns, int64_t limit_ns);
    void report_wait(uint32_t generation, int64_t since_ns, int64_t& next_report_ns);
    std::vector<uint32_t> missing(uint32_t generation) const;
    std::vector<uint32_t> with_quiet(std::vector<uint32_t> absent, int64_t now) const;
    bool has_joined(uint32_t rank) const;
    int64_t quiet_ns(uint32_t rank, int64_t now) const;
    [[noreturn]] void raise_verdict() const;
    [[noreturn]] void raise_mismatch() const;
    std::string status_of(uint32_t rank, Failure kind) const;
    uint32_t name_of(uint32_t rank) const { return config_.names.empty() ? rank : config_.names[rank]; }

    Control control_;
    SyncConfig config_;
    Patience patience_{};
    std::function<bool(uint32_t)> dead_;
    OnWait on_wait_;
    int64_t next_limit_ns_ = 0;
};

}  // namespace cobre::shm

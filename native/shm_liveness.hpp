// A thread that writes this rank's heartbeat and notices when another rank's process ends.
#pragma once

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "shm_layout.hpp"

namespace cobre::shm {

// Eight heartbeats within the timeout, so that a few that the scheduler delays do not make a rank look lost.
inline constexpr int64_t kHeartbeatsPerTimeout = 8;
inline constexpr int64_t kMinHeartbeatNs = 10'000'000;
inline constexpr int64_t kMaxHeartbeatNs = 500'000'000;

// For reports, not for the decision that a rank is lost: from here on a rank is described as silent, and named when an
// operation is overdue.
inline constexpr int64_t kSilentNs = 4 * kMaxHeartbeatNs;

inline int64_t heartbeat_interval_ns(int64_t timeout_ns) {
    return std::clamp(timeout_ns / kHeartbeatsPerTimeout, kMinHeartbeatNs, kMaxHeartbeatNs);
}

// It never takes the GIL, so a rank that computes keeps its heartbeat; a stopped process does not.
class LivenessMonitor {
public:
    // on_death is called from the thread, after is_dead(rank) has become true.
    LivenessMonitor(Control control, uint32_t rank, int64_t heartbeat_ns, std::function<void()> on_death);
    ~LivenessMonitor();
    LivenessMonitor(const LivenessMonitor&) = delete;
    LivenessMonitor& operator=(const LivenessMonitor&) = delete;

    // acquire: pairs with the release in report_death(); what the dead rank wrote last is then visible
    // acquire: pairs with the release in report_death()
    bool is_dead(uint32_t rank) const { return dead_[rank].load(std::memory_order_acquire); }
    void start();
    void stop();

private:
    struct Peer {
        uint32_t rank;
        int pid;
        uint64_t start;
        int descriptor;  // pidfd, or -1 if the kernel has none: then /proc is polled
    };
    void run();
    void find_new_peers();
    void wait_for_events();
    void poll_processes();
    void report_death(const Peer& peer);

    Control control_;
    uint32_t rank_;
    int64_t heartbeat_ns_;
    std::function<void()> on_death_;
    std::unique_ptr<std::atomic<bool>[]> dead_;
    std::vector<bool> is_known_;
    std::vector<Peer> peers_;
    // Of wait_for_events(). A member with room for all ranks, because the thread must not allocate at each heartbeat: a
    // fork of this process would inherit the allocator's lock in the state that this thread left it in.
    std::vector<pollfd> polled_;
    uint32_t unknown_peers_;
    uint64_t namespace_;
    int stop_read_ = -1;
    int stop_write_ = -1;
    std::thread thread_;
};

}  // namespace cobre::shm

// How often ranks show that they are alive, and after how long a rank without a heartbeat is called silent.
#pragma once

#include <algorithm>
#include <cstdint>

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

}  // namespace cobre::shm

// Rendezvous: how ranks find the segment that they share.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "shm_layout.hpp"
#include "shm_rendezvous_socket.hpp"
#include "shm_segment.hpp"

namespace cobre::shm {

struct TransportConfig {
    std::string name = {};
    uint32_t rank = 0;
    uint32_t size = 1;
    double timeout_s = 0;
    double connect_timeout_s = 0;
    double operation_timeout_s = 0;          // 0: none
    bool condvar = false;                    // sleep on condition variables instead of a futex
    size_t window_bytes = 0;                 // 0: chosen by size
    uint32_t quota_cores = 0;                // CPU quota, 0: none
    bool by_name = false;                    // rendezvous by a name in /dev/shm, not by a socket
    std::vector<uint32_t> world_ranks = {};  // by rank here, its rank in the world, for messages; empty: the same
    bool in_memory = false;                  // regions lie outside of every file system
    double progress_s = 0;                   // between two progress lines while waiting
    size_t memory_limit_bytes = 0;           // of this process's cgroups, 0: none; for regions in memory
};

// The ranks could not join.
struct JoinFailure : std::exception {
    std::string text;
    explicit JoinFailure(std::string text) : text(std::move(text)) {}
    const char* what() const noexcept override { return text.c_str(); }
};

// Rank 0: create the segment and its header. Others get it from `listener` while that exists; where there are no such
// sockets, or the config says so, the segment has a name instead. The name of a dead run is reused, that of a live one
// refused.
Segment create_segment(const TransportConfig& config, std::unique_ptr<RendezvousListener>& listener);

// Other ranks: wait for the segment of a live rank 0.
Segment find_segment(const TransportConfig& config, int64_t deadline_ns);

// Size of the segment, and its initialisation; `base` is zero-filled memory of that size.
size_t segment_bytes(const TransportConfig& config);
void initialise(std::byte* base, const TransportConfig& config);

// Write this process into its slot: others see it, and notice its end.
void publish_rank(RankSlot& slot);

// Whether the process that created the segment is alive; true where that cannot be known.
bool creator_is_alive(const Header& header);

// The creator of a segment, for messages.
std::string describe_creator(const Header& header);

// For loops that wait while ranks join: sleep a millisecond without the GIL, and let Ctrl-C through.
void sleep_briefly();

}  // namespace cobre::shm

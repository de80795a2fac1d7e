// How the ranks of a world find the segment that they meet in.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "shm_layout.hpp"
#include "shm_listener.hpp"
#include "shm_segment.hpp"

namespace cobre::shm {

struct WorldConfig {
    std::string name;
    uint32_t rank;
    uint32_t size;
    double timeout_s;
    double connect_timeout_s;
    double operation_timeout_s;  // 0: none
    bool condvar;
    size_t window_bytes;   // 0: chosen by size
    uint32_t quota_cores;  // CPU quota, 0: none
    bool by_name;          // meet by a name in /dev/shm, not by a socket
    std::vector<uint32_t> names = {};  // what messages call the ranks; empty: as they are numbered
    bool in_memory = false;            // regions lie outside of every file system
};

// The ranks could not meet.
struct JoinFailure : std::exception {
    std::string text;
    explicit JoinFailure(std::string text) : text(std::move(text)) {}
    const char* what() const noexcept override { return text.c_str(); }
};

// Rank 0: create the segment and its header. Others get it from `listener` as long as that is there; where there are no such
// sockets, or the config says so, the segment has a name instead. A dead run's name is taken over, a live one's refused.
Segment make_segment(const WorldConfig& config, std::unique_ptr<MeetingListener>& listener);

// The others: wait until a live rank 0 gives it.
Segment find_segment(const WorldConfig& config, int64_t deadline_ns);

// What a world of this size needs, and its first filling; `base` is zero-filled memory of so many bytes.
size_t segment_bytes(const WorldConfig& config);
void initialise(std::byte* base, const WorldConfig& config);

// This process takes the slot: others can see it and its end.
void fill_slot(RankSlot& slot);

// Whether the process that made the segment is still there.
bool alive(const Header& header);

// Who made a segment, for messages.
std::string creator_text(const Header& header);

// For loops that wait at the start: sleep for a moment without the GIL, and let Ctrl-C through.
void wait_a_moment();

}  // namespace cobre::shm

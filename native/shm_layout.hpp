// The layout of the segment that all ranks of a communicator map.
//
//   Header | Arrival | Generation | FailureRecord | RankSlot x size | window
//
// Words that different ranks write often have cache lines of their own. It holds only plain memory and lock-free
// atomics, which work between processes.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cobre::shm {

inline constexpr uint64_t kMagic = 0x436f627265536d31;  // "CobreSm1"
inline constexpr uint32_t kLayoutVersion = 3;
inline constexpr uint32_t kMaxRanks = 1024;
inline constexpr size_t kLine = 64;
inline constexpr size_t kPage = 4096;
inline constexpr size_t kLabelBytes = 40;
inline constexpr size_t kTextBytes = 1536;

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free,
              "atomics in shared memory must not hide a lock");

struct alignas(kLine) Header {
    std::atomic<uint64_t> magic;  // stored last, with release: a process that acquires it may read the rest
    uint32_t layout_version;
    uint32_t size;
    uint64_t total_bytes;
    uint64_t buffer_bytes;
    uint32_t wait_by_condvar;
    int32_t creator_pid;
    uint64_t creator_start;
    uint64_t creator_namespace;
    uint64_t nonce[2];                   // random: a process that cannot read it cannot compute the names of regions
    std::atomic<uint32_t> attached;      // ranks that have mapped the segment
    std::atomic<uint64_t> affinity[16];  // union of all ranks' cores
    std::atomic<uint32_t> streaming;     // one bit per CopyTuner index: whether to write past the cache
    std::atomic<int32_t> region_descriptor;  // rank 0's, of the region that is being created
    std::atomic<uint64_t> region_inode;      // what others must find behind it
};

// Arrivals: the count of ranks in the upper 16 bits, the first rank's call in the lower 48, so that every later rank
// compares its own call with it on a cache line that it holds anyway.
struct alignas(kLine) Arrival {
    std::atomic<uint64_t> word;
    std::atomic<uint32_t> sleepers;  // ranks in (or on their way to) a futex wait
};

// Waiters read this cache line only.
struct alignas(kLine) Generation {
    std::atomic<uint32_t> value;
    std::atomic<uint32_t> failure;   // 1: there is a FailureRecord
    std::atomic<uint64_t> mismatch;  // generation + 1 in which the calls differed, 0: none
};

enum class Failure : uint32_t { none, died, left, silent, overdue, aborted, mismatch };

// The first failure. The rank that notices it writes it; every rank throws it.
struct alignas(kLine) FailureRecord {
    std::atomic<uint32_t> owner;  // rank + 1 of the writer, 0: no failure yet
    Failure kind;
    uint64_t failed_ranks[kMaxRanks / 64];  // one bit a rank
    char text[kTextBytes];
};

enum class RankState : uint32_t { absent, joined, broken, closed };

// A rank's current call: compared by hash, shown in messages. Others read it while it changes, so all of it is atomic.
struct Call {
    std::atomic<uint64_t> sequence;
    std::atomic<uint32_t> operation;
    std::atomic<uint32_t> dtype;
    std::atomic<uint64_t> count;  // elements that this rank sends
    std::atomic<uint64_t> total;  // elements of all ranks
    // allreduce: the reduction; broadcast: the root; fence: the id of the region; others: 0
    std::atomic<uint32_t> parameter;
    std::atomic<uint64_t> counts_hash;
    std::atomic<uint64_t> location;  // hash of where in which region this rank receives; 0: in private memory
    std::atomic<uint64_t> label[kLabelBytes / 8];
};

struct alignas(2 * kLine) RankSlot {
    std::atomic<int32_t> pid;
    std::atomic<uint32_t> state;
    std::atomic<uint64_t> start;
    std::atomic<uint64_t> pid_namespace;
    std::atomic<int64_t> heartbeat_ns;
    std::atomic<int32_t> outcome;  // errno of this rank's part in creating a region

    alignas(kLine) std::atomic<uint32_t> arrived;  // generation + 1 of the last barrier that this rank reached
    Call call;

    // Only for waiting on condition variables. One per rank: a rank that dies in its wait corrupts no other's.
    alignas(kLine) std::atomic<uint32_t> sleeping;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
};

inline constexpr size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// Pointers into a mapped segment.
struct Control {
    Header* header = nullptr;
    Arrival* arrival = nullptr;
    Generation* generation = nullptr;
    FailureRecord* failure = nullptr;
    RankSlot* slots = nullptr;
    std::byte* window = nullptr;
    size_t buffer_bytes = 0;
    uint32_t size = 0;

    // Everything before the window.
    static size_t fixed_bytes(uint32_t size) {
        const size_t words = sizeof(Header) + sizeof(Arrival) + sizeof(Generation) + sizeof(FailureRecord);
        return round_up(round_up(words, alignof(RankSlot)) + size * sizeof(RankSlot), kPage);
    }
    // Per rank: two buffers to publish in, and two halves of a buffer for folded results.
    static size_t window_bytes_per_rank(size_t buffer_bytes) { return 3 * buffer_bytes; }
    static size_t total_bytes(uint32_t size, size_t buffer_bytes) {
        return fixed_bytes(size) + size * window_bytes_per_rank(buffer_bytes);
    }

    static Control at(std::byte* base, uint32_t size, size_t buffer_bytes) {
        Control control;
        std::byte* const begin = base;
        auto take = [&](auto*& pointer, size_t count) {
            using T = std::remove_reference_t<decltype(*pointer)>;
            base = begin + round_up(static_cast<size_t>(base - begin), alignof(T));  // begin is that of a page
            pointer = reinterpret_cast<T*>(base);
            base += count * sizeof(T);
        };
        take(control.header, 1);
        take(control.arrival, 1);
        take(control.generation, 1);
        take(control.failure, 1);
        take(control.slots, size);
        control.window = begin + fixed_bytes(size);
        control.buffer_bytes = buffer_bytes;
        control.size = size;
        return control;
    }

    std::byte* published(uint32_t rank, uint64_t step) const {
        return window + rank * window_bytes_per_rank(buffer_bytes) + (step % 2) * buffer_bytes;
    }
    std::byte* folded(uint32_t rank, uint64_t step) const {
        return window + rank * window_bytes_per_rank(buffer_bytes) + 2 * buffer_bytes + (step % 2) * (buffer_bytes / 2);
    }
};

}  // namespace cobre::shm

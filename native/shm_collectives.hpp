// The collectives: how payloads of any size pass through the bounded window.
//
// A *step* moves at most one buffer per rank: publish, barrier, copy out. Steps alternate between two buffers, so one
// barrier a step is enough: a rank that publishes step s has passed barrier s - 1, which no rank reaches before it has
// finished reading step s - 2, the last user of the same buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reduce.hpp"
#include "shm_barrier.hpp"
#include "shm_copy.hpp"

namespace cobre::shm {

struct GatherLayout {
    std::span<const size_t> bytes;  // per rank
    std::span<const size_t> begin;  // per rank, offset in the receive buffer
    size_t max = 0;                 // the largest of `bytes`
    size_t total = 0;               // their sum
};

// The bytes of a payload of `total` bytes that move in step i, one chunk a step.
struct StepRange {
    size_t begin;
    size_t length;
    StepRange(size_t total, uint64_t i, size_t chunk)
        : begin(std::min<size_t>(total, i * chunk)), length(std::min(chunk, total - begin)) {}
};

class Collectives {
public:
    Collectives(Barrier& barrier, uint32_t rank) : barrier_(barrier), control_(barrier.control()), rank_(rank) {}

    void barrier(uint64_t call_hash);
    void broadcast(std::byte* data, size_t bytes, uint32_t root, uint64_t call_hash);
    // Broadcast of several parts of a buffer, in one call; layout: of the parts.
    void broadcast_parts(std::byte* data, const GatherLayout& layout, uint32_t root, uint64_t location,
                         uint64_t call_hash);
    // location: identifies the receive buffer if it is in a shared region, 0 otherwise.
    void allgatherv(const std::byte* send, std::byte* recv, const GatherLayout& layout, uint64_t location,
                    uint64_t call_hash);
    void allreduce(const std::byte* send, std::byte* recv, size_t count, size_t itemsize, ElementType element,
                   ReduceOp op, uint64_t call_hash);

private:
    // Writes into the window, through the cache or past it; on rank 0 it also times the call for the tuner.
    class WindowWriter {
    public:
        WindowWriter(Collectives& owner, CopyTuner::Kind kind, size_t bytes);
        ~WindowWriter();
        WindowWriter(const WindowWriter&) = delete;
        WindowWriter& operator=(const WindowWriter&) = delete;
        void operator()(void* to, const void* from, size_t bytes) const { write_(to, from, bytes); }
        bool is_streaming() const;

    private:
        Collectives& owner_;
        size_t bytes_;
        uint32_t index_;
        int64_t begin_ticks_;
        int exceptions_;
        void (*write_)(void*, const void*, size_t);
    };

    bool all_receive_in(uint64_t location) const;
    void publish(const std::byte* send, StepRange own, const WindowWriter& write);
    void copy_own(const std::byte* send, std::byte* recv, const GatherLayout& layout, StepRange own);
    void copy_out(std::byte* recv, const GatherLayout& layout, size_t i, size_t chunk);
    void reduce_whole(const std::byte* send, std::byte* recv, size_t count, size_t itemsize, ElementType element,
                      ReduceOp op, uint64_t hash, Gil& gil);
    void reduce_sliced(const std::byte* send, std::byte* recv, size_t count, size_t itemsize, ElementType element,
                       ReduceOp op, uint64_t hash, Gil& gil);

    Barrier& barrier_;
    const Control& control_;
    uint32_t rank_;
    uint64_t step_ = 0;
    CopyTuner tuner_;
};

}  // namespace cobre::shm

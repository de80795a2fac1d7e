// The collectives: how payloads of any size pass through the bounded window.
//
// A *step* moves at most one slot per rank: publish, barrier, copy out. Steps alternate between two slots, so one
// barrier a step is enough: whoever publishes step s has passed barrier s - 1, which nobody reaches before it has
// finished reading step s - 2, the last user of the same slot.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reduce.hpp"
#include "shm_sync.hpp"
#include "shm_tuner.hpp"

namespace cobre::shm {

struct GatherLayout {
    std::span<const size_t> bytes;  // per rank
    std::span<const size_t> begin;  // per rank, offset in the receive buffer
    size_t most = 0;                // the largest of `bytes`
    size_t total = 0;               // their sum
};

// The part of `total` bytes that moves in step i, one chunk a step.
struct Piece {
    size_t begin;
    size_t length;
    Piece(size_t total, uint64_t i, size_t chunk) : begin(std::min<size_t>(total, i * chunk)), length(std::min(chunk, total - begin)) {}
};

class Collectives {
public:
    Collectives(Sync& sync, uint32_t rank) : sync_(sync), control_(sync.control()), rank_(rank) {}

    void barrier(uint64_t call_hash);
    void broadcast(std::byte* data, size_t bytes, uint32_t root, uint64_t call_hash);
    // Several parts of the root's buffer to everybody else's, wherever they lie there; layout: of the parts.
    void spread(std::byte* data, const GatherLayout& layout, uint32_t root, uint64_t place, uint64_t call_hash);
    // place: identifies the receive buffer when it lies in a shared region, 0 otherwise.
    void allgatherv(const std::byte* send, std::byte* recv, const GatherLayout& layout, uint64_t place, uint64_t call_hash);
    void allreduce(const std::byte* send, std::byte* recv, size_t count, size_t itemsize, ElementType element, ReduceOp op,
                   uint64_t call_hash);

private:
    // How this call writes into the window; on rank 0 it also times the call.
    class Writing {
    public:
        Writing(Collectives& owner, Tuner::Kind kind, size_t bytes);
        ~Writing();
        Writing(const Writing&) = delete;
        Writing& operator=(const Writing&) = delete;
        void operator()(void* to, const void* from, size_t bytes) const { write_(to, from, bytes); }
        bool streams() const;

    private:
        Collectives& owner_;
        size_t bytes_;
        uint32_t slot_;
        int64_t begin_;
        int exceptions_;
        void (*write_)(void*, const void*, size_t);
    };

    bool all_receive_at(uint64_t place) const;
    void publish(const std::byte* send, Piece own, const Writing& write);
    void keep_own(const std::byte* send, std::byte* recv, const GatherLayout& layout, Piece own);
    void collect(std::byte* recv, const GatherLayout& layout, size_t i, size_t chunk);
    void reduce_whole(const std::byte* send, std::byte* recv, size_t count, size_t itemsize, ElementType element, ReduceOp op,
                      uint64_t hash, Gil& gil);
    void reduce_sliced(const std::byte* send, std::byte* recv, size_t count, size_t itemsize, ElementType element, ReduceOp op,
                       uint64_t hash, Gil& gil);

    Sync& sync_;
    const Control& control_;
    uint32_t rank_;
    uint64_t step_ = 0;
    Tuner tuner_;
};

}  // namespace cobre::shm

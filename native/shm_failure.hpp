// The first failure of a transport: how a rank records it, and what all ranks throw and say about it.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shm_layout.hpp"

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

// In the order of `Failure`.
std::span<const char* const> failure_names();

// "12.3 s"
std::string format_seconds(int64_t nanoseconds);

// The failure record in the segment, and the ranks as messages name them.
class FailureLog {
public:
    // world_ranks: see BarrierConfig.
    FailureLog(Control control, uint32_t rank, std::vector<uint32_t> world_ranks)
        : control_(control), rank_(rank), world_ranks_(std::move(world_ranks)) {}

    // relaxed: only a flag; throw_recorded() acquires before it reads the record
    bool is_recorded() const { return control_.generation->failure.load(std::memory_order_relaxed) != 0; }
    // Record a failure, unless another rank was first. The caller wakes the ranks that sleep.
    void record(Failure kind, const std::vector<uint32_t>& failed_ranks, const std::string& text);
    [[noreturn]] void throw_recorded() const;
    // The calls of this generation differ: throw what two of them were. Nothing is recorded, every rank finds it.
    [[noreturn]] void throw_mismatch() const;

    // A rank and its last call.
    std::string describe(uint32_t rank) const;
    bool has_joined(uint32_t rank) const;
    // Nanoseconds since the last heartbeat.
    int64_t silence_ns(uint32_t rank, int64_t now) const;

private:
    std::string status_of(uint32_t rank, Failure kind) const;
    uint32_t world_rank_of(uint32_t rank) const { return world_ranks_.empty() ? rank : world_ranks_[rank]; }

    Control control_;
    uint32_t rank_;
    std::vector<uint32_t> world_ranks_;
};

}  // namespace cobre::shm

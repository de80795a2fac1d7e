#include "shm_failure.hpp"

#include <sched.h>

#include <cstring>
#include <sstream>
#include <tuple>

#include "comm_types.hpp"
#include "process.hpp"
#include "shm_liveness.hpp"

namespace cobre::shm {
namespace {

constexpr const char* kFailureNames[] = {"none", "died", "left", "silent", "overdue", "aborted", "mismatch"};

std::string label_of(const Call& call) {
    char text[kLabelBytes + 1] = {};
    for (size_t i = 0; i < kLabelBytes / 8; ++i) {
        const uint64_t word = call.label[i].load(std::memory_order_relaxed);  // only for display
        std::memcpy(text + 8 * i, &word, 8);
    }
    return text;
}

std::string describe_call(const Call& call) {
    // relaxed: a message may show a call that is just changing
    const auto operation = static_cast<Operation>(call.operation.load(std::memory_order_relaxed));
    const auto element = static_cast<ElementType>(call.dtype.load(std::memory_order_relaxed));
    const uint32_t parameter = call.parameter.load(std::memory_order_relaxed);
    const uint64_t count = call.count.load(std::memory_order_relaxed);
    const uint64_t total = call.total.load(std::memory_order_relaxed);
    std::ostringstream out;
    out << operation_name(operation);
    if (operation == Operation::allgatherv) {
        out << " (" << element_name(element) << ", " << count << " of " << total << ", counts " << std::hex
            << (call.counts_hash.load(std::memory_order_relaxed) & 0xffff) << std::dec << ")";
    } else if (operation == Operation::allreduce) {
        out << " (" << element_name(element) << ", " << count << ", "
            << kReductionNames[parameter % std::size(kReductionNames)] << ")";
    } else if (operation == Operation::broadcast) {
        out << " (" << element_name(element) << ", " << count << ", root " << parameter << ")";
    } else if (operation == Operation::create_shared_region) {
        out << " (" << count << " bytes)";
    } else if (operation == Operation::fence) {
        out << " (region " << parameter << ")";
    }
    if (const std::string label = label_of(call); !label.empty()) out << " '" << label << "'";
    return out.str();
}

}  // namespace

std::span<const char* const> failure_names() { return kFailureNames; }

std::string format_seconds(int64_t nanoseconds) {
    std::ostringstream out;
    out.precision(1);
    out << std::fixed << static_cast<double>(nanoseconds) * 1e-9 << " s";
    return out.str();
}

std::string FailureLog::describe(uint32_t rank) const {
    const RankSlot& slot = control_.slots[rank];
    // relaxed: only for messages, which may show a rank that is just joining or a call that is just changing
    const int pid = slot.pid.load(std::memory_order_relaxed);
    std::ostringstream out;
    out << "rank " << world_rank_of(rank);
    if (pid == 0) return out.str() + " (not yet joined)";
    out << " (pid " << pid << ", last call #" << slot.call.sequence.load(std::memory_order_relaxed) << " "
        << describe_call(slot.call) << ")";
    return out.str();
}

bool FailureLog::has_joined(uint32_t rank) const {
    // acquire: pairs with the release in publish_rank(); the heartbeat was written before
    return static_cast<RankState>(control_.slots[rank].state.load(std::memory_order_acquire)) != RankState::absent;
}

int64_t FailureLog::silence_ns(uint32_t rank, int64_t now) const {
    // relaxed: only compared with a clock
    return now - control_.slots[rank].heartbeat_ns.load(std::memory_order_relaxed);
}

void FailureLog::record(Failure kind, const std::vector<uint32_t>& failed_ranks, const std::string& text) {
    FailureRecord& failure = *control_.failure;
    uint32_t unclaimed = 0;
    // acq_rel: one rank wins and writes the record; all others read it after the release of the flag
    if (failure.owner.compare_exchange_strong(unclaimed, rank_ + 1, std::memory_order_acq_rel)) {
        failure.kind = kind;
        for (uint32_t rank : failed_ranks) failure.failed_ranks[rank / 64] |= uint64_t{1} << rank % 64;
        std::strncpy(failure.text, text.c_str(), kTextBytes - 1);
        // release: the record is complete; pairs with the acquire in throw_recorded()
        control_.generation->failure.store(1, std::memory_order_release);
    } else {
        // The owner is between its exchange and its release, unless it died there: give it a moment.
        for (int turn = 0; turn < 1000 && !is_recorded(); ++turn) sched_yield();
    }
}

std::string FailureLog::status_of(uint32_t rank, Failure kind) const {
    const RankSlot& slot = control_.slots[rank];
    const uint64_t sequence = slot.call.sequence.load(std::memory_order_relaxed);  // relaxed: for a message
    const std::string last =
        sequence ? "; its last call was #" + std::to_string(sequence) + " " + describe_call(slot.call) : "";
    const int64_t silence = silence_ns(rank, now_ns());
    const std::string is_silent = "has sent no heartbeat for " + format_seconds(silence) + " (stopped?)" + last;
    switch (kind) {
        case Failure::died: return "died" + last;
        case Failure::left: return "closed or broke its communicator" + last;
        case Failure::silent: return is_silent;
        case Failure::overdue:
            if (!has_joined(rank)) return "has not joined";
            return silence > kSilentNs ? is_silent : "is alive but has not arrived" + last;
        default: return "";
    }
}

void FailureLog::throw_recorded() const {
    // acquire: pairs with the release in record()
    if (control_.generation->failure.load(std::memory_order_acquire) == 0)
        throw CollectiveFailure(Failure::aborted, {},
                                "communication failed, but the rank that noticed died before it recorded why");
    const FailureRecord& failure = *control_.failure;
    std::vector<CollectiveFailure::FailedRank> failed_ranks;
    for (uint32_t rank = 0; rank < control_.size; ++rank) {
        if (!(failure.failed_ranks[rank / 64] >> rank % 64 & 1)) continue;
        // relaxed: for the message; 0 when the rank has not joined
        failed_ranks.push_back({world_rank_of(rank), control_.slots[rank].pid.load(std::memory_order_relaxed),
                                status_of(rank, failure.kind)});
    }
    throw CollectiveFailure(failure.kind, std::move(failed_ranks), failure.text);
}

void FailureLog::throw_mismatch() const {
    const RankSlot& mine = control_.slots[rank_];
    std::string text;
    std::vector<CollectiveFailure::FailedRank> failed_ranks;
    // relaxed here and below: every rank wrote its slot before the barrier that found the difference
    auto signature = [](const Call& call) {
        return std::make_tuple(
            call.operation.load(std::memory_order_relaxed), call.dtype.load(std::memory_order_relaxed),
            call.parameter.load(std::memory_order_relaxed), call.total.load(std::memory_order_relaxed),
            call.counts_hash.load(std::memory_order_relaxed));
    };
    // Two sides are enough to see the mistake: rank 0's, and the first that differs from it.
    uint32_t other = 0;
    while (other < control_.size && signature(control_.slots[other].call) == signature(control_.slots[0].call)) ++other;
    if (other == control_.size) other = rank_;
    for (uint32_t rank : {0u, other}) {
        failed_ranks.push_back({world_rank_of(rank), control_.slots[rank].pid.load(std::memory_order_relaxed), ""});
        text += (text.empty() ? "" : " vs ") + ("rank " + std::to_string(world_rank_of(rank)) + ": ") +
                describe_call(control_.slots[rank].call);
    }
    text += " at call #" + std::to_string(mine.call.sequence.load(std::memory_order_relaxed));
    throw CollectiveFailure(Failure::mismatch, std::move(failed_ranks), text);
}

}  // namespace cobre::shm

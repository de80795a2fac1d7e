// Shared regions: one object that all ranks map, created in one collective call.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "comm_types.hpp"
#include "hash.hpp"
#include "process.hpp"
#include "shm_transport.hpp"

namespace cobre::shm {

namespace {

constexpr size_t kMaxPrefix = 200;  // of the 255 that a name may have

}  // namespace

// A name that only the current call of these ranks can have.
std::string Transport::derived_name() const {
    const Header& header = *barrier_->control().header;
    uint64_t hash = mix(mix(calls_.current_call().sequence, header.nonce[0]), header.nonce[1]);
    char text[32];
    std::snprintf(text, sizeof text, "-%016llx", static_cast<unsigned long long>(hash));
    // Begins with the name of the segment, so that a launcher finds what its ranks left when all of them were killed.
    const size_t slash = config_.name.starts_with('/') ? 1 : 0;
    std::string name = "/";
    name.append(config_.name, slash, kMaxPrefix).append(text);
    return name;
}

namespace {

constexpr int kUnsupported = -1;  // outcome: ranks cannot share an object in this way on this machine

// The outcome of a rank's part in creating a region: 0, an errno, or kUnsupported.
template <typename Action>
int outcome_of(Action&& action) {
    try {
        return action();
    } catch (const std::system_error& error) {
        return error.code().value();
    }
}

}  // namespace

// Exchange the outcomes of all ranks; returns the first that is not 0.
int Transport::first_failure(int own_outcome, uint64_t hash, Gil& gil) {
    open_barrier().own_slot().outcome.store(own_outcome, std::memory_order_relaxed);  // read after the next barrier
    open_barrier().arrive_and_wait(hash, gil);
    int code = 0;
    for (uint32_t rank = 0; rank < config_.size && code == 0; ++rank)
        // relaxed: written before the barrier that has just been passed
        code = open_barrier().control().slots[rank].outcome.load(std::memory_order_relaxed);
    open_barrier().arrive_and_wait(hash, gil);  // all have read the outcomes before any is written again
    return code;
}

bool Transport::same_pid_namespace() {
    // relaxed: written by publish_rank(), before the first barrier
    for (uint32_t rank = 0; rank < config_.size; ++rank)
        if (open_barrier().control().slots[rank].pid_namespace.load(std::memory_order_relaxed) != pid_namespace())
            return false;
    return true;
}

// Rank 0 creates an object without a name, the others open it through rank 0's descriptor in /proc: nothing can be left
// behind, and no other process can have taken the name.
int Transport::create_unnamed(Region& region, size_t mapped_bytes, uint64_t hash, Gil& gil) {
    Header& header = *open_barrier().control().header;
    std::optional<Segment> segment;  // rank 0's stays open until all have theirs
    const int created = outcome_of([&] {
        if (config_.rank != 0) return 0;
        try {
            segment.emplace(config_.in_memory ? Segment::create_in_memory(mapped_bytes, config_.memory_limit_bytes)
                                              : Segment::create_unnamed(mapped_bytes));
        } catch (const std::system_error& error) {
            if (Segment::is_unsupported(error.code().value())) return kUnsupported;
            throw;
        }
        region.mapping = segment->map(mapped_bytes, false);
        // relaxed, both: read after the barrier in first_failure()
        header.region_descriptor.store(segment->descriptor(), std::memory_order_relaxed);
        header.region_inode.store(segment->inode(), std::memory_order_relaxed);
        return 0;
    });
    if (const int code = first_failure(created, hash, gil)) return code;
    const int opened = outcome_of([&] {
        if (config_.rank == 0) return 0;
        try {
            // relaxed, both: first_failure() has passed a barrier since rank 0 wrote them
            segment.emplace(Segment::open_from(header.creator_pid,
                                               header.region_descriptor.load(std::memory_order_relaxed),
                                               header.region_inode.load(std::memory_order_relaxed)));
        } catch (const std::system_error& error) {
            const int code = error.code().value();
            return code == EMFILE || code == ENFILE || code == ENOMEM ? code : kUnsupported;
        }
        region.mapping = segment->map(mapped_bytes, false);
        return 0;
    });
    return first_failure(opened, hash, gil);
}

// Rank 0 creates an object with a name, the others open it, and rank 0 unlinks the name before any rank continues.
int Transport::create_by_name(Region& region, size_t mapped_bytes, uint64_t hash, Gil& gil) {
    const std::string name = derived_name();
    // Every rank unlinks the name when it leaves by an exception: rank 0 may have died before it could.
    struct Unlinker {
        const std::string& name;
        bool armed = true;
        ~Unlinker() {
            if (armed) shm_unlink(name.c_str());
        }
    } unlinker{name};
    const int created = outcome_of([&] {
        if (config_.rank == 0) region.mapping = Segment::create(name, mapped_bytes).map(mapped_bytes, false);
        return 0;
    });
    int code = first_failure(created, hash, gil);
    if (code == 0) {
        const int opened = outcome_of([&] {
            if (config_.rank != 0) region.mapping = Segment::open(name).map(mapped_bytes, false);
            return 0;
        });
        code = first_failure(opened, hash, gil);
    }
    if (config_.rank == 0) shm_unlink(name.c_str());
    open_barrier().arrive_and_wait(hash, gil);  // the name is unlinked
    unlinker.armed = false;
    return code;
}

// A failure on any rank is thrown on all.
std::shared_ptr<Region> Transport::create_region(size_t bytes, uint32_t dtype) {
    const InCall in_call(*this);
    const uint64_t hash = publish_call(dtype, bytes, bytes, 0, 0, 0);
    const size_t mapped_bytes = round_up(std::max<size_t>(bytes, 1), kPage);
    auto region = std::make_shared<Region>(Region{nullptr, bytes, next_region_++});
    Gil gil;
    open_barrier().arrive_and_wait(hash, gil);  // all agree on the call before anything is allocated
    gil.release();
    int code = same_pid_namespace() ? create_unnamed(*region, mapped_bytes, hash, gil) : kUnsupported;
    if (code == kUnsupported) code = config_.in_memory ? EOPNOTSUPP : create_by_name(*region, mapped_bytes, hash, gil);
    if (code != 0) throw std::system_error(code, std::generic_category(), "shared region");
    std::erase_if(regions_, [](const auto& weak) { return weak.expired(); });
    regions_.push_back(region);
    return region;
}

}  // namespace cobre::shm

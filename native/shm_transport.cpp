#include "shm_transport.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>

#include "hash.hpp"
#include "process.hpp"

namespace cobre::shm {
namespace {

// At most a century, which no addition overflows; at least a nanosecond, because 0 means "none".
int64_t to_ns(double seconds) {
    if (seconds <= 0) return 0;
    return static_cast<int64_t>(std::clamp(seconds * 1e9, 1.0, 3.2e18));
}

void elements_to_bytes(std::vector<size_t>& sizes, size_t itemsize) {
    for (size_t& size : sizes) size *= itemsize;
}

}  // namespace

Transport::Transport(TransportConfig config, const CallSource& calls, OnWait on_wait)
    : config_(std::move(config)), calls_(calls), on_wait_(std::move(on_wait)), fork_count_(fork_generation()) {
    join();
}

Transport::Transport(Segment& segment, TransportConfig config, const CallSource& calls, OnWait on_wait)
    : config_(std::move(config)), calls_(calls), on_wait_(std::move(on_wait)), fork_count_(fork_generation()) {
    try {
        check_header(segment);
        set_up(segment.map(segment.bytes(), true));
        register_rank(segment);
    } catch (...) {
        close();
        throw;
    }
}

Transport::Transport(Transport& parent, const CallSource& calls, OnWait on_wait)
    : config_(parent.config_), calls_(calls), on_wait_(std::move(on_wait)), fork_count_(fork_generation()) {
    config_.name = parent.derived_name();  // regions of parent and child get different names
    config_.world_ranks.clear();
    const std::shared_ptr<Region> region = parent.create_region(segment_bytes(config_), 0);
    if (config_.rank == 0) initialise(region->mapping->data(), config_);
    parent.barrier();  // the header is complete
    set_up(region->mapping);
    claim_slot();
    liveness_->start();
    parent.barrier();  // all have joined
    choose_spin_policy();
}

Transport::~Transport() { close(); }

void Transport::join() {
    const int64_t deadline = now_ns() + to_ns(config_.connect_timeout_s);
    std::unique_ptr<RendezvousListener> listener;  // closed when all have joined, or joining has failed
    Segment segment = config_.rank == 0 ? create_segment(config_, listener) : find_segment(config_, deadline);
    try {
        check_header(segment);
        set_up(segment.map(segment.bytes(), true));
        try {
            register_rank(segment);
            wait_for_all();
        } catch (const CollectiveFailure&) {
            if (config_.rank == 0) wait_for_late_ranks(deadline);
            throw;
        }
    } catch (...) {
        // A name that outlives its run would block the next one.
        if (config_.rank == 0 || !has_live_creator(segment)) segment.unlink();
        close();
        throw;
    }
}

constexpr int64_t kLateRankNs = 5'000'000'000;

// Joining has failed because of some rank. Ranks that start later would look for rank 0 until their timeout, and name
// it as the one that is missing: let them attach, so that they raise the failure that was recorded.
void Transport::wait_for_late_ranks(int64_t deadline_ns) {
    const int64_t end = std::min(deadline_ns, now_ns() + kLateRankNs);
    const auto& attached = barrier_->control().header->attached;
    // acquire: pairs with register_rank(): who has attached has mapped the segment
    while (attached.load(std::memory_order_acquire) < config_.size && now_ns() < end) sleep_briefly();
}

bool Transport::has_live_creator(const Segment& segment) const {
    return creator_is_alive(*reinterpret_cast<const Header*>(segment.map(sizeof(Header), false)->data()));
}

void Transport::check_header(const Segment& segment) const {
    const auto head = segment.map(sizeof(Header), false);
    const auto& header = *reinterpret_cast<const Header*>(head->data());
    if (header.layout_version != kLayoutVersion)
        throw JoinFailure("rank 0 (" + describe_creator(header) + ") runs another version of cobre (segment layout " +
                          std::to_string(header.layout_version) + ", this rank has layout " +
                          std::to_string(kLayoutVersion) + ")");
    if (header.size != config_.size)
        throw JoinFailure("COBRE_SHM_SIZE is " + std::to_string(config_.size) + " for rank " +
                          std::to_string(config_.rank) + " (pid " + std::to_string(getpid()) + ") but " +
                          std::to_string(header.size) + " for rank 0 (" + describe_creator(header) + ")");
    if (header.total_bytes > segment.bytes())
        throw JoinFailure("segment " + config_.name + " is shorter than its header says");
}

// Monitor and barrier refer to each other: the monitor's callback wakes the ranks that sleep at the barrier, the
// barrier asks the monitor who is dead. Both exist before liveness_->start() starts the monitor's thread; see
// finish_close() for the way back.
void Transport::set_up(std::shared_ptr<Mapping> mapping) {
    mapping_ = std::move(mapping);
    const Header& header = *reinterpret_cast<const Header*>(mapping_->data());
    const Control control = Control::at(mapping_->data(), config_.size, header.buffer_bytes);
    liveness_ = std::make_unique<LivenessMonitor>(
        control, config_.rank, heartbeat_interval_ns(to_ns(config_.timeout_s)), [this] { barrier_->wake_all(); });
    const BarrierConfig barrier{.rank = config_.rank,
                                .timeout_ns = to_ns(config_.timeout_s),
                                .operation_timeout_ns = to_ns(config_.operation_timeout_s),
                                .progress_ns = to_ns(config_.progress_s),
                                .condvar = header.wait_by_condvar != 0,
                                .world_ranks = config_.world_ranks};
    barrier_ = std::make_unique<Barrier>(
        control, barrier, [this](uint32_t rank) { return liveness_->is_dead(rank); },
        [this](double seconds, const std::vector<std::string>& missing) {
            if (on_wait_) on_wait_(seconds, missing);
        });
    // No spins: leave the cores to ranks that are starting.
    barrier_->set_spin_policy({.spins = 0, .yields = 20, .spins_per_yield = 0, .max_yield_ns = 5'000'000});
    collectives_ = std::make_unique<Collectives>(*barrier_, config_.rank);
}

void Transport::claim_slot() {
    RankSlot& slot = barrier_->own_slot();
    int32_t unclaimed = 0;
    // acq_rel: of two processes that claim one rank, one loses here; rank 0 has had its slot since it created the
    // segment
    if (!slot.pid.compare_exchange_strong(unclaimed, getpid(), std::memory_order_acq_rel) && unclaimed != getpid())
        throw JoinFailure("rank " + std::to_string(config_.rank) + " is claimed by two processes: pid " +
                          std::to_string(unclaimed) + " and pid " + std::to_string(getpid()) +
                          " (both COBRE_SHM_RANK=" + std::to_string(config_.rank) + ")");
    publish_rank(slot);

    cpu_set_t cores;
    Header& header = *barrier_->control().header;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        for (size_t core = 0; core < std::size(header.affinity) * 64 && core < CPU_SETSIZE; ++core)
            if (CPU_ISSET(core, &cores))
                // relaxed: read after a barrier
                header.affinity[core / 64].fetch_or(uint64_t{1} << core % 64, std::memory_order_relaxed);
}

// All ranks attach; the last one unlinks the name; from then on nothing can be left behind in /dev/shm, even by
// SIGKILL.
void Transport::register_rank(Segment& segment) {
    claim_slot();
    liveness_->start();
    Header& header = *barrier_->control().header;
    // acq_rel: the last rank to attach unlinks after all others have mapped
    const uint32_t attached = header.attached.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (attached == config_.size) segment.unlink();  // the last to attach: all have mapped it
}

void Transport::wait_for_all() {
    barrier_->override_operation_timeout(to_ns(config_.connect_timeout_s));
    Gil gil;
    barrier_->arrive_and_wait(0, gil);
    barrier_->override_operation_timeout(0);
    choose_spin_policy();
}

void Transport::choose_spin_policy() {
    uint32_t cores = 0;
    for (const auto& word : barrier_->control().header->affinity)
        // relaxed: complete after the barrier in wait_for_all()
        cores += static_cast<uint32_t>(std::popcount(word.load(std::memory_order_relaxed)));
    if (config_.quota_cores) cores = std::min(cores, config_.quota_cores);
    cores = std::max(cores, 1u);
    barrier_->set_spin_policy(spin_policy_for(config_.size, cores));
}

// The collectives: publish the call, then run it.

Barrier& Transport::open_barrier() {
    if (!barrier_) throw std::logic_error("this transport is closed");
    return *barrier_;
}

// Publish what this rank calls, for messages of other ranks; returns the hash that the barrier compares.
uint64_t Transport::publish_call(uint32_t dtype, uint64_t count, uint64_t total, uint32_t parameter,
                                 uint64_t counts_hash, uint64_t location) {
    const CurrentCall current = calls_.current_call();
    if (described_call_.sequence == current.sequence) {
        dtype = described_call_.dtype;
        count = described_call_.count;
        total = described_call_.total;
        parameter = described_call_.parameter;
        counts_hash = described_call_.counts_hash;
    }
    Call& call = open_barrier().own_slot().call;
    // relaxed throughout: others read these after a barrier, or for a message that may be a little out of date
    constexpr auto relaxed = std::memory_order_relaxed;
    call.sequence.store(current.sequence, relaxed);
    call.operation.store(static_cast<uint32_t>(current.operation), relaxed);
    call.dtype.store(dtype, relaxed);
    call.count.store(count, relaxed);
    call.total.store(total, relaxed);
    call.parameter.store(parameter, relaxed);
    call.counts_hash.store(counts_hash, relaxed);
    call.location.store(location, relaxed);
    if (!current.label.empty()) {
        uint64_t words[kLabelBytes / 8] = {};
        std::memcpy(words, current.label.data(), std::min<size_t>(current.label.size(), kLabelBytes));
        for (size_t i = 0; i < std::size(words); ++i) call.label[i].store(words[i], relaxed);
    } else if (call.label[0].load(relaxed) != 0) {
        for (auto& word : call.label) word.store(0, relaxed);
    }
    uint64_t hash = mix(static_cast<uint64_t>(current.operation), (uint64_t{dtype} << 32) | parameter);
    hash = mix(hash, total);
    return mix(hash, counts_hash);
}

void Transport::describe_call(uint32_t dtype, uint64_t count, uint64_t total, uint32_t parameter,
                              uint64_t counts_hash) {
    described_call_ = {.sequence = calls_.current_call().sequence,
                       .dtype = dtype,
                       .count = count,
                       .total = total,
                       .parameter = parameter,
                       .counts_hash = counts_hash};
}

void Transport::enforce_operation_timeout(bool limited) {
    constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
    open_barrier().override_operation_timeout(limited ? 0 : kNever);
}

void Transport::barrier() {
    const InCall in_call(*this);
    collectives_->barrier(publish_call(0, 0, 0, 0, 0, 0));
}

void Transport::broadcast(const TypedMemory& data, uint32_t root) {
    const InCall in_call(*this);
    const uint64_t hash = publish_call(data.dtype, data.count, data.count, root, 0, 0);
    collectives_->broadcast(data.data, data.nbytes(), root, hash);
}

void Transport::allreduce(const TypedMemory& send, const TypedMemory& recv, ReduceOp op) {
    const InCall in_call(*this);
    const uint64_t hash = publish_call(send.dtype, send.count, send.count, static_cast<uint32_t>(op), 0, 0);
    collectives_->allreduce(send.data, recv.data, send.count, send.itemsize, send.element, op, hash);
}

void Transport::allgatherv(const TypedMemory& send, const TypedMemory& recv, std::vector<size_t> counts,
                           std::vector<size_t> displs) {
    const InCall in_call(*this);
    uint64_t counts_hash = 0, layout_hash = 0;
    for (const size_t count : counts) counts_hash = mix(counts_hash, count);
    elements_to_bytes(counts, recv.itemsize);
    elements_to_bytes(displs, recv.itemsize);
    GatherLayout layout{counts, displs};
    for (uint32_t rank = 0; rank < config_.size; ++rank) {
        layout_hash = mix(layout_hash, displs[rank]);
        layout.max = std::max(layout.max, counts[rank]);
        layout.total += counts[rank];
    }
    const uint64_t location = location_of(recv, layout_hash);
    const uint64_t hash = publish_call(recv.dtype, send.count, layout.total / recv.itemsize, 0, counts_hash, location);
    collectives_->allgatherv(send.data, recv.data, layout, location, hash);
}

void Transport::broadcast_parts(const TypedMemory& data, std::vector<size_t> counts, std::vector<size_t> displs,
                                uint32_t root) {
    const InCall in_call(*this);
    elements_to_bytes(counts, data.itemsize);
    elements_to_bytes(displs, data.itemsize);
    GatherLayout layout{counts, displs};
    uint64_t layout_hash = 0;
    for (size_t part = 0; part < counts.size(); ++part) {
        layout_hash = mix(layout_hash, displs[part]);
        layout.total += counts[part];
    }
    const uint64_t location = location_of(data, layout_hash);
    const uint64_t hash = publish_call(data.dtype, data.count, layout.total / data.itemsize, root, 0, location);
    collectives_->broadcast_parts(data.data, layout, root, location, hash);
}

// Equal on two ranks only when they receive in the same shared memory with the same layout; 0: in private memory.
uint64_t Transport::location_of(const TypedMemory& recv, uint64_t layout_hash) const {
    for (const auto& weak : regions_) {
        const std::shared_ptr<Region> region = weak.lock();
        if (!region) continue;
        const std::byte* base = region->mapping->data();
        if (recv.data < base || recv.data + recv.nbytes() > base + region->bytes) continue;
        return mix(mix(layout_hash, region->id), static_cast<uint64_t>(recv.data - base)) | 1;  // never 0
    }
    return 0;
}

void Transport::fence(const Region& region) {
    const InCall in_call(*this);
    collectives_->barrier(publish_call(0, 0, 0, region.id, 0, 0));
}

// The end.

void Transport::abort(const std::string& text) {
    if (!barrier_ || fork_count_ != fork_generation()) return;
    // The record before the state: a rank that saw "broken" first would record that this one left, without the reason.
    barrier_->record_failure(Failure::aborted, {config_.rank}, text);
    barrier_->leave(RankState::broken);
}

void Transport::close() {
    if (fork_count_ != fork_generation()) {
        // A forked child leaks both on purpose. Their destructors would join a thread that fork did not copy, and
        // leaving would mark the slot of the parent, which is still in the world, as closed.
        (void)liveness_.release();
        (void)barrier_.release();
        return;
    }
    // Only in a slot that this process has claimed: after a failed claim_slot() it is another process's.
    // relaxed: if it is our pid, this process wrote it.
    if (barrier_ && barrier_->own_slot().pid.load(std::memory_order_relaxed) == getpid())
        barrier_->leave(RankState::closed);
    if (in_call_) {
        close_after_call_ = true;
        barrier_->record_failure(Failure::left, {config_.rank},
                                 "");  // wakes the waiting call, which cannot succeed any more
        return;
    }
    finish_close();
}

void Transport::finish_close() {
    close_after_call_ = false;
    // The monitor's thread calls barrier_->wake_all(), so it ends first. No call is under way, so the barrier
    // asks liveness_ nothing any more and may outlive it. The memory that all of them point into goes last.
    if (liveness_) liveness_->stop();
    collectives_.reset();
    liveness_.reset();
    barrier_.reset();
    mapping_.reset();
    on_wait_ = nullptr;  // it may refer to the communicator, which refers to this
}

}  // namespace cobre::shm

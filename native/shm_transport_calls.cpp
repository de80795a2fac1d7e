// The collectives of a transport: publish the call, run it.
#include <algorithm>
#include <cstring>
#include <limits>

#include "hash.hpp"
#include "shm_transport.hpp"

namespace cobre::shm {
namespace {

void elements_to_bytes(std::vector<size_t>& sizes, size_t itemsize) {
    for (size_t& size : sizes) size *= itemsize;
}

}  // namespace

Barrier& Transport::open_barrier() {
    if (!barrier_) throw std::logic_error("this transport is closed");
    return *barrier_;
}

// Publish what this rank calls, for messages of other ranks; returns the hash that the barrier compares.
uint64_t Transport::publish_call(uint32_t dtype, uint64_t count, uint64_t total, uint32_t parameter,
                                 uint64_t counts_hash, uint64_t location) {
    const CurrentCall current = calls_.current_call();
    if (described_.sequence == current.sequence) {
        dtype = described_.dtype;
        count = described_.count;
        total = described_.total;
        parameter = described_.parameter;
        counts_hash = described_.counts_hash;
    }
    Call& call = open_barrier().own().call;
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
    described_ = {.sequence = calls_.current_call().sequence,
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

}  // namespace cobre::shm

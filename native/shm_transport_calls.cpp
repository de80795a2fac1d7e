// The collectives of a transport: read the arguments, publish the call, run it.
#include <algorithm>
#include <cstring>
#include <limits>

#include "hash.hpp"
#include "shm_transport.hpp"

namespace nb = nanobind;

namespace cobre::shm {
namespace {

std::vector<size_t> read_sizes(nb::handle sequence, size_t itemsize) {
    std::vector<size_t> sizes;
    for (nb::handle item : sequence) sizes.push_back(nb::cast<size_t>(nb::int_(item)) * itemsize);
    return sizes;
}

}  // namespace

Barrier& Transport::open_barrier() {
    if (!barrier_) throw std::logic_error("this transport is closed");
    return *barrier_;
}

// Publish what this rank calls, for messages of other ranks; gives the hash that the barrier compares.
uint64_t Transport::publish_call(uint32_t dtype, uint64_t count, uint64_t total, uint32_t parameter,
                                 uint64_t counts_hash, uint64_t location) {
    const CallRecord& record = guard_.last();
    if (described_.sequence == record.sequence) {
        dtype = described_.dtype;
        count = described_.count;
        total = described_.total;
        parameter = described_.parameter;
        counts_hash = described_.counts_hash;
    }
    Call& call = open_barrier().own().call;
    // relaxed throughout: others read these after a barrier, or for a message that may be a little out of date
    constexpr auto relaxed = std::memory_order_relaxed;
    call.sequence.store(record.sequence, relaxed);
    call.operation.store(static_cast<uint32_t>(record.operation), relaxed);
    call.dtype.store(dtype, relaxed);
    call.count.store(count, relaxed);
    call.total.store(total, relaxed);
    call.parameter.store(parameter, relaxed);
    call.counts_hash.store(counts_hash, relaxed);
    call.location.store(location, relaxed);
    if (Py_ssize_t length = 0; record.label && PyUnicode_GET_LENGTH(record.label) > 0) {
        const char* text = PyUnicode_AsUTF8AndSize(record.label, &length);
        if (!text) {  // a lone surrogate: the label is only for display
            PyErr_Clear();
            text = "?";
            length = 1;
        }
        uint64_t words[kLabelBytes / 8] = {};
        std::memcpy(words, text, std::min<size_t>(static_cast<size_t>(length), kLabelBytes));
        for (size_t i = 0; i < std::size(words); ++i) call.label[i].store(words[i], relaxed);
    } else if (call.label[0].load(relaxed) != 0) {
        for (auto& word : call.label) word.store(0, relaxed);
    }
    uint64_t hash = mix(static_cast<uint64_t>(record.operation), (uint64_t{dtype} << 32) | parameter);
    hash = mix(hash, total);
    return mix(hash, counts_hash);
}

void Transport::describe_call(uint32_t dtype, uint64_t count, uint64_t total, uint32_t parameter,
                              uint64_t counts_hash) {
    described_ = {.sequence = guard_.last().sequence,
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

void Transport::broadcast(nb::handle buffer, uint32_t root) {
    const InCall in_call(*this);
    const Buffer data = read_any(buffer.ptr());
    const uint64_t hash = publish_call(data.dtype, data.count, data.count, root, 0, 0);
    collectives_->broadcast(data.data, data.nbytes(), root, hash);
}

void Transport::allreduce(nb::handle send, nb::handle recv, nb::handle op) {
    const InCall in_call(*this);
    const Buffer from = read_any(send.ptr()), to = read_any(recv.ptr());
    const auto reduction = static_cast<ReduceOp>(PyLong_AsLong(op.ptr()));  // a member of an IntEnum, checked before
    const uint64_t hash = publish_call(from.dtype, from.count, from.count, static_cast<uint32_t>(reduction), 0, 0);
    collectives_->allreduce(from.data, to.data, from.count, from.itemsize, from.element, reduction, hash);
}

void Transport::allgatherv(nb::handle send, nb::handle recv, nb::handle counts, nb::handle displs) {
    const InCall in_call(*this);
    const Buffer from = read_any(send.ptr()), to = read_any(recv.ptr());
    const std::vector<size_t> bytes = read_sizes(counts, to.itemsize), begin = read_sizes(displs, to.itemsize);
    GatherLayout layout{bytes, begin};
    uint64_t counts_hash = 0, layout_hash = 0;
    for (uint32_t rank = 0; rank < config_.size; ++rank) {
        counts_hash = mix(counts_hash, bytes[rank] / to.itemsize);
        layout_hash = mix(layout_hash, begin[rank]);
        layout.max = std::max(layout.max, bytes[rank]);
        layout.total += bytes[rank];
    }
    const uint64_t location = location_of(to, layout_hash);
    const uint64_t hash = publish_call(to.dtype, from.count, layout.total / to.itemsize, 0, counts_hash, location);
    collectives_->allgatherv(from.data, to.data, layout, location, hash);
}

void Transport::broadcast_parts(nb::handle buffer, nb::handle counts, nb::handle displs, uint32_t root) {
    const InCall in_call(*this);
    const Buffer data = read_any(buffer.ptr());
    const std::vector<size_t> bytes = read_sizes(counts, data.itemsize), begin = read_sizes(displs, data.itemsize);
    GatherLayout layout{bytes, begin};
    uint64_t layout_hash = 0;
    for (size_t part = 0; part < bytes.size(); ++part) {
        layout_hash = mix(layout_hash, begin[part]);
        layout.total += bytes[part];
    }
    const uint64_t location = location_of(data, layout_hash);
    const uint64_t hash = publish_call(data.dtype, data.count, layout.total / data.itemsize, root, 0, location);
    collectives_->broadcast_parts(data.data, layout, root, location, hash);
}

// Equal on two ranks only when they receive in the same shared memory with the same layout; 0: in private memory.
uint64_t Transport::location_of(const Buffer& recv, uint64_t layout_hash) const {
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

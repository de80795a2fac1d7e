#include "shm_collectives.hpp"

#include <algorithm>
#include <vector>

#include "process.hpp"

namespace cobre::shm {
namespace {

constexpr size_t kKeepGilBytes = 64 * 1024;    // below: keep the GIL until there is something to wait for
constexpr size_t kFoldWholeBytes = 16 * 1024;  // below: every rank folds everything, which saves a barrier
constexpr size_t kChunkBytes = 512 * 1024;     // what a step moves per rank, unless a rank sends more than kHugeBytes
constexpr size_t kHugeBytes = 16 << 20;        // above: a step moves a whole buffer, so that there are fewer steps
constexpr size_t kStreamingBytes = 4 << 20;    // above: the receiver cannot keep it in its cache anyway

// How to copy what this rank receives: past the cache when it would not fit there.
auto copier_for(size_t bytes) { return bytes > kStreamingBytes ? copy_streaming : copy_cached; }

size_t chunk_for(size_t bytes, size_t buffer) { return bytes > kHugeBytes ? buffer : std::min(buffer, kChunkBytes); }

size_t steps_for(size_t bytes, size_t chunk) { return std::max<size_t>(1, (bytes + chunk - 1) / chunk); }

}  // namespace

Collectives::WindowWriter::WindowWriter(Collectives& owner, CopyTuner::Kind kind, size_t bytes)
    : owner_(owner),
      bytes_(bytes),
      index_(CopyTuner::index_of(kind, bytes)),
      begin_ticks_(0),
      exceptions_(0),
      write_(copy_cached) {
    if (bytes < CopyTuner::kSmallest || owner.control_.size == 1) return;
    std::atomic<uint32_t>& word = owner.control_.header->streaming;
    if (owner.rank_ == 0) {
        const uint32_t bit = uint32_t{1} << index_;
        // relaxed: whatever a rank reads, the result is the same
        if (owner.tuner_.choice(index_).next()) word.fetch_or(bit, std::memory_order_relaxed);
        else word.fetch_and(~bit, std::memory_order_relaxed);
        begin_ticks_ = ticks();
        exceptions_ = std::uncaught_exceptions();
    }
    if (word.load(std::memory_order_relaxed) >> index_ & 1) write_ = copy_streaming;
}

Collectives::WindowWriter::~WindowWriter() {
    if (begin_ticks_ && std::uncaught_exceptions() == exceptions_)
        owner_.tuner_.choice(index_).learn(static_cast<double>(ticks() - begin_ticks_) / static_cast<double>(bytes_));
}

bool Collectives::WindowWriter::is_streaming() const { return write_ == copy_streaming; }

void Collectives::barrier(uint64_t call_hash) {
    Gil gil;
    barrier_.arrive_and_wait(call_hash, gil);
}

void Collectives::broadcast(std::byte* data, size_t bytes, uint32_t root, uint64_t call_hash) {
    Gil gil;
    if (bytes > kKeepGilBytes) gil.release();
    const WindowWriter write(*this, CopyTuner::Kind::broadcast, bytes);
    const auto copy = copier_for(bytes);
    const size_t chunk = std::min(control_.buffer_bytes, kChunkBytes);
    const size_t steps = steps_for(bytes, chunk);
    for (size_t i = 0; i < steps; ++i, ++step_) {
        const StepRange range(bytes, i, chunk);
        std::byte* buffer = control_.published(root, step_);
        if (rank_ == root) write(buffer, data + range.begin, range.length);
        barrier_.arrive_and_wait(call_hash, gil);
        if (rank_ != root) copy(data + range.begin, buffer, range.length);
    }
}

// The parts are one stream, of which a step moves one buffer. Where all buffers are the same shared memory there is
// nothing to copy: the root has written the parts there, and the barrier publishes them.
void Collectives::broadcast_parts(std::byte* data, const GatherLayout& layout, uint32_t root, uint64_t location,
                                  uint64_t call_hash) {
    Gil gil;
    if (layout.total > kKeepGilBytes) gil.release();
    barrier_.arrive_and_wait(call_hash, gil);
    const bool in_one_region = location != 0 && all_receive_in(location);
    barrier_.arrive_and_wait(call_hash, gil);  // all have compared locations before any rank publishes its next call
    if (in_one_region) return;
    const auto copy = copier_for(layout.total);
    const size_t chunk = std::min(control_.buffer_bytes, kChunkBytes);
    const size_t steps = steps_for(layout.total, chunk);
    size_t part = 0, at = 0;  // where in which part the next step begins
    for (size_t i = 0; i < steps; ++i, ++step_) {
        std::byte* buffer = control_.published(root, step_);
        const size_t first_part = part, first_at = at;
        auto copy_step = [&](auto&& copy_range) {
            part = first_part;
            at = first_at;
            for (size_t done = 0; done < chunk && part < layout.bytes.size();) {
                const size_t length = std::min(chunk - done, layout.bytes[part] - at);
                copy_range(data + layout.begin[part] + at, buffer + done, length);
                done += length;
                at += length;
                if (at == layout.bytes[part]) {
                    ++part;
                    at = 0;
                }
            }
        };
        if (rank_ == root)
            copy_step([](std::byte* mine, std::byte* shared, size_t length) { copy_cached(shared, mine, length); });
        barrier_.arrive_and_wait(call_hash, gil);
        if (rank_ != root)
            copy_step([&](std::byte* mine, std::byte* shared, size_t length) { copy(mine, shared, length); });
    }
}

// Whether all ranks receive in the same part of a region is known after the first barrier. That barrier also makes sure
// that no rank still reads the region when the first one writes.
void Collectives::allgatherv(const std::byte* send, std::byte* recv, const GatherLayout& layout, uint64_t location,
                             uint64_t call_hash) {
    Gil gil;
    if (layout.max > kKeepGilBytes) gil.release();
    const WindowWriter write(*this, CopyTuner::Kind::gather, location ? 0 : layout.total);
    const size_t chunk = chunk_for(layout.max, control_.buffer_bytes);
    const bool one_step = layout.max <= chunk;
    // A small payload travels with the first barrier.
    if (one_step) publish(send, StepRange(layout.bytes[rank_], 0, chunk), write);
    barrier_.arrive_and_wait(call_hash, gil);
    if (location != 0 && all_receive_in(location)) {
        copy_own(send, recv, layout, StepRange(layout.bytes[rank_], 0, layout.bytes[rank_]));
        barrier_.arrive_and_wait(call_hash, gil);
        step_ += one_step;
        return;
    }
    const size_t steps = steps_for(layout.max, chunk);
    for (size_t i = 0; i < steps; ++i, ++step_) {
        const StepRange own(layout.bytes[rank_], i, chunk);
        if (!one_step) publish(send, own, write);
        copy_own(send, recv, layout, own);
        if (!one_step) barrier_.arrive_and_wait(call_hash, gil);
        copy_out(recv, layout, i, chunk);
    }
}

bool Collectives::all_receive_in(uint64_t location) const {
    for (uint32_t rank = 0; rank < control_.size; ++rank)
        // relaxed: written before the barrier that has just been passed
        if (control_.slots[rank].call.location.load(std::memory_order_relaxed) != location) return false;
    return true;
}

void Collectives::publish(const std::byte* send, StepRange own, const WindowWriter& write) {
    write(control_.published(rank_, step_), send + own.begin, own.length);
}

// The own part is copied directly, unless the send buffer is that part of the receive buffer.
void Collectives::copy_own(const std::byte* send, std::byte* recv, const GatherLayout& layout, StepRange own) {
    std::byte* home = recv + layout.begin[rank_] + own.begin;
    if (home != send + own.begin) copier_for(layout.total)(home, send + own.begin, own.length);
}

void Collectives::copy_out(std::byte* recv, const GatherLayout& layout, size_t i, size_t chunk) {
    const auto copy = copier_for(layout.total);
    for (uint32_t turn = 1; turn < control_.size; ++turn) {
        const uint32_t rank = (rank_ + turn) % control_.size;  // start at different ranks, to spread the traffic
        const StepRange range(layout.bytes[rank], i, chunk);
        copy(recv + layout.begin[rank] + range.begin, control_.published(rank, step_), range.length);
    }
}

void Collectives::allreduce(const std::byte* send, std::byte* recv, size_t count, size_t itemsize, ElementType element,
                            ReduceOp op, uint64_t call_hash) {
    Gil gil;
    const size_t bytes = count * itemsize;
    if (bytes > kKeepGilBytes) gil.release();
    if (bytes <= std::min(kFoldWholeBytes, control_.buffer_bytes) || control_.size == 1)
        return reduce_whole(send, recv, count, itemsize, element, op, call_hash, gil);
    reduce_sliced(send, recv, count, itemsize, element, op, call_hash, gil);
}

// Small payloads: publish, barrier, and every rank folds everything in rank order.
void Collectives::reduce_whole(const std::byte* send, std::byte* recv, size_t count, size_t itemsize,
                               ElementType element, ReduceOp op, uint64_t hash, Gil& gil) {
    if (control_.size > 1) copy_cached(control_.published(rank_, step_), send, count * itemsize);
    barrier_.arrive_and_wait(hash, gil);
    const void* inputs[kMaxRanks];
    for (uint32_t rank = 0; rank < control_.size; ++rank)
        // Not `send`, even for this rank: if it is in a shared region, another rank may already have written there.
        inputs[rank] = control_.size == 1 ? send : control_.published(rank, step_);
    fold(element, op, inputs, control_.size, recv, count);
    ++step_;
}

// Large payloads: every rank folds its own slice of each chunk, in rank order, and shares the result. Three chunks are
// under way at once, one barrier a turn: publish chunk i, fold chunk i - 1, copy out chunk i - 2. Two halves for folded
// results are enough for three chunks: a half is written again two turns later, after a barrier that no rank reaches
// before it has copied out.
void Collectives::reduce_sliced(const std::byte* send, std::byte* recv, size_t count, size_t itemsize,
                                ElementType element, ReduceOp op, uint64_t hash, Gil& gil) {
    const uint32_t size = control_.size;
    const size_t line = std::max<size_t>(1, kLine / itemsize);  // elements; slices start on cache lines
    const size_t room =
        (std::min(control_.buffer_bytes, kChunkBytes) - kLine) / itemsize / size;  // elements of a slice
    const size_t slice = room >= line ? room / line * line : room;  // with very many ranks, not even a line each
    const size_t chunk = slice * size;
    const size_t chunks = (count + chunk - 1) / chunk;
    const WindowWriter write(*this, CopyTuner::Kind::reduce, count * itemsize);
    const auto copy = copier_for(count * itemsize);
    // Elements of the slice that `rank` folds in chunk i, relative to the whole array.
    auto bounds = [&](size_t i, uint32_t rank) {
        const size_t begin = std::min(count, i * chunk + rank * slice);
        const size_t end = std::min(count, i * chunk + (rank + 1) * slice);
        return std::pair(begin, end - begin);
    };
    const void* inputs[kMaxRanks];
    for (size_t turn = 0; turn < chunks + 2; ++turn) {
        if (turn >= 2) {
            const size_t i = turn - 2;
            for (uint32_t step = 1; step < size; ++step) {
                const uint32_t rank = (rank_ + step) % size;
                const auto [begin, length] = bounds(i, rank);
                copy(recv + begin * itemsize, control_.folded(rank, step_ + i), length * itemsize);
            }
        }
        if (turn >= 1 && turn - 1 < chunks) {
            const size_t i = turn - 1;
            const auto [begin, length] = bounds(i, rank_);
            const size_t offset = rank_ * slice * itemsize;
            for (uint32_t rank = 0; rank < size; ++rank)
                inputs[rank] = rank == rank_ ? send + begin * itemsize : control_.published(rank, step_ + i) + offset;
            std::byte* shared = control_.folded(rank_, step_ + i);
            std::byte* mine = recv + begin * itemsize;
            // The first copy is made by the fold itself, where it stays in the cache.
            fold(element, op, inputs, size, write.is_streaming() ? mine : shared, length);
            if (write.is_streaming()) write(shared, mine, length * itemsize);
            else copy(mine, shared, length * itemsize);
        }
        if (turn < chunks) {
            // The own slice is not needed by anybody else.
            for (uint32_t rank = 0; rank < size; ++rank) {
                if (rank == rank_) continue;
                const auto [begin, length] = bounds(turn, rank);
                write(control_.published(rank_, step_ + turn) + rank * slice * itemsize, send + begin * itemsize,
                      length * itemsize);
            }
        }
        if (turn <= chunks) barrier_.arrive_and_wait(hash, gil);
    }
    // One step for each barrier, also for the last one, before which nothing was published: the next call then
    // alternates buffers as after any other (see the head of shm_collectives.hpp).
    step_ += chunks + 1;
}

}  // namespace cobre::shm

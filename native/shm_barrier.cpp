#include "shm_barrier.hpp"

#include <sched.h>
#include <time.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <climits>
#include <utility>

#include "process.hpp"
#include "shm_liveness.hpp"

namespace cobre::shm {
namespace {

constexpr int64_t kSliceNs = 50'000'000;  // between two checks of a sleeper for Ctrl-C, timeouts and lost peers
constexpr int64_t kYieldNs = 5'000'000;   // then sleep: lost peers are not noticed while yielding
constexpr uint64_t kHashMask = (uint64_t{1} << 48) - 1;

// A generation as a number that is never 0, which stands for "none"; the counter wraps after 2^32 barriers.
uint64_t nonzero_generation(uint32_t generation) { return uint64_t{generation} + 1; }

timespec to_timespec(int64_t nanoseconds) { return {nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000}; }

}  // namespace

SpinPolicy spin_policy_for(uint32_t ranks, uint32_t cores) {
    // Ranks that share out work finish some hundred microseconds apart: half a millisecond of spinning spares most of
    // them a sleep, which costs both the sleeper and its waker 20 to 50 us.
    if (ranks <= cores) return {.spins = 200, .yields = 1000, .spins_per_yield = 20, .max_yield_ns = kYieldNs};
    return {.spins = 20, .yields = 60, .spins_per_yield = 0, .max_yield_ns = kYieldNs};
}

Barrier::Barrier(Control control, BarrierConfig config, std::function<bool(uint32_t)> is_dead, OnWait on_wait)
    : control_(control),
      config_(std::move(config)),
      failures_(control, config_.rank, config_.world_ranks),
      is_dead_(std::move(is_dead)),
      on_wait_(std::move(on_wait)) {}

void Barrier::arrive_and_wait(uint64_t call_hash, Gil& gil) {
    if (has_failed()) failures_.throw_recorded();
    // relaxed: the generation cannot change before this rank has arrived
    const uint32_t generation = control_.generation->value.load(std::memory_order_relaxed);
    if (!arrive(call_hash & kHashMask, generation)) wait_until_open(generation, gil);
    // relaxed: the acquire on the generation made it visible
    if (control_.generation->mismatch.load(std::memory_order_relaxed) == nonzero_generation(generation)) [[unlikely]]
        failures_.throw_mismatch();
}

// True for the last rank to arrive, which opens the barrier.
bool Barrier::arrive(uint64_t call_hash, uint32_t generation) {
    Arrival& arrival = *control_.arrival;
    own_slot().arrived.store(generation + 1, std::memory_order_relaxed);  // ordered by the exchange below
    uint64_t seen = arrival.word.load(std::memory_order_relaxed);         // relaxed: the exchange below checks it
    for (;;) {
        const uint64_t count = seen >> 48;
        if (count > 0 && (seen & kHashMask) != call_hash)
            control_.generation->mismatch.store(nonzero_generation(generation),
                                                std::memory_order_relaxed);  // published by the release below
        if (count + 1 == control_.size) break;
        const uint64_t first = count > 0 ? seen & kHashMask : call_hash;
        // acq_rel: what this rank wrote is handed to the last one to arrive, which hands everything on
        if (arrival.word.compare_exchange_weak(seen, ((count + 1) << 48) | first, std::memory_order_acq_rel,
                                               std::memory_order_relaxed))
            return false;
    }
    // acquire: all others' writes happened before their exchange. A second load and not a fence, which thread
    // sanitizers do not model; it returns the same value, because no rank touches the word until the generation moves
    (void)arrival.word.load(std::memory_order_acquire);
    arrival.word.store(0, std::memory_order_relaxed);  // published by the exchange below
    // seq_cst: this store and the load of `sleepers` must not be reordered (Dekker's pattern with sleep_slice), or a
    // sleeper could be missed
    control_.generation->value.exchange(generation + 1, std::memory_order_seq_cst);
    if (arrival.sleepers.load(std::memory_order_seq_cst) != 0) wake_all();
    return true;
}

void Barrier::wait_until_open(uint32_t generation, Gil& gil) {
    const auto is_open = [&] { return is_open_acquire(generation); };
    if (!spin_until(spin_policy_, is_open, [&] { gil.release(); })) sleep_until_open(generation, gil);
}

void Barrier::sleep_until_open(uint32_t generation, Gil& gil) {
    const int64_t since = now_ns();
    const int64_t limit = timeout_override_ns_ ? timeout_override_ns_ : config_.operation_timeout_ns;
    int64_t next_report = since + config_.progress_ns;
    int64_t next_signal_check = since + kSliceNs;
    while (!is_open_acquire(generation)) {
        check_peers(generation, since, limit);
        if (const int64_t now = now_ns(); now >= next_signal_check) {
            next_signal_check = now + kSliceNs;
            gil.check_signals();
            if (now >= next_report) report_wait(generation, since, next_report);
            gil.release();
        }
        sleep_slice(generation);
    }
}

void Barrier::sleep_slice(uint32_t generation) {
    // seq_cst here and in is_open_seq_cst(): the count is written before the generation is read, see arrive()
    control_.arrival->sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (!is_open_seq_cst(generation) && !has_failed())
        config_.condvar ? sleep_on_condition(generation) : sleep_on_futex(generation);
    control_.arrival->sleepers.fetch_sub(1, std::memory_order_relaxed);  // relaxed: a needless wake-up is harmless
}

void Barrier::sleep_on_futex(uint32_t generation) {
#ifdef __linux__
    const timespec slice = to_timespec(kSliceNs);
    // Not the private kind: the waker is another process.
    syscall(SYS_futex, &control_.generation->value, FUTEX_WAIT, generation, &slice, nullptr, 0);
#else
    sleep_on_condition(generation);
#endif
}

// The waker clears `sleeping` and signals at most once, so a rank that died in here is never signalled twice: with
// glibc's condition variables the second signaller would wait for the dead one forever.
void Barrier::sleep_on_condition(uint32_t generation) {
    RankSlot& slot = own_slot();
    timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    const int64_t at = int64_t{deadline.tv_sec} * 1'000'000'000 + deadline.tv_nsec + kSliceNs;
    deadline = to_timespec(at);
    if (pthread_mutex_lock(&slot.mutex) == EOWNERDEAD) pthread_mutex_consistent(&slot.mutex);
    slot.sleeping.store(1, std::memory_order_seq_cst);  // seq_cst: before the look at the generation, as with the futex
    while (slot.sleeping.load(std::memory_order_seq_cst) && !is_open_seq_cst(generation) && !has_failed())
        if (pthread_cond_timedwait(&slot.condition, &slot.mutex, &deadline) != 0) break;
    slot.sleeping.store(0, std::memory_order_relaxed);  // relaxed: under the mutex
    pthread_mutex_unlock(&slot.mutex);
}

void Barrier::wake_all() {
    if (!config_.condvar) {
#ifdef __linux__
        syscall(SYS_futex, &control_.generation->value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
        return;
#endif
    }
    for (uint32_t rank = 0; rank < control_.size; ++rank) {
        RankSlot& slot = control_.slots[rank];
        // seq_cst: after the generation has moved, as with `sleepers`
        if (slot.sleeping.exchange(0, std::memory_order_seq_cst) == 0) continue;
        if (pthread_mutex_lock(&slot.mutex) == EOWNERDEAD) pthread_mutex_consistent(&slot.mutex);
        pthread_cond_signal(&slot.condition);
        pthread_mutex_unlock(&slot.mutex);
    }
}

std::vector<uint32_t> Barrier::missing(uint32_t generation) const {
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < control_.size; ++rank)
        // relaxed: at worst a rank that has just arrived is named as missing once more
        if (control_.slots[rank].arrived.load(std::memory_order_relaxed) != generation + 1) ranks.push_back(rank);
    return ranks;
}

// Decide whether to go on waiting. A rank that died or left before the barrier opened is a reason to stop, even when it
// had arrived: it may be the one that should have opened it. A silent rank is one only if it has not arrived.
void Barrier::check_peers(uint32_t generation, int64_t since_ns, int64_t limit_ns) {
    const int64_t now = now_ns();
    std::vector<uint32_t> died, left, silent, absent = missing(generation);
    // All have marked their arrival, yet the barrier does not open: one of them stopped between the mark and the count.
    if (absent.empty())
        for (uint32_t rank = 0; rank < control_.size; ++rank) absent.push_back(rank);
    for (uint32_t rank = 0; rank < control_.size; ++rank) {
        // acquire: pairs with the release in leave()
        const auto state = static_cast<RankState>(control_.slots[rank].state.load(std::memory_order_acquire));
        if (state == RankState::absent) continue;
        if (state == RankState::closed || state == RankState::broken) left.push_back(rank);
        else if (is_dead_(rank)) died.push_back(rank);
    }
    for (uint32_t rank : absent)
        if (failures_.has_joined(rank) && failures_.silence_ns(rank, now) > config_.timeout_ns) silent.push_back(rank);
    const bool overdue = limit_ns && now - since_ns > limit_ns;
    if (died.empty() && left.empty() && silent.empty() && !overdue && !has_failed()) return;
    // Looked at again after the checks above: a rank that left or died after this barrier had opened has not failed in
    // it.
    if (is_open_acquire(generation)) return;
    if (!has_failed()) {
        if (!died.empty()) record_failure(Failure::died, died, "");
        else if (!left.empty()) record_failure(Failure::left, left, "");
        else if (!silent.empty()) record_failure(Failure::silent, silent, "");
        else record_failure(Failure::overdue, add_silent(absent, now), format_seconds(now - since_ns));
    }
    failures_.throw_recorded();
}

// Ranks that have not arrived, and those that have but are without a heartbeat: stopped, or dead in another pid
// namespace.
std::vector<uint32_t> Barrier::add_silent(std::vector<uint32_t> absent, int64_t now) const {
    for (uint32_t rank = 0; rank < control_.size; ++rank)
        if (failures_.has_joined(rank) && failures_.silence_ns(rank, now) > kSilentNs &&
            std::find(absent.begin(), absent.end(), rank) == absent.end())
            absent.push_back(rank);
    return absent;
}

void Barrier::report_wait(uint32_t generation, int64_t since_ns, int64_t& next_report_ns) {
    next_report_ns += config_.progress_ns;
    std::vector<std::string> names;
    for (uint32_t rank : missing(generation)) names.push_back(failures_.describe(rank));
    on_wait_(static_cast<double>(now_ns() - since_ns) * 1e-9, names);
}

void Barrier::record_failure(Failure kind, const std::vector<uint32_t>& failed_ranks, const std::string& text) {
    failures_.record(kind, failed_ranks, text);
    wake_all();
}

void Barrier::leave(RankState state) {
    // release: who sees the new state also sees open every barrier that this rank has passed, see check_peers()
    own_slot().state.store(static_cast<uint32_t>(state), std::memory_order_release);
    wake_all();
}

}  // namespace cobre::shm

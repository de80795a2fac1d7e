// Ranks as threads over one mapping, so that a thread sanitizer sees what ranks in processes of their own do to shared
// memory: barrier, collectives, failures, and the thread pool. Exits with 1 on a wrong result.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "process.hpp"
#include "shm_barrier.hpp"
#include "shm_collectives.hpp"
#include "shm_layout.hpp"
#include "thread_pool.hpp"

// No interpreter here: nothing to release, and no signal handlers. The real lock would order the ranks by itself.
void cobre::Gil::release() {}
void cobre::Gil::acquire() {}
void cobre::Gil::check_signals() {}

namespace {

using namespace cobre;
using namespace cobre::shm;

constexpr uint32_t kRanks = 4;
constexpr size_t kSlotBytes = 64 * 1024;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "wrong: %s\n", what);
    std::exit(1);
}

struct Waiting {
    const char* name;
    bool condvar;
    SpinPolicy policy;
};

constexpr Waiting kWaits[] = {{"futex, spins", false, {200, 1000, 20, 5'000'000}},
                              {"futex, sleeps", false, {}},
                              {"condition variable, spins", true, {200, 1000, 20, 5'000'000}},
                              {"condition variable, sleeps", true, {}}};

// A segment in private memory, with the parts of initialise() that need no processes.
class TestSegment {
public:
    TestSegment() : bytes_(Control::total_bytes(kRanks, kSlotBytes)) {
        void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        require(memory != MAP_FAILED, "mmap");
        control = Control::at(static_cast<std::byte*>(memory), kRanks, kSlotBytes);
        for (uint32_t rank = 0; rank < kRanks; ++rank) {
            RankSlot& slot = control.slots[rank];
            pthread_mutex_init(&slot.mutex, nullptr);
            pthread_condattr_t attributes;
            pthread_condattr_init(&attributes);
            pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
            pthread_cond_init(&slot.condition, &attributes);
            slot.pid.store(getpid());
            slot.heartbeat_ns.store(now_ns());
            slot.state.store(static_cast<uint32_t>(RankState::joined));
        }
    }
    ~TestSegment() { munmap(control.header, bytes_); }

    Control control;

private:
    size_t bytes_;
};

// Run `body(rank, barrier)` on every rank; what one throws ends the program.
void on_ranks(const Waiting& wait, const std::function<void(uint32_t, Barrier&)>& body) {
    TestSegment segment;
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kRanks; ++rank)
        threads.emplace_back([&, rank] {
            const BarrierConfig config{.rank = rank,
                                       .timeout_ns = 60'000'000'000,
                                       .operation_timeout_ns = 0,
                                       .progress_ns = 30'000'000'000,
                                       .condvar = wait.condvar,
                                       .world_ranks = {}};
            Barrier barrier(segment.control, config, [](uint32_t) { return false; }, [](double, const auto&) {});
            barrier.set_spin_policy(wait.policy);
            body(rank, barrier);
        });
    for (std::thread& thread : threads) thread.join();
}

// Plain memory written before a barrier is read by all ranks after it.
void barrier_publishes(const Waiting& wait) {
    uint64_t numbers[2][kRanks] = {};
    on_ranks(wait, [&](uint32_t rank, Barrier& barrier) {
        for (uint64_t turn = 0; turn < 500; ++turn) {
            numbers[turn % 2][rank] = turn * kRanks + rank;
            Gil gil;
            barrier.arrive_and_wait(turn, gil);
            for (uint32_t other = 0; other < kRanks; ++other)
                require(numbers[turn % 2][other] == turn * kRanks + other, "a number after the barrier");
        }
    });
}

// Payloads around the limits: nothing, one element, several slots; every collective.
void collectives_agree(const Waiting& wait) {
    on_ranks(wait, [&](uint32_t rank, Barrier& barrier) {
        Collectives collectives(barrier, rank);
        for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}, kSlotBytes / 8 * 3 + 5}) {
            std::vector<double> send(count, 1.0 + rank), sum(count), gathered(count * kRanks, -1.0), parts(count);
            const auto bytes = [](std::vector<double>& numbers) {
                return reinterpret_cast<std::byte*>(numbers.data());
            };
            collectives.allreduce(bytes(send), bytes(sum), count, 8, ElementType::float64, ReduceOp::sum, count);
            for (const double number : sum) require(number == kRanks * (kRanks + 1) / 2.0, "a sum");
            std::vector<size_t> lengths(kRanks, count * 8), starts(kRanks);
            for (uint32_t other = 0; other < kRanks; ++other) starts[other] = other * count * 8;
            const GatherLayout layout{lengths, starts, count * 8, count * 8 * kRanks};
            collectives.allgatherv(bytes(send), bytes(gathered), layout, 0, count);
            for (size_t at = 0; at < gathered.size(); ++at)
                require(gathered[at] == 1.0 + static_cast<double>(at / count), "a gathered number");
            collectives.broadcast(bytes(send), count * 8, kRanks - 1, count);
            for (const double number : send) require(number == kRanks, "a broadcast number");
            if (rank == 1) parts.assign(count, 7.0);
            const std::vector<size_t> halves{count / 2 * 8, (count - count / 2) * 8}, places{0, count / 2 * 8};
            collectives.broadcast_parts(bytes(parts), {halves, places, 0, count * 8}, 1, 0, count);
            for (const double number : parts) require(number == 7.0, "a number of a part");
        }
    });
}

// One rank gives up while the others wait: all of them learn it, with its text.
void failure_reaches_all(const Waiting& wait) {
    std::atomic<uint32_t> told{0};
    on_ranks(wait, [&](uint32_t rank, Barrier& barrier) {
        Gil gil;
        if (rank == 2) {
            usleep(2000);
            barrier.record_failure(Failure::aborted, {rank}, "enough");
            return;
        }
        try {
            barrier.arrive_and_wait(0, gil);
        } catch (const CollectiveFailure& failure) {
            require(failure.kind == Failure::aborted && failure.text == "enough", "a failure's kind and text");
            require(failure.failed_ranks.size() == 1 && failure.failed_ranks[0].rank == 2, "the rank that failed");
            told.fetch_add(1);
        }
    });
    require(told.load() == kRanks - 1, "the number of ranks that learned of a failure");
}

// Ranks that make different calls all see it.
void mismatch_reaches_all(const Waiting& wait) {
    std::atomic<uint32_t> told{0};
    on_ranks(wait, [&](uint32_t rank, Barrier& barrier) {
        Gil gil;
        try {
            barrier.arrive_and_wait(rank == 3 ? 2 : 1, gil);
        } catch (const CollectiveFailure& failure) {
            require(failure.kind == Failure::mismatch, "a mismatch's kind");
            told.fetch_add(1);
        }
    });
    require(told.load() == kRanks, "the number of ranks that learned of a mismatch");
}

void pool_runs_everything(size_t cores) {
    lp::ThreadPool pool(4, cores);
    std::vector<int32_t> order(100);
    std::iota(order.begin(), order.end(), 0);
    for (int turn = 0; turn < 200; ++turn) {
        std::vector<int64_t> results(order.size());
        pool.run(order, [&](size_t, int32_t item) { results[static_cast<size_t>(item)] = item + turn; });
        for (const int32_t item : order) require(results[static_cast<size_t>(item)] == item + turn, "an item's result");
    }
    try {
        pool.run(order, [](size_t, int32_t item) {
            if (item == 30 || item == 70) throw std::runtime_error(std::to_string(item));
        });
        require(false, "an exception of a task");
    } catch (const std::runtime_error& error) {
        require(std::string(error.what()) == "30", "the first failure is thrown");
    }
}

// A call that is told to end: from the thread that asks, while it works and while it waits for the others.
void pool_stops(bool caller_works) {
    lp::ThreadPool pool(3, 3);
    std::vector<int32_t> order(1000);
    std::iota(order.begin(), order.end(), 0);
    std::atomic<int> started{0}, at_work{0};
    StopSignal stop;
    stop.begin([] { throw std::runtime_error("enough"); });
    pool.run(
        order,
        [&](size_t thread, int32_t) {
            started.fetch_add(1);
            const StopPoint point{&stop, thread == 0};
            if (thread == 0 && !caller_works) {
                while (at_work.load() == 0) sched_yield();
                return;
            }
            at_work.fetch_add(1);
            for (;;) point.pass();  // forever, unless it is told to end
        },
        nullptr, &stop);
    require(stop.is_set(), "the answer is known to all");
    require(started.load() <= static_cast<int>(order.size()), "an item is started once");
    try {
        stop.rethrow();
        require(false, "an answer");
    } catch (const std::runtime_error& error) {
        require(std::string(error.what()) == "enough", "the answer of the caller");
    }
    std::vector<int> runs(order.size());
    stop.begin(nullptr);
    pool.run(order, [&](size_t, int32_t item) { ++runs[static_cast<size_t>(item)]; }, nullptr, &stop);
    for (const int count : runs) require(count == 1, "the next call runs everything");
}

// Two pools that take from one counter run each item once.
void pools_share_a_counter() {
    lp::WorkCounter counter{0};
    std::vector<int32_t> order(1000);
    std::iota(order.begin(), order.end(), 0);
    std::vector<int> runs(order.size());
    const auto take = [&] {
        lp::ThreadPool pool(2, 2);
        pool.run(order, [&](size_t, int32_t item) { ++runs[static_cast<size_t>(item)]; }, &counter);
    };
    std::thread other(take);
    take();
    other.join();
    for (const int count : runs) require(count == 1, "an item is run once");
}

}  // namespace

int main() {
    for (const Waiting& wait : kWaits) {
        barrier_publishes(wait);
        collectives_agree(wait);
        failure_reaches_all(wait);
        mismatch_reaches_all(wait);
        std::printf("ranks as threads, %s: as expected\n", wait.name);
    }
    for (const size_t cores : {1, 4}) pool_runs_everything(cores);
    pools_share_a_counter();
    for (const bool caller_works : {true, false}) pool_stops(caller_works);
    std::printf("thread pool: as expected\n");
}

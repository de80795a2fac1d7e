// The shared-memory transport in a program without Python: ranks as threads over one segment, which sanitizers can
// follow, and ranks as processes that meet by name, of which one dies. Exits with 1 on a wrong result.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "shm_transport.hpp"

// No interpreter here: nothing to release, and no signal handlers.
void cobre::Gil::release() {}
void cobre::Gil::acquire() {}
void cobre::Gil::check_signals() {}

namespace {

using namespace cobre;
using namespace cobre::shm;

constexpr uint32_t kRanks = 3;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "wrong: %s\n", what);
    std::_Exit(1);
}

// Numbers the calls of one rank, as a communicator does.
class TestCalls : public CallSource {
public:
    CurrentCall current_call() const override { return call_; }
    void next(Operation operation, std::string_view label = "") { call_ = {call_.sequence + 1, operation, label}; }

private:
    CurrentCall call_;
};

TypedMemory memory_of(std::vector<double>& numbers) {
    return {.data = reinterpret_cast<std::byte*>(numbers.data()),
            .count = numbers.size(),
            .itemsize = sizeof(double),
            .dtype = static_cast<uint32_t>(ElementType::float64),
            .element = ElementType::float64};
}

TransportConfig config_of(uint32_t rank) {
    return {.rank = rank,
            .size = kRanks,
            .timeout_s = 60,
            .connect_timeout_s = 60,
            .world_ranks = {},
            .in_memory = true,
            .progress_s = 30};
}

// Every collective once, with payloads that fit into the window at once and such that do not.
void run_collectives(Transport& transport, TestCalls& calls, uint32_t rank) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}, size_t{300'000}}) {
        std::vector<double> send(count, 1.0 + rank), sum(count), gathered(count * kRanks + 1, -1.0), parts(count);
        calls.next(Operation::allreduce, "sums");
        transport.allreduce(memory_of(send), memory_of(sum), ReduceOp::sum);
        for (const double number : sum) require(number == kRanks * (kRanks + 1) / 2.0, "a sum");
        calls.next(Operation::allgatherv);
        std::vector<size_t> starts(kRanks);
        for (uint32_t other = 0; other < kRanks; ++other) starts[other] = 1 + (kRanks - 1 - other) * count;
        transport.allgatherv(memory_of(send), memory_of(gathered), std::vector<size_t>(kRanks, count), starts);
        require(gathered[0] == -1.0, "the gap of a gather");
        for (uint32_t other = 0; other < kRanks; ++other)
            for (size_t at = 0; at < count; ++at)
                require(gathered[starts[other] + at] == 1.0 + other, "a gathered number");
        calls.next(Operation::broadcast);
        transport.broadcast(memory_of(send), kRanks - 1);
        for (const double number : send) require(number == kRanks, "a broadcast number");
        if (rank == 1) parts.assign(count, 7.0);
        calls.next(Operation::broadcast);
        transport.broadcast_parts(memory_of(parts), {count / 2, count - count / 2}, {0, count / 2}, 1);
        for (const double number : parts) require(number == 7.0, "a number of a part");
    }
    calls.next(Operation::create_shared_region);
    const std::shared_ptr<Region> region = transport.create_region(kRanks * sizeof(uint64_t), 0);
    auto* shared = reinterpret_cast<uint64_t*>(region->mapping->data());
    shared[rank] = 100 + rank;
    calls.next(Operation::fence);
    transport.fence(*region);
    for (uint32_t other = 0; other < kRanks; ++other) require(shared[other] == 100 + other, "a region after a fence");
    calls.next(Operation::barrier);
    transport.barrier();
}

void ranks_as_threads() {
    Segment segment = Segment::create_in_memory(segment_bytes(config_of(0)), 0);
    initialise(segment.map(Control::fixed_bytes(kRanks), false)->data(), config_of(0));
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kRanks; ++rank)
        threads.emplace_back([&segment, rank] {
            TestCalls calls;
            Transport transport(segment, config_of(rank), calls, nullptr);
            transport.wait_for_all();
            run_collectives(transport, calls, rank);
            calls.next(Operation::barrier);
            transport.barrier();  // all have done: closing early would be a failure of the others
            transport.close();
        });
    for (std::thread& thread : threads) thread.join();
    std::printf("ranks as threads: as expected\n");
}

// Run `body(rank, transport, calls)` in a process for each rank; they meet by the name of a world.
void in_processes(const char* what, const std::function<void(uint32_t, Transport&, TestCalls&)>& body,
                  int expected_of_last) {
    const std::string name = "/cobre-native-" + std::to_string(getpid()) + "-" + what;
    std::vector<pid_t> children;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
        const pid_t child = fork();
        require(child >= 0, "fork");
        if (child == 0) {
            TransportConfig config = config_of(rank);
            config.name = name;
            config.in_memory = false;
            TestCalls calls;
            Transport transport(config, calls, nullptr);
            body(rank, transport, calls);
            transport.close();
            std::_Exit(0);
        }
        children.push_back(child);
    }
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
        int status = 0;
        require(waitpid(children[rank], &status, 0) == children[rank], "waitpid");
        require(status == (rank == kRanks - 1 ? expected_of_last : 0), "the exit status of a rank");
    }
    std::printf("ranks as processes, %s: as expected\n", what);
}

void survivors_name_the_dead(uint32_t rank, Transport& transport, TestCalls& calls) {
    calls.next(Operation::barrier);
    transport.barrier();
    if (rank == kRanks - 1) raise(SIGKILL);
    calls.next(Operation::allreduce);
    std::vector<double> numbers(10, 1.0), sum(10);
    try {
        transport.allreduce(memory_of(numbers), memory_of(sum), ReduceOp::sum);
        require(false, "a call without all ranks fails");
    } catch (const CollectiveFailure& failure) {
        require(failure.failed_ranks.size() == 1 && failure.failed_ranks[0].rank == kRanks - 1, "the rank that died");
    }
}

void disagreement_reaches_all(uint32_t rank, Transport& transport, TestCalls& calls) {
    std::vector<double> numbers(rank == 1 ? 4 : 3, 1.0), sum(numbers.size());
    calls.next(Operation::allreduce);
    try {
        transport.allreduce(memory_of(numbers), memory_of(sum), ReduceOp::sum);
        require(false, "calls that disagree fail");
    } catch (const CollectiveFailure& failure) {
        require(failure.kind == Failure::mismatch, "the kind of a disagreement");
        require(failure.text.find("rank 1: ") != std::string::npos, "the text of a disagreement names both sides");
    }
}

}  // namespace

int main() {
    in_processes(
        "collectives",
        [](uint32_t rank, Transport& transport, TestCalls& calls) {
            run_collectives(transport, calls, rank);
            calls.next(Operation::barrier);
            transport.barrier();
        },
        0);
    in_processes("death", survivors_name_the_dead, SIGKILL);
    in_processes("disagreement", disagreement_reaches_all, 0);
    ranks_as_threads();
}

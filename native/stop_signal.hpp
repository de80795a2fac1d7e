// How a call that may last for minutes ends early. The thread that made the call asks its caller now and then whether
// to go on; the other threads of the call see the answer in a flag. Nobody waits for anybody, and what the call has
// computed so far is dropped: a result is whole or there is none.
#pragma once

#include <ctime>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

namespace cobre {

// Thrown inside a call to unwind it; the engine turns it into the exception that the caller's answer was.
struct Stopped {};

class StopSignal {
public:
    // Callers of the solver are promised a tenth of a second.
    static constexpr int64_t kIntervalNs = 50'000'000;
    using Ask = std::function<void()>;  // throws to end the call

    // Begin a call, before other threads take part in it. ask: null if nobody will want it to end.
    void begin(Ask ask) {
        ask_ = std::move(ask);
        asked_ns_ = coarse_ns();
        answer_ = nullptr;
        is_set_.store(false, std::memory_order_relaxed);  // relaxed: published with the job that the threads get
    }

    // relaxed: only a flag; a thread that sees it late does a little more work that nobody looks at
    bool is_set() const { return is_set_.load(std::memory_order_relaxed); }

    // Ask if an interval has passed since the last time; only on the thread that made the call. Whether to stop.
    bool ask_when_due() noexcept {
        if (is_set()) return true;
        if (coarse_ns() - asked_ns_ < kIntervalNs) return false;
        try {
            if (ask_) ask_();
        } catch (...) {
            answer_ = std::current_exception();
            is_set_.store(true, std::memory_order_relaxed);  // as above: `answer_` is read on this thread only
        }
        asked_ns_ = coarse_ns();  // anew: asking may have waited for the GIL
        return is_set();
    }

    // Throw the answer that set the flag, if it is set; on the thread that made the call, once all others have left it.
    void rethrow() {
        if (answer_) std::rethrow_exception(std::exchange(answer_, nullptr));  // not kept: it refers to Python frames
    }

private:
    // Read at every pivot: the coarse clock costs a fifth of the precise one, and its ticks of some milliseconds do.
    static int64_t coarse_ns() {
        timespec time;
#if defined(CLOCK_MONOTONIC_COARSE)
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
#else
        clock_gettime(CLOCK_MONOTONIC, &time);
#endif
        return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
    }

    Ask ask_;
    int64_t asked_ns_ = 0;
    std::exception_ptr answer_;
    std::atomic<bool> is_set_{false};
};

// One thread's view of a signal; to be looked at every few milliseconds. asks: on the thread that makes the calls.
struct StopPoint {
    StopSignal* signal;
    bool asks;

    bool is_reached() const noexcept { return asks ? signal->ask_when_due() : signal->is_set(); }
    void pass() const {
        if (is_reached()) throw Stopped{};
    }
};

}  // namespace cobre

// Waiting for another core: spin, then yield between spins, then let the caller sleep.
//
// Waking a sleeping core costs both sides 15 to 50 us, so a wait that is likely to be short should not sleep. But with
// fewer cores than runnable threads, the one we wait for may need the very core that we burn.
#pragma once

#include <sched.h>

#include <cstdint>
#include <limits>

#include "process.hpp"

namespace cobre {

// Tell the core that this is a spin loop: it saves power, and lets the sibling hardware thread run.
inline void pause_core() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// How long to wait before the caller sleeps: `spins` turns without a yield, then at most `yields` yields with
// `spins_per_yield` turns after each, for at most `max_yield_ns` nanoseconds altogether, because a single yield may
// last a whole time slice of another process.
struct SpinPolicy {
    uint32_t spins = 0;
    uint32_t yields = 0;
    uint32_t spins_per_yield = 0;
    int64_t max_yield_ns = 0;
};

// Spin until `ready()` holds; false when it does not within the policy. `before_yield` is called once, after the first
// spins: the place to release a lock that is cheap to hold for a moment only.
template <typename Ready, typename BeforeYield>
bool spin_until(const SpinPolicy& policy, Ready ready, BeforeYield before_yield) {
    for (uint32_t turn = 0; turn < policy.spins; ++turn) {
        if (ready()) return true;
        pause_core();
    }
    before_yield();
    // Even with a core for each thread the scheduler may have put two on one: never spin long without a yield.
    const int64_t deadline_ns = policy.yields ? now_ns() + policy.max_yield_ns : 0;
    for (uint32_t turn = 0; turn < policy.yields && now_ns() < deadline_ns; ++turn) {
        sched_yield();
        for (uint32_t spin = 0; spin <= policy.spins_per_yield; ++spin) {
            if (ready()) return true;
            pause_core();
        }
    }
    return ready();
}

}  // namespace cobre

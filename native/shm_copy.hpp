// Copies between private memory and the shared window, through the cache or past it with streaming stores, and what
// learns which of the two to use.
//
// When two ranks share a last-level cache, data written through it reaches the reader fastest. When they do not (other
// core complex, other socket, a virtual machine that was moved), fetching modified lines from the other cache is slower
// than reading memory. Which of the two holds can change while a program runs, so it is measured, not assumed. Results
// never depend on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cobre::shm {

// For memory that is read again soon: keep it in the cache.
void copy_cached(void* to, const void* from, size_t bytes);

// For memory that no core reads soon: streaming stores past the cache, when the copy is long enough to gain from them.
void copy_streaming(void* to, const void* from, size_t bytes);

// The choice for one operation and one range of sizes. A trial of the alternative takes two calls, of which the second
// is timed: other ranks may see the new choice one call late.
class CopyChoice {
public:
    void assume(bool streaming) { best_ = streaming; }

    bool next() {
        if (trial_ == 0 && is_trial_due()) trial_ = kTrialCalls;
        return trial_ > 0 ? !best_ : best_;
    }

    void learn(double cost) {
        ++age_;
        if (trial_ > 1) {
            --trial_;
        } else if (trial_ == 1) {
            trial_ = age_ = 0;
            alternative_known_ = true;
            if (cost < kClearlyBetter * cost_) {
                best_ = !best_;
                cost_ = cost;
            }
            cost_when_chosen_ = cost_;
        } else {
            cost_ = cost_ == 0 ? cost : cost_ + (cost - cost_) / 4;
        }
    }

private:
    bool is_trial_due() const {
        if (!alternative_known_) return cost_ > 0;
        return age_ >= kTrialInterval || (age_ >= kTrialIntervalIfSlower && cost_ > kMuchSlower * cost_when_chosen_);
    }

    // Calls from one trial to the next: fewer once the present choice costs kMuchSlower times what it did when chosen.
    static constexpr uint32_t kTrialInterval = 40;
    static constexpr uint32_t kTrialIntervalIfSlower = 8;
    static constexpr uint32_t kTrialCalls = 2;
    static constexpr double kMuchSlower = 1.4;     // ratio of costs
    static constexpr double kClearlyBetter = 0.9;  // ratio of costs; a smaller gain is noise, and nothing changes
    bool best_ = false;                            // true: past the cache
    bool alternative_known_ = false;
    uint32_t trial_ = 0;
    uint32_t age_ = 0;
    double cost_ = 0;  // ticks per byte, of the present choice; 0: unknown
    double cost_when_chosen_ = 0;
};

// Rank 0 measures and decides; the others follow what it last wrote into the segment.
class CopyTuner {
public:
    enum class Kind : uint32_t { gather, broadcast, reduce };
    static constexpr size_t kSmallest = 128 * 1024;  // below, always through the cache

    // Until it is known better: what no cache can hold goes past it.
    CopyTuner() {
        for (uint32_t kind = 0; kind < 3; ++kind)
            for (uint32_t size_class = 2; size_class < 4; ++size_class) choices_[kind * 4 + size_class].assume(true);
    }

    // The bit of the shared word that belongs to this operation and size.
    static uint32_t index_of(Kind kind, size_t bytes) {
        const uint32_t size_class = bytes < (1u << 20) ? 0 : bytes < (8u << 20) ? 1 : bytes < (64u << 20) ? 2 : 3;
        return static_cast<uint32_t>(kind) * 4 + size_class;
    }
    CopyChoice& choice(uint32_t index) { return choices_[index]; }

private:
    std::array<CopyChoice, 12> choices_;
};

}  // namespace cobre::shm

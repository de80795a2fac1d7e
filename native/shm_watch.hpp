// A thread that shows this rank alive and notices when another rank's process ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "shm_layout.hpp"

namespace cobre::shm {

// It never takes the GIL, so a rank that computes keeps giving signs of life; a stopped process does not.
class Watch {
public:
    // on_death is called from the thread, after dead(rank) has become true.
    Watch(Control control, uint32_t rank, int64_t heartbeat_ns, std::function<void()> on_death);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    bool dead(uint32_t rank) const { return dead_[rank].load(std::memory_order_acquire); }
    void start();
    void stop();

private:
    struct Sibling {
        uint32_t rank;
        int pid;
        uint64_t start;
        int descriptor;  // pidfd, or -1 where the kernel has none: then looked up in /proc
    };
    void run();
    void meet();
    void wait_for_events();
    void look_up();
    void mark_dead(const Sibling& sibling);

    Control control_;
    uint32_t rank_;
    int64_t heartbeat_ns_;
    std::function<void()> on_death_;
    std::unique_ptr<std::atomic<bool>[]> dead_;
    std::vector<bool> met_;
    std::vector<Sibling> siblings_;
    uint32_t to_meet_;
    uint64_t namespace_;
    int stop_read_ = -1;
    int stop_write_ = -1;
    std::thread thread_;
};

}  // namespace cobre::shm

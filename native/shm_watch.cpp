#include "shm_watch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "process.hpp"

namespace cobre::shm {
namespace {

constexpr int64_t kMeetingNs = 5'000'000;   // while ranks are still joining
constexpr int64_t kLookUpNs = 20'000'000;   // where death must be looked up
constexpr int64_t kMillisecond = 1'000'000;

int open_pidfd(int pid) {
#ifdef SYS_pidfd_open
    return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));  // always close-on-exec
#else
    errno = ENOSYS;
    return -1;
#endif
}

}  // namespace

Watch::Watch(Control control, uint32_t rank, int64_t heartbeat_ns, std::function<void()> on_death)
    : control_(control),
      rank_(rank),
      heartbeat_ns_(heartbeat_ns),
      on_death_(std::move(on_death)),
      dead_(new std::atomic<bool>[control.size]()),
      met_(control.size, false),
      to_meet_(control.size - 1),
      namespace_(pid_namespace()) {
    met_[rank] = true;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
    stop_read_ = ends[0];
    stop_write_ = ends[1];
}

Watch::~Watch() {
    stop();
    for (const Sibling& sibling : siblings_)
        if (sibling.descriptor >= 0) close(sibling.descriptor);
    close(stop_read_);
    close(stop_write_);
}

void Watch::start() {
    // Signals belong to Python's threads: block all of them in this one, from its first instruction.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        thread_ = std::thread([this] { run(); });
    } catch (...) {  // no more threads allowed here
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Watch::stop() {
    if (!thread_.joinable()) return;
    const char byte = 0;
    [[maybe_unused]] const ssize_t written = write(stop_write_, &byte, 1);
    thread_.join();
}

void Watch::run() {
    for (;;) {
        control_.slots[rank_].heartbeat_ns.store(now_ns(), std::memory_order_relaxed);  // only compared with a clock
        if (to_meet_ > 0) meet();
        look_up();
        wait_for_events();
        char byte;
        if (read(stop_read_, &byte, 1) == 1) return;
    }
}

// Take note of ranks that have joined since the last look.
void Watch::meet() {
    for (uint32_t rank = 0; rank < control_.size; ++rank) {
        const RankSlot& slot = control_.slots[rank];
        // acquire: pid, start and namespace were written before
        if (met_[rank] || static_cast<Life>(slot.life.load(std::memory_order_acquire)) == Life::absent) continue;
        met_[rank] = true;
        --to_meet_;
        if (slot.pid_namespace.load(std::memory_order_relaxed) != namespace_) continue;  // its pid says nothing here
        Sibling sibling{rank, slot.pid.load(std::memory_order_relaxed), slot.start.load(std::memory_order_relaxed), -1};
        sibling.descriptor = open_pidfd(sibling.pid);
        // Between its joining and our opening the process may have gone, and its pid to another one.
        if (process_start(sibling.pid) != sibling.start) {
            mark_dead(sibling);
            if (sibling.descriptor >= 0) close(sibling.descriptor);
        } else {
            siblings_.push_back(sibling);
        }
    }
}

void Watch::wait_for_events() {
    std::vector<pollfd> polled{{stop_read_, POLLIN, 0}};
    bool by_look = false;
    for (const Sibling& sibling : siblings_) {
        polled.push_back({sibling.descriptor, POLLIN, 0});  // poll ignores -1
        by_look |= sibling.descriptor < 0;
    }
    int64_t pause = heartbeat_ns_;
    if (by_look) pause = std::min(pause, kLookUpNs);
    if (to_meet_ > 0) pause = std::min(pause, kMeetingNs);
    if (poll(polled.data(), polled.size(), static_cast<int>(std::max(pause / kMillisecond, int64_t{1}))) <= 0) return;
    for (size_t i = polled.size() - 1; i > 0; --i) {
        if (!(polled[i].revents & (POLLIN | POLLHUP))) continue;
        mark_dead(siblings_[i - 1]);
        close(siblings_[i - 1].descriptor);
        siblings_.erase(siblings_.begin() + static_cast<ptrdiff_t>(i - 1));
    }
}

void Watch::look_up() {
    for (size_t i = siblings_.size(); i-- > 0;) {
        const Sibling& sibling = siblings_[i];
        if (sibling.descriptor >= 0 || process_start(sibling.pid) == sibling.start) continue;
        mark_dead(sibling);
        siblings_.erase(siblings_.begin() + static_cast<ptrdiff_t>(i));
    }
}

void Watch::mark_dead(const Sibling& sibling) {
    dead_[sibling.rank].store(true, std::memory_order_release);
    on_death_();
}

}  // namespace cobre::shm

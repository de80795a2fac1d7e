#include "shm_liveness.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "process.hpp"

namespace cobre::shm {
namespace {

constexpr int64_t kJoiningNs = 5'000'000;  // between two looks while ranks are still joining
constexpr int64_t kPollNs = 20'000'000;    // between two looks at /proc, if there is no pidfd
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

LivenessMonitor::LivenessMonitor(Control control, uint32_t rank, int64_t heartbeat_ns, std::function<void()> on_death)
    : control_(control),
      rank_(rank),
      heartbeat_ns_(heartbeat_ns),
      on_death_(std::move(on_death)),
      dead_(new std::atomic<bool>[control.size]()),
      is_known_(control.size, false),
      unknown_peers_(control.size - 1),
      namespace_(pid_namespace()) {
    is_known_[rank] = true;
    peers_.reserve(control.size);
    polled_.reserve(control.size + 1);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
    stop_read_ = ends[0];
    stop_write_ = ends[1];
}

LivenessMonitor::~LivenessMonitor() {
    stop();
    for (const Peer& peer : peers_)
        if (peer.descriptor >= 0) close(peer.descriptor);
    close(stop_read_);
    close(stop_write_);
}

void LivenessMonitor::start() {
    thread_ = start_thread([this] { run(); });
}

void LivenessMonitor::stop() {
    if (!thread_.joinable()) return;
    const char byte = 0;
    [[maybe_unused]] const ssize_t written = write(stop_write_, &byte, 1);
    thread_.join();
}

void LivenessMonitor::run() {
    for (;;) {
        control_.slots[rank_].heartbeat_ns.store(now_ns(),
                                                 std::memory_order_relaxed);  // relaxed: only compared with a clock
        if (unknown_peers_ > 0) find_new_peers();
        poll_processes();
        wait_for_events();
        char byte;
        if (read(stop_read_, &byte, 1) == 1) return;
    }
}

// Open a pidfd for each rank that has joined since the last look.
void LivenessMonitor::find_new_peers() {
    for (uint32_t rank = 0; rank < control_.size; ++rank) {
        const RankSlot& slot = control_.slots[rank];
        // acquire: pairs with the release in publish_rank(); pid, start and namespace were written before
        if (is_known_[rank] || static_cast<RankState>(slot.state.load(std::memory_order_acquire)) == RankState::absent)
            continue;
        is_known_[rank] = true;
        --unknown_peers_;
        if (slot.pid_namespace.load(std::memory_order_relaxed) != namespace_) continue;  // its pid says nothing here
        Peer peer{rank, slot.pid.load(std::memory_order_relaxed), slot.start.load(std::memory_order_relaxed), -1};
        peer.descriptor = open_pidfd(peer.pid);
        // Between its joining and our opening the process may have ended, and its pid may belong to another one by now.
        if (process_start(peer.pid) != peer.start) {
            report_death(peer);
            if (peer.descriptor >= 0) close(peer.descriptor);
        } else {
            peers_.push_back(peer);
        }
    }
}

void LivenessMonitor::wait_for_events() {
    polled_.assign(1, {stop_read_, POLLIN, 0});
    bool must_poll = false;
    for (const Peer& peer : peers_) {
        polled_.push_back({peer.descriptor, POLLIN, 0});  // poll ignores -1
        must_poll |= peer.descriptor < 0;
    }
    int64_t pause = heartbeat_ns_;
    if (must_poll) pause = std::min(pause, kPollNs);
    if (unknown_peers_ > 0) pause = std::min(pause, kJoiningNs);
    if (poll(polled_.data(), polled_.size(), static_cast<int>(std::max(pause / kMillisecond, int64_t{1}))) <= 0) return;
    for (size_t i = polled_.size() - 1; i > 0; --i) {
        if (!(polled_[i].revents & (POLLIN | POLLHUP))) continue;
        report_death(peers_[i - 1]);
        close(peers_[i - 1].descriptor);
        peers_.erase(peers_.begin() + static_cast<ptrdiff_t>(i - 1));
    }
}

void LivenessMonitor::poll_processes() {
    for (size_t i = peers_.size(); i-- > 0;) {
        const Peer& peer = peers_[i];
        if (peer.descriptor >= 0 || process_start(peer.pid) == peer.start) continue;
        report_death(peer);
        peers_.erase(peers_.begin() + static_cast<ptrdiff_t>(i));
    }
}

void LivenessMonitor::report_death(const Peer& peer) {
    dead_[peer.rank].store(true, std::memory_order_release);  // release: before the wake-up that makes others look
    on_death_();
}

}  // namespace cobre::shm

#include "process.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace cobre {
namespace {

std::atomic<uint64_t> fork_count{0};

// Registered once, when the library is loaded: getpid() on every call would cost a system call each.
const int registered = pthread_atfork(nullptr, nullptr, [] {
    fork_count.fetch_add(1, std::memory_order_relaxed);  // relaxed: only the child's single thread runs here
});

// The first kilobyte of a file, nothing if it cannot be read. Not a stream: a process may end while its file is read,
// which a stream reports by an exception.
std::string read_file(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return "";
    char text[1024];
    const ssize_t length = read(descriptor, text, sizeof text);
    close(descriptor);
    return {text, static_cast<size_t>(std::max<ssize_t>(length, 0))};
}

// The time-stamp counter is good enough if the kernel itself keeps time by it.
bool tsc_is_clock_source() {
#if defined(__x86_64__)
    return read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource") == "tsc\n";
#else
    return false;
#endif
}

const bool ticks_are_tsc = tsc_is_clock_source();

std::atomic<uint32_t> signal_counts[NSIG];
static_assert(std::atomic<uint32_t>::is_always_lock_free, "a signal handler must not take a lock");
struct sigaction counted_actions[NSIG];

// Async-signal-safe: the previous handler is Python's, which is.
void count_and_forward(int number, siginfo_t* info, void* context) {
    // relaxed: only the count matters; Python's handler, which runs after it, publishes its own flag
    signal_counts[number].fetch_add(1, std::memory_order_relaxed);
    const struct sigaction& next = counted_actions[number];
    if (next.sa_flags & SA_SIGINFO) next.sa_sigaction(number, info, context);
    else next.sa_handler(number);
}

struct Instant {
    int64_t ticks;
    int64_t ns;
};

const Instant at_load{ticks(), now_ns()};

}  // namespace

int64_t ticks() {
#if defined(__x86_64__)
    if (ticks_are_tsc) return static_cast<int64_t>(__rdtsc());
#endif
    return now_ns();
}

// The longer the process runs, the better the rate is known.
TickScale::TickScale() : rate_(1) {
    const Instant now{ticks(), now_ns()};
    if (now.ticks > at_load.ticks)
        rate_ = static_cast<double>(now.ns - at_load.ns) / static_cast<double>(now.ticks - at_load.ticks);
}

int64_t TickScale::to_ns(int64_t stamp) const {
    if (!ticks_are_tsc) return stamp;
    return at_load.ns + static_cast<int64_t>(static_cast<double>(stamp - at_load.ticks) * rate_);
}

int64_t now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

uint64_t process_start(int pid) {
    const std::string text = read_file("/proc/" + std::to_string(pid) + "/stat");
    // The command name, in parentheses, may hold anything: fields are counted after the last ')'.
    size_t at = text.rfind(')');
    if (at == std::string::npos) return 0;
    if (text.size() > at + 2 && (text[at + 2] == 'Z' || text[at + 2] == 'X')) return 0;  // dead, not yet reaped
    for (int field = 2; field < 22; ++field) {
        at = text.find(' ', at + 1);
        if (at == std::string::npos) return 0;
    }
    return std::strtoull(text.c_str() + at + 1, nullptr, 10);
}

uint64_t pid_namespace() {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

std::thread start_thread(std::function<void()> body) {
    // A new thread inherits the mask of the one that starts it; that one gets its own back, also by an exception.
    struct SignalsBlocked {
        sigset_t before;
        SignalsBlocked() {
            sigset_t all;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &before);
        }
        ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    } blocked;
    return std::thread(std::move(body));
}

uint64_t fork_generation() {
    // relaxed: written before any other thread of this process exists
    return fork_count.load(std::memory_order_relaxed);
}

namespace {

char name_to_unlink[256] = {};  // read by a signal handler
pid_t group_leader = 0;         // this process, unless it is a fork of the one that asked

void on_parent_death(int) { kill_process_group(); }

// At exit: kill what this process has started. Its launcher would do so, but may have been killed before.
void end_rest_of_group() {
    const pid_t own = getpid();
    if (own != group_leader || getpgrp() != own) return;
    // Leave the group before killing it, because this process should end with its own exit code. getppid() is 0 if the
    // parent is outside of this pid namespace: then there is no group to move to, and nothing is killed.
    const pid_t parent_group = getppid() > 0 ? getpgid(getppid()) : 0;
    if (parent_group > 0 && parent_group != own && setpgid(0, parent_group) == 0) kill(-own, SIGKILL);
}

}  // namespace

int parent_death_signal() {
#ifdef __linux__
    return SIGRTMAX - 1;
#else
    return 0;
#endif
}

void kill_process_group() {
    if (name_to_unlink[0]) unlink(name_to_unlink);
    if (getpgrp() == getpid()) kill(0, SIGKILL);
    kill(getpid(), SIGKILL);
    _exit(137);
}

void count_signal(int number) {
    struct sigaction action;
    if (number <= 0 || number >= NSIG || sigaction(number, nullptr, &action) != 0) return;
    signal_counts[number].store(0, std::memory_order_relaxed);  // relaxed: as in count_and_forward()
    const bool is_counted = (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == count_and_forward;
    const bool has_handler =
        (action.sa_flags & SA_SIGINFO) || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
    if (is_counted || !has_handler) return;
    counted_actions[number] = action;
    action.sa_flags |= SA_SIGINFO;
    action.sa_sigaction = count_and_forward;
    sigaction(number, &action, nullptr);
}

uint32_t take_signal_count(int number) {
    if (number <= 0 || number >= NSIG) return 0;
    return signal_counts[number].exchange(0, std::memory_order_relaxed);  // relaxed: as in count_and_forward()
}

void die_with_parent(int parent_pid) {
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent_pid) _exit(137);
}

void kill_group_with_parent(int parent_pid, const std::string& segment_path) {
    std::snprintf(name_to_unlink, sizeof name_to_unlink, "%s", segment_path.c_str());
    static const int at_exit = std::atexit(end_rest_of_group);  // once, also for forks that ask again
    if (at_exit == 0) group_leader = getpid();
#ifdef __linux__
    // Not SIGKILL: it would kill only this process, and leave its children, and the name of a segment whose other
    // ranks may all be dying at this moment. The default action of this signal ends the process too, should the handler
    // have been replaced.
    const int signal_number = parent_death_signal();
    struct sigaction action = {};
    action.sa_handler = on_parent_death;
    sigfillset(&action.sa_mask);
    sigaction(signal_number, &action, nullptr);
    sigset_t death_signal;
    sigemptyset(&death_signal);
    sigaddset(&death_signal, signal_number);
    pthread_sigmask(SIG_UNBLOCK, &death_signal, nullptr);
    prctl(PR_SET_PDEATHSIG, signal_number);
#endif
    if (getppid() != parent_pid) kill_process_group();
}

}  // namespace cobre

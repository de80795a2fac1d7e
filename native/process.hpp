// What the native core needs to know about processes and clocks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace cobre {

// Nanoseconds of the monotonic clock, which all processes of a machine share.
int64_t now_ns();

// A counter that is cheap to read, for stamps that may never be looked at; in units that only TickScale knows.
int64_t ticks();

// Converts ticks() to now_ns() at one rate, measured when it is made. Stamps converted by one object keep their order;
// those of two objects need not.
class TickScale {
public:
    TickScale();
    int64_t to_ns(int64_t stamp) const;

private:
    double rate_;
};

// Start time of a process in clock ticks since boot, 0 when there is no such process. With the pid it names a
// process uniquely, although pids are reused.
uint64_t process_start(int pid);

// Identity of this process's pid namespace: pids of another namespace mean nothing here.
uint64_t pid_namespace();

// Grows in a forked child, so that an object can tell that it was inherited by a fork.
uint64_t fork_generation();

// Start a thread in which all signals are blocked, from its first instruction. A signal that the kernel delivered here
// would not interrupt the system call in which Python's main thread sleeps. Throws std::system_error when no thread can
// be started.
std::thread start_thread(std::function<void()> body);

// Count how often a signal arrives, from now until another handler is installed; the current one runs as before. Python
// runs its own handler later, and once for all arrivals since the last run: the second Ctrl-C would be lost.
void count_signal(int number);
// How often it has arrived since the last look.
uint32_t take_signal_count(int number);

// Ask the kernel to kill this process when its parent dies, and exit at once if that has happened.
void die_with_parent(int parent_pid);

// As die_with_parent, for the leader of a process group: kills the whole group, after unlinking the file of the segment
// that its rank was to join ("" for none). When it exits by itself, what it has started is killed as well.
void kill_group_with_parent(int parent_pid, const std::string& segment_path);

// The signal that the kernel sends to a process of kill_group_with_parent() when its parent dies; 0 if there is none.
int parent_death_signal();

// Unlink the segment that kill_group_with_parent() was given and kill the process group, or only this process if it
// leads none. Async-signal-safe.
[[noreturn]] void kill_process_group();

}  // namespace cobre

// What the native core needs to know about processes and clocks.
#pragma once

#include <cstdint>
#include <string>

namespace cobre {

// Nanoseconds of the monotonic clock, which all processes of a machine share.
int64_t now_ns();

// A counter that is cheap to read, for stamps that may never be looked at, and its conversion to now_ns().
int64_t ticks();
// Converts stamps of one moment alike: what was earlier stays earlier.
class TickScale {
public:
    TickScale();
    int64_t to_ns(int64_t stamp) const;

private:
    double rate_;
};

// Start time of a process in clock ticks since boot, 0 when there is no such process. With the pid it names a
// process for good, although pids are used again.
uint64_t process_start(int pid);

// Identity of this process's pid namespace: pids of another namespace mean nothing here.
uint64_t pid_namespace();

// Grows in a forked child, so that an object can tell that it came along by fork.
uint64_t fork_generation();

// Ask the kernel to kill this process when the parent dies, and go at once if it already did.
void die_with_parent(int parent_pid);

// The same for a process that leads a group: everything that it has started goes too, and the file of the segment that it
// was to meet others in ("" for none). When it exits by itself, what it has started is killed as well.
void end_group_with_parent(int parent_pid, const std::string& segment_path);

// The signal that the kernel sends then; 0 where there is none.
int parent_death_signal();

// What happens then.
[[noreturn]] void end_with_group();

std::string host_name();

}  // namespace cobre

#include "shm_rendezvous.hpp"

#include <Python.h>
#include <nanobind/nanobind.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "process.hpp"
#include "shm_sync.hpp"

namespace nb = nanobind;

namespace cobre::shm {
namespace {

constexpr size_t kDefaultWindow = 12 << 20;
constexpr size_t kMaxSlot = 1024 * 1024;
constexpr size_t kMinSlot = 16 * 1024;
constexpr int64_t kPollNs = 1'000'000;         // between two looks for a segment that is not there yet
constexpr int64_t kHeaderNs = 2'000'000'000;   // a creator that needs longer than this for its header is dead

size_t slot_for(uint32_t size, size_t window) {
    const size_t share = (window ? window : kDefaultWindow) / size / 3;
    return std::clamp(share / kPage * kPage, kMinSlot, kMaxSlot);
}

void nap() {
    Gil gil;
    gil.release();
    const timespec pause{0, kPollNs};
    nanosleep(&pause, nullptr);
}

// For loops that wait at the start: let Ctrl-C through.
void check_signals() {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

bool alive(const Header& header) {
    if (header.creator_namespace != pid_namespace()) return true;  // cannot be known: assume so
    return process_start(header.creator_pid) == header.creator_start;
}

void init_condition(RankSlot& slot) {
    pthread_mutexattr_t mutex;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);  // a rank may be killed while it holds it
    pthread_mutex_init(&slot.mutex, &mutex);
    pthread_condattr_t condition;
    pthread_condattr_init(&condition);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
    pthread_cond_init(&slot.condition, &condition);
}

}  // namespace

std::string creator_text(const Header& header) { return "pid " + std::to_string(header.creator_pid); }

size_t segment_bytes(const WorldConfig& config) {
    return Control::total_bytes(config.size, slot_for(config.size, config.window_bytes));
}

void initialise(std::byte* base, const WorldConfig& config) {
    const size_t slot = slot_for(config.size, config.window_bytes);
    const Control control = Control::at(base, config.size, slot);
    for (uint32_t rank = 0; rank < config.size; ++rank) init_condition(control.slots[rank]);
    Header& header = *control.header;
    header.layout_version = kLayoutVersion;
    header.size = config.size;
    header.total_bytes = Control::total_bytes(config.size, slot);
    header.slot_bytes = slot;
    header.wait_by_condvar = config.condvar;
    header.creator_pid = getpid();
    header.creator_start = process_start(getpid());
    header.creator_namespace = pid_namespace();
    header.magic.store(kMagic, std::memory_order_release);  // everything above is complete
}

Segment make_segment(const WorldConfig& config) {
    const int64_t patience = now_ns() + kHeaderNs;
    for (;;) {
        try {
            Segment segment = Segment::create(config.name, segment_bytes(config));
            initialise(segment.map(Control::fixed_bytes(config.size), false)->data(), config);
            return segment;
        } catch (const std::system_error& error) {
            if (error.code().value() != EEXIST) throw;
        }
        try {
            Segment old = Segment::open(config.name);
            if (old.bytes() >= sizeof(Header)) {
                const auto mapping = old.map(sizeof(Header), false);
                const auto& header = *reinterpret_cast<const Header*>(mapping->data());
                if (header.magic.load(std::memory_order_acquire) == kMagic) {
                    if (alive(header))
                        throw JoinFailure("the segment " + config.name + " belongs to a live run (" + creator_text(header) +
                                          "); choose another COBRE_SHM_NAME, or end that run");
                    old.unlink();
                    continue;
                }
            }
            if (now_ns() > patience) old.unlink();  // its creator died before it wrote a header
        } catch (const std::system_error& error) {
            if (error.code().value() != ENOENT) throw;  // gone in the meantime: try again
        }
        check_signals();
        nap();
    }
}

Segment find_segment(const WorldConfig& config, int64_t deadline_ns) {
    for (;;) {
        try {
            Segment segment = Segment::open(config.name);
            if (segment.bytes() >= sizeof(Header)) {
                const auto mapping = segment.map(sizeof(Header), false);
                const auto& header = *reinterpret_cast<const Header*>(mapping->data());
                // A dead run's segment is left alone: rank 0 will replace it.
                if (header.magic.load(std::memory_order_acquire) == kMagic && alive(header)) return segment;
            }
        } catch (const std::system_error& error) {
            if (error.code().value() != ENOENT) throw;
        }
        if (now_ns() > deadline_ns)
            throw JoinFailure("rank 0 has not created the segment " + config.name + " within " +
                              std::to_string(static_cast<int64_t>(std::min(config.connect_timeout_s, 3.2e9))) +
                              " s; is it running, with the same COBRE_SHM_NAME?");
        check_signals();
        nap();
    }
}

}  // namespace cobre::shm

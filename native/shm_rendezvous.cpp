#include "shm_rendezvous.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>

#include "process.hpp"
#include "shm_barrier.hpp"

namespace cobre::shm {

bool creator_is_alive(const Header& header) {
    if (header.creator_namespace != pid_namespace()) return true;  // its pid means nothing here: assume so
    return process_start(header.creator_pid) == header.creator_start;
}

namespace {

constexpr size_t kDefaultWindow = 12 << 20;
constexpr size_t kMaxBuffer = 1024 * 1024;
constexpr size_t kMinBuffer = 16 * 1024;
constexpr int64_t kPollNs = 1'000'000;        // between two looks for a segment that does not exist yet
constexpr int64_t kHeaderNs = 2'000'000'000;  // a creator that needs longer than this for its header is dead
constexpr int kReplyMs = 50;                  // for rank 0's listener to reply

size_t buffer_for(uint32_t size, size_t window) {
    const size_t share = (window ? window : kDefaultWindow) / size / 3;
    return std::clamp(share / kPage * kPage, kMinBuffer, kMaxBuffer);
}

// Whether the creator has written the rest of the header. acquire: pairs with the release in initialise()
bool is_complete(const Header& header) { return header.magic.load(std::memory_order_acquire) == kMagic; }

// Left by a run whose ranks are dead, as its header shows.
bool is_orphan(const Header& header) { return is_complete(header) && !creator_is_alive(header); }

[[noreturn]] void refuse(const std::string& name, const std::string& reason) {
    throw JoinFailure("segment " + name + " " + reason + ": it was not created by a rank of user " +
                      std::to_string(geteuid()) + " and is not used; choose another COBRE_SHM_NAME");
}

[[noreturn]] void refuse_live(const std::string& name, const std::string& owner) {
    throw JoinFailure("segment " + name + " belongs to a live run (" + owner +
                      "); choose another COBRE_SHM_NAME, or stop that run");
}

// An existing segment of this user; another user's is refused before anything in it is read.
Segment open_if_ours(const std::string& name) {
    try {
        return Segment::open(name);
    } catch (const std::system_error& error) {
        const int code = error.code().value();
        if (code != EACCES && code != EPERM && code != ELOOP) throw;
    }
    struct stat status = {};
    std::string reason = "is accessible to other users";
    if (lstat(shm_path(name).c_str(), &status) == 0) {
        char text[96];
        std::snprintf(text, sizeof text, "belongs to user %u, with mode %04o", status.st_uid, status.st_mode & 07777);
        reason = S_ISREG(status.st_mode) ? text : "is not a shared memory object";
    }
    refuse(name, reason);
}

// A connection to the process that listens under this name; one of another user is refused.
std::optional<RendezvousClient> connect_if_ours(const std::string& name) {
    std::optional<RendezvousClient> client = RendezvousClient::to(name);
    if (client && client->server().user != geteuid())
        refuse(name, "belongs to user " + std::to_string(client->server().user) + " (pid " +
                         std::to_string(client->server().pid) + ")");
    return client;
}

std::optional<Segment> receive_segment(const RendezvousClient& client) {
    Gil gil;
    gil.release();
    return client.segment(kReplyMs);
}

// Whether ranks are still joining in this segment.
bool is_joinable(const Segment& segment) {
    if (segment.bytes() < sizeof(Header)) return false;
    const auto mapping = segment.map(sizeof(Header), false);
    const auto& header = *reinterpret_cast<const Header*>(mapping->data());
    // acquire: pairs with register_rank()
    return is_complete(header) && creator_is_alive(header) &&
           header.attached.load(std::memory_order_acquire) < header.size;
}

// Remove names that killed runs of this user left: all of their ranks ended before the last had joined, so none could
// unlink.
void remove_orphans() {
#ifdef __linux__
    const std::string folder_path = shm_path("");
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(folder_path.c_str()), closedir);
    if (!folder) return;
    while (const dirent* entry = readdir(folder.get())) {
        struct stat status = {};
        if (fstatat(dirfd(folder.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0) continue;
        if (status.st_size < static_cast<off_t>(sizeof(Header))) continue;
        try {
            Segment segment = Segment::open(std::string("/") + entry->d_name);
            const auto mapping = segment.map(sizeof(Header), false);
            if (is_orphan(*reinterpret_cast<const Header*>(mapping->data()))) segment.unlink();
        } catch (const std::system_error&) {
            continue;  // removed in the meantime
        }
    }
#endif
}

void draw_nonce(Header& header) {
    size_t filled = 0;
    while (filled < sizeof header.nonce) {
        const ssize_t count =
            getrandom(reinterpret_cast<char*>(header.nonce) + filled, sizeof header.nonce - filled, 0);
        if (count < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
        if (count > 0) filled += static_cast<size_t>(count);
    }
}

// Complete before it gets a name: a process that is killed on the way leaves nothing behind.
std::optional<Segment> create_unnamed(const TransportConfig& config) {
    try {
        Segment segment = Segment::create_unnamed(segment_bytes(config));
        initialise(segment.map(Control::fixed_bytes(config.size), false)->data(), config);
        return segment;
    } catch (const std::system_error& error) {
        if (!Segment::is_unsupported(error.code().value())) throw;
    }
    return std::nullopt;
}

// False when the segment cannot get a name here, for any reason but a name that is taken.
bool link_unnamed(std::optional<Segment>& prepared, const std::string& name) {
    if (!prepared) return false;
    try {
        prepared->link(name);
        return true;
    } catch (const std::system_error& error) {
        if (error.code().value() == EEXIST) throw;
        prepared.reset();
        return false;
    }
}

void init_condition(RankSlot& slot) {
    pthread_mutexattr_t mutex;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);  // robust: a rank may be killed while it holds it
    pthread_mutex_init(&slot.mutex, &mutex);
    pthread_condattr_t condition;
    pthread_condattr_init(&condition);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
    pthread_cond_init(&slot.condition, &condition);
}

}  // namespace

void sleep_briefly() {
    Gil gil;
    gil.check_signals();
    gil.release();
    const timespec pause{0, kPollNs};
    nanosleep(&pause, nullptr);
}

std::string describe_creator(const Header& header) { return "pid " + std::to_string(header.creator_pid); }

size_t segment_bytes(const TransportConfig& config) {
    return Control::total_bytes(config.size, buffer_for(config.size, config.window_bytes));
}

void initialise(std::byte* base, const TransportConfig& config) {
    const size_t buffer = buffer_for(config.size, config.window_bytes);
    const Control control = Control::at(base, config.size, buffer);
    for (uint32_t rank = 0; rank < config.size; ++rank) init_condition(control.slots[rank]);
    Header& header = *control.header;
    header.layout_version = kLayoutVersion;
    header.size = config.size;
    header.total_bytes = Control::total_bytes(config.size, buffer);
    header.buffer_bytes = buffer;
    header.wait_by_condvar = config.condvar;
    header.creator_pid = getpid();
    header.creator_start = process_start(getpid());
    header.creator_namespace = pid_namespace();
    draw_nonce(header);
    publish_rank(control.slots[0]);                         // from here on rank 0's death is noticed
    header.magic.store(kMagic, std::memory_order_release);  // release: everything above is complete
}

void publish_rank(RankSlot& slot) {
    // relaxed: published by the release at the end
    slot.pid.store(getpid(), std::memory_order_relaxed);
    slot.start.store(process_start(getpid()), std::memory_order_relaxed);
    slot.pid_namespace.store(pid_namespace(), std::memory_order_relaxed);
    slot.heartbeat_ns.store(now_ns(), std::memory_order_relaxed);
    slot.state.store(static_cast<uint32_t>(RankState::joined),
                     std::memory_order_release);  // release: the fields above are complete
}

namespace {

// Whether the name is free in /dev/shm. That of a dead run is removed, that of a live one refused.
bool name_is_free(const std::string& name, int64_t deadline_ns) {
    try {
        Segment old = open_if_ours(name);
        if (old.bytes() >= sizeof(Header)) {
            const auto mapping = old.map(sizeof(Header), false);
            const auto& header = *reinterpret_cast<const Header*>(mapping->data());
            if (is_complete(header)) {
                if (creator_is_alive(header)) refuse_live(name, describe_creator(header));
                old.unlink();
                return false;  // look again: another process may be about to unlink it
            }
        }
        if (now_ns() > deadline_ns) old.unlink();  // its creator died before it wrote a header
        return false;
    } catch (const std::system_error& error) {
        if (error.code().value() != ENOENT) throw;
        return true;
    }
}

enum class Listening { yes, taken, impossible };

Listening listen_for_ranks(const TransportConfig& config, const Segment& segment,
                           std::unique_ptr<RendezvousListener>& listener) {
    try {
        listener = std::make_unique<RendezvousListener>(config.name, segment);
        return Listening::yes;
    } catch (const std::system_error& error) {
        return error.code().value() == EADDRINUSE ? Listening::taken : Listening::impossible;
    }
}

// Refuse the listener of a live run. One whose ranks have all joined is just about to close: look again.
void refuse_live_listener(const std::string& name, int64_t deadline_ns) {
    const std::optional<RendezvousClient> client = connect_if_ours(name);
    if (!client) return;
    const std::optional<Segment> segment = receive_segment(*client);
    if (now_ns() > deadline_ns || (segment && is_joinable(*segment)))
        refuse_live(name, "pid " + std::to_string(client->server().pid));
}

// False when another process was first.
bool publish_by_name(const TransportConfig& config, std::optional<Segment>& prepared) {
    try {
        if (link_unnamed(prepared, config.name)) return true;
        prepared.emplace(Segment::create(config.name, segment_bytes(config)));
        initialise(prepared->map(Control::fixed_bytes(config.size), false)->data(), config);
        return true;
    } catch (const std::system_error& error) {
        if (error.code().value() != EEXIST) throw;
        return false;
    }
}

}  // namespace

Segment create_segment(const TransportConfig& config, std::unique_ptr<RendezvousListener>& listener) {
    const int64_t deadline_ns = now_ns() + kHeaderNs;
    remove_orphans();
    std::optional<Segment> prepared = create_unnamed(config);
    if (prepared && config.size == 1) return std::move(*prepared);  // no other rank joins
    bool by_name = config.by_name || !prepared;
    for (;;) {
        if (name_is_free(config.name, deadline_ns)) {
            if (by_name && publish_by_name(config, prepared)) return std::move(*prepared);
            if (!by_name) switch (listen_for_ranks(config, *prepared, listener)) {
                    case Listening::yes: return std::move(*prepared);
                    case Listening::taken: refuse_live_listener(config.name, deadline_ns); break;
                    case Listening::impossible: by_name = true; continue;
                }
        }
        sleep_briefly();
    }
}

namespace {

// Nothing when rank 0 does not listen yet, or listens for a run whose ranks have all joined.
std::optional<Segment> segment_from_listener(const TransportConfig& config) {
    const std::optional<RendezvousClient> client = connect_if_ours(config.name);
    if (!client) return std::nullopt;
    std::optional<Segment> segment = receive_segment(*client);
    if (segment && !is_joinable(*segment)) segment.reset();
    return segment;
}

}  // namespace

Segment find_segment(const TransportConfig& config, int64_t deadline_ns) {
    for (;;) {
        if (std::optional<Segment> segment = segment_from_listener(config)) return std::move(*segment);
        try {
            Segment segment = open_if_ours(config.name);
            if (segment.bytes() >= sizeof(Header)) {
                const auto mapping = segment.map(sizeof(Header), false);
                const auto& header = *reinterpret_cast<const Header*>(mapping->data());
                if (is_complete(header) && creator_is_alive(header)) return segment;
                if (is_orphan(header)) segment.unlink();  // rank 0 may be restarted, and creates a new one
            }
        } catch (const std::system_error& error) {
            if (error.code().value() != ENOENT) throw;
        }
        if (now_ns() > deadline_ns)
            throw JoinFailure("rank 0 has not created segment " + config.name + " within " +
                              std::to_string(static_cast<int64_t>(std::min(config.connect_timeout_s, 3.2e9))) +
                              " s, or has ended since. Check that it is running with the same COBRE_SHM_NAME. Ranks in "
                              "separate network namespaces need COBRE_SHM_RENDEZVOUS=name");
        sleep_briefly();
    }
}

}  // namespace cobre::shm

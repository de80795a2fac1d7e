// How ranks get the segment from rank 0 without a file name: over a Unix socket in the abstract namespace, which
// vanishes with the listening process, however that ends.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <thread>

#include "shm_segment.hpp"

namespace cobre::shm {

// Rank 0's end. Sends the segment's descriptor to every process of this user that connects, to no other.
class RendezvousListener {
public:
    // EADDRINUSE when another process listens under this name; other errors if there are no such sockets.
    RendezvousListener(const std::string& name, const Segment& segment);
    ~RendezvousListener();
    RendezvousListener(const RendezvousListener&) = delete;
    RendezvousListener& operator=(const RendezvousListener&) = delete;

private:
    void run();
    void reply(int client) const;

    int segment_;
    int socket_ = -1;
    int stop_read_ = -1;
    int stop_write_ = -1;
    std::thread thread_;
};

// The process at the other end of a connection, as the kernel knows it.
struct PeerCredentials {
    pid_t pid;
    uid_t user;
};

// The other ranks' end.
class RendezvousClient {
public:
    // Nothing when no process listens, or its backlog is full.
    static std::optional<RendezvousClient> to(const std::string& name);
    ~RendezvousClient();
    RendezvousClient(RendezvousClient&& other) noexcept;
    RendezvousClient& operator=(RendezvousClient&&) = delete;

    // Of the listening process; known before anything is read.
    const PeerCredentials& server() const { return server_; }
    // The segment that the listener sends; nothing when it has ended, or sends nothing within `timeout_ms`.
    std::optional<Segment> segment(int timeout_ms) const;

private:
    RendezvousClient(int socket, PeerCredentials server) : socket_(socket), server_(server) {}
    int socket_;
    PeerCredentials server_;
};

}  // namespace cobre::shm

// Where ranks of one machine ask rank 0 for the segment: a socket in the kernel's abstract namespace. It is no file, so it
// goes with the process that listens, however that ends.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <thread>

#include "shm_segment.hpp"

namespace cobre::shm {

// Rank 0's end. Gives the segment's descriptor to every process of this user that asks, to nobody else.
class MeetingListener {
public:
    // EADDRINUSE when somebody listens there; other errors where there are no such sockets.
    MeetingListener(const std::string& name, const Segment& segment);
    ~MeetingListener();
    MeetingListener(const MeetingListener&) = delete;
    MeetingListener& operator=(const MeetingListener&) = delete;

private:
    void run();
    void answer(int visitor) const;

    int segment_;
    int socket_ = -1;
    int stop_read_ = -1;
    int stop_write_ = -1;
    std::thread thread_;
};

// Who listens under a name.
struct Host {
    pid_t pid;
    uid_t user;
};

// The other ranks' end of it.
class MeetingCall {
public:
    // Nothing when nobody listens, or somebody has no time at the moment.
    static std::optional<MeetingCall> to(const std::string& name);
    ~MeetingCall();
    MeetingCall(MeetingCall&& other) noexcept;
    MeetingCall& operator=(MeetingCall&&) = delete;

    // As the kernel knows it, before anything is read.
    const Host& host() const { return host_; }
    // The segment, once the listener has answered within `patience_ms`; nothing when it has gone or is silent.
    std::optional<Segment> segment(int patience_ms) const;

private:
    MeetingCall(int socket, Host host) : socket_(socket), host_(host) {}
    int socket_;
    Host host_;
};

}  // namespace cobre::shm

#include "shm_rendezvous_socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include "process.hpp"

namespace cobre::shm {

#ifdef __linux__

namespace {

constexpr int kBacklog = 128;  // a client that finds it full tries again

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

struct Address {
    sockaddr_un value = {};
    socklen_t length;

    // The user's number is part of it, so that two users may use the same name.
    explicit Address(const std::string& name) {
        value.sun_family = AF_UNIX;
        const std::string text =
            "cobre-shm/" + std::to_string(geteuid()) + "/" + name.substr(name.starts_with('/') ? 1 : 0);
        const size_t bytes = std::min(text.size(), sizeof value.sun_path - 1);
        std::memcpy(value.sun_path + 1, text.data(), bytes);  // a leading zero byte: abstract
        length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
    }
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
};

int open_socket() {
    const int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) fail("socket");
    return descriptor;
}

std::optional<PeerCredentials> credentials_of(int descriptor) {
    ucred credentials = {};
    socklen_t length = sizeof credentials;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return std::nullopt;
    return PeerCredentials{credentials.pid, credentials.uid};
}

// A message of one byte with room for one descriptor in its control data.
class DescriptorMessage {
public:
    DescriptorMessage() {
        header_.msg_iov = &payload_;
        header_.msg_iovlen = 1;
        header_.msg_control = control_;
        header_.msg_controllen = sizeof control_;
    }
    DescriptorMessage(const DescriptorMessage&) = delete;
    DescriptorMessage& operator=(const DescriptorMessage&) = delete;

    msghdr* get() { return &header_; }
    cmsghdr* control() { return CMSG_FIRSTHDR(&header_); }
    bool is_truncated() const { return (header_.msg_flags & MSG_CTRUNC) != 0; }

private:
    char byte_ = 0;
    iovec payload_{&byte_, 1};
    alignas(cmsghdr) char control_[CMSG_SPACE(sizeof(int))] = {};
    msghdr header_ = {};
};

}  // namespace

RendezvousListener::RendezvousListener(const std::string& name, const Segment& segment)
    : segment_(fcntl(segment.descriptor(), F_DUPFD_CLOEXEC, 0)) {  // a duplicate: it may outlive the caller's
    if (segment_ < 0) fail("dup");
    const Address address(name);
    int ends[2] = {-1, -1};
    try {
        socket_ = open_socket();
        if (bind(socket_, address.get(), address.length) != 0) fail("bind");
        if (listen(socket_, kBacklog) != 0) fail("listen");
        if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
        stop_read_ = ends[0];
        stop_write_ = ends[1];
        thread_ = start_thread([this] { run(); });
    } catch (...) {
        for (int descriptor : {segment_, socket_, ends[0], ends[1]})
            if (descriptor >= 0) close(descriptor);
        throw;
    }
}

RendezvousListener::~RendezvousListener() {
    close(stop_write_);  // wakes the thread
    thread_.join();
    for (int descriptor : {stop_read_, socket_, segment_}) close(descriptor);
}

void RendezvousListener::run() {
    pollfd polled[] = {{stop_read_, POLLIN, 0}, {socket_, POLLIN, 0}};
    for (;;) {
        if (poll(polled, std::size(polled), -1) < 0 && errno != EINTR) return;
        if (polled[0].revents) return;
        const int client = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (client < 0) {
            if (errno == EMFILE || errno == ENFILE)
                poll(polled, 1, 10);  // the connection stays in the queue: do not spin
            continue;
        }
        reply(client);
        close(client);
    }
}

// The send buffer of a new connection is empty, so this never blocks.
void RendezvousListener::reply(int client) const {
    const std::optional<PeerCredentials> who = credentials_of(client);
    if (!who || who->user != geteuid()) return;
    DescriptorMessage message;
    cmsghdr* header = message.control();
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &segment_, sizeof segment_);
    [[maybe_unused]] const ssize_t sent =
        sendmsg(client, message.get(), MSG_NOSIGNAL | MSG_DONTWAIT);  // the client may have ended
}

std::optional<RendezvousClient> RendezvousClient::to(const std::string& name) {
    const Address address(name);
    const int descriptor = open_socket();
    if (connect(descriptor, address.get(), address.length) == 0)
        if (const std::optional<PeerCredentials> server = credentials_of(descriptor))
            return RendezvousClient(descriptor, *server);
    close(descriptor);
    return std::nullopt;
}

RendezvousClient::RendezvousClient(RendezvousClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), server_(other.server_) {}

RendezvousClient::~RendezvousClient() {
    if (socket_ >= 0) close(socket_);
}

std::optional<Segment> RendezvousClient::segment(int timeout_ms) const {
    pollfd polled{socket_, POLLIN, 0};
    if (poll(&polled, 1, timeout_ms) <= 0) return std::nullopt;
    DescriptorMessage message;
    if (recvmsg(socket_, message.get(), MSG_CMSG_CLOEXEC | MSG_DONTWAIT) <= 0) return std::nullopt;
    const cmsghdr* header = message.control();
    if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int))) {
        if (!message.is_truncated()) return std::nullopt;
        errno = EMFILE;  // this process has no free descriptor
        fail("recvmsg");
    }
    int descriptor;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return Segment::adopt(descriptor);
}

#else  // no abstract sockets: rendezvous by a name in /dev/shm

RendezvousListener::RendezvousListener(const std::string&, const Segment& segment) : segment_(segment.descriptor()) {
    throw std::system_error(EOPNOTSUPP, std::generic_category(), "abstract sockets");
}
RendezvousListener::~RendezvousListener() = default;
std::optional<RendezvousClient> RendezvousClient::to(const std::string&) { return std::nullopt; }
RendezvousClient::RendezvousClient(RendezvousClient&& other) noexcept : socket_(-1), server_(other.server_) {}
RendezvousClient::~RendezvousClient() = default;
std::optional<Segment> RendezvousClient::segment(int) const { return std::nullopt; }

#endif

}  // namespace cobre::shm

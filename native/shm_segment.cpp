#include "shm_segment.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <utility>

namespace cobre::shm {
namespace {

[[noreturn]] void fail(int code, const std::string& what) {
    throw std::system_error(code, std::generic_category(), what);
}

int allocate(int descriptor, size_t bytes) {
#ifdef __linux__
    // No ftruncate first: another rank could map the object while its pages are not yet there.
    int code;
    do code = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
    while (code == EINTR);
    return code;
#else
    return ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
#endif
}

struct stat status_of(int descriptor) {
    struct stat status = {};
    if (fstat(descriptor, &status) != 0) fail(errno, "fstat");
    return status;
}

#ifdef __linux__
// Memory available without swapping; unlimited if the kernel does not say.
size_t available_bytes() {
    std::ifstream lines("/proc/meminfo");
    std::string name;
    size_t kib = 0;
    size_t bytes = std::numeric_limits<size_t>::max();
    while (lines >> name >> kib) {
        if (name == "MemAvailable:") bytes = kib * 1024;
        lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    return bytes;
}
#endif

// Created by this user, and accessible to no other.
bool is_private(const struct stat& status) {
    return S_ISREG(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

}  // namespace

#ifdef __linux__
constexpr const char* kFolder = "/dev/shm";

std::string shm_path(const std::string& name) {
    return std::string(kFolder) + (name.starts_with('/') ? "" : "/") + name;
}
#else
std::string shm_path(const std::string&) { return ""; }
#endif

Mapping::~Mapping() { munmap(data_, bytes_); }

Segment Segment::create(const std::string& name, size_t bytes) {
    const int descriptor = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0) fail(errno, "shm_open(" + name + ")");
    Segment segment(name, descriptor);
    if (const int code = allocate(descriptor, bytes); code != 0) {
        shm_unlink(name.c_str());
        fail(code, "allocate " + name);
    }
    return segment;
}

Segment Segment::create_unnamed(size_t bytes) {
#if defined(__linux__) && defined(O_TMPFILE)
    const int descriptor = ::open(kFolder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0) fail(errno, "open(O_TMPFILE)");
    Segment segment("", descriptor);
    if (const int code = allocate(descriptor, bytes); code != 0) fail(code, "allocate");
    return segment;
#else
    (void)bytes;
    fail(EOPNOTSUPP, "O_TMPFILE");
#endif
}

Segment Segment::create_in_memory(size_t bytes, size_t memory_limit) {
#ifdef __linux__
    // Nothing else limits such an object: the kernel would kill processes to make room for it.
    if (bytes > available_bytes() || (memory_limit && bytes > memory_limit)) fail(ENOMEM, "memfd_create");
    const int descriptor = memfd_create("cobre", MFD_CLOEXEC);
    if (descriptor < 0) fail(errno, "memfd_create");
    Segment segment("", descriptor);
    if (fchmod(descriptor, 0600) != 0) fail(errno, "fchmod");
    if (const int code = allocate(descriptor, bytes); code != 0) fail(code, "allocate");
    return segment;
#else
    (void)bytes;
    (void)memory_limit;
    fail(EOPNOTSUPP, "memfd_create");
#endif
}

bool Segment::is_unsupported(int code) {
    return code == EOPNOTSUPP || code == EISDIR || code == EINVAL || code == ENOENT || code == ENOTDIR;
}

Segment Segment::open(const std::string& name) {
    const int descriptor = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);  // does not follow links
    if (descriptor < 0) fail(errno, "shm_open(" + name + ")");
    Segment segment(name, descriptor);
    if (!is_private(status_of(descriptor))) fail(EACCES, "shm_open(" + name + ")");
    return segment;
}

Segment Segment::open_from(pid_t pid, int descriptor, uint64_t inode) {
    const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
    const int own = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (own < 0) fail(errno, "open(" + path + ")");
    Segment segment("", own);
    const struct stat status = status_of(own);
    if (!is_private(status) || status.st_ino != inode) fail(ESTALE, "open(" + path + ")");
    return segment;
}

Segment Segment::adopt(int descriptor) {
    Segment segment("", descriptor);
    if (!is_private(status_of(descriptor))) fail(EACCES, "segment received from another process");
    return segment;
}

Segment::Segment(Segment&& other) noexcept
    : name_(std::move(other.name_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

Segment::~Segment() {
    if (descriptor_ >= 0) close(descriptor_);
}

size_t Segment::bytes() const { return static_cast<size_t>(status_of(descriptor_).st_size); }

uint64_t Segment::inode() const { return status_of(descriptor_).st_ino; }

void Segment::link(const std::string& name) {
#ifdef __linux__
    const std::string own = "/proc/self/fd/" + std::to_string(descriptor_);
    if (linkat(AT_FDCWD, own.c_str(), AT_FDCWD, shm_path(name).c_str(), AT_SYMLINK_FOLLOW) != 0)
        fail(errno, "link(" + name + ")");
    name_ = name;
#else
    fail(EOPNOTSUPP, "link(" + name + ")");
#endif
}

void Segment::unlink() {
    if (name_.empty()) return;
    // Under the lock, a remaining link means that the name refers to this object, because no process unlinks without
    // the lock.
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) return;  // another process is about to do it
    if (status_of(descriptor_).st_nlink > 0) shm_unlink(name_.c_str());
    flock(descriptor_, LOCK_UN);
}

std::shared_ptr<Mapping> Segment::map(size_t bytes, bool populate) const {
    int flags = MAP_SHARED;
#ifdef __linux__
    if (populate) flags |= MAP_POPULATE;
#endif
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor_, 0);
    if (data == MAP_FAILED) fail(errno, "mmap(" + name_ + ")");
    return std::make_shared<Mapping>(static_cast<std::byte*>(data), bytes);
}

}  // namespace cobre::shm

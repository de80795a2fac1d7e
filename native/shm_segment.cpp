#include "shm_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace cobre::shm {
namespace {

[[noreturn]] void fail(int code, const std::string& what) { throw std::system_error(code, std::generic_category(), what); }

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

}  // namespace

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

Segment Segment::open(const std::string& name) {
    const int descriptor = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
    if (descriptor < 0) fail(errno, "shm_open(" + name + ")");
    return Segment(name, descriptor);
}

Segment::Segment(Segment&& other) noexcept
    : name_(std::move(other.name_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

Segment::~Segment() {
    if (descriptor_ >= 0) close(descriptor_);
}

size_t Segment::bytes() const { return static_cast<size_t>(status_of(descriptor_).st_size); }

bool Segment::linked() const { return status_of(descriptor_).st_nlink > 0; }

void Segment::unlink() {
    // With no link left the name, if it exists, belongs to somebody else.
    if (linked()) shm_unlink(name_.c_str());
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

// POSIX shared memory objects: created, opened, mapped, unlinked.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

namespace cobre::shm {

// One mapping; unmapped with its last owner (a transport, a region, an array).
class Mapping {
public:
    Mapping(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    std::byte* data() const { return data_; }
    size_t bytes() const { return bytes_; }

private:
    std::byte* data_;
    size_t bytes_;
};

// An open object, with or without a name. The descriptor is closed with it, the mapping lives on.
//
// Pages are allocated at creation, so that a full /dev/shm is ENOSPC there and not a bus error at some later write.
class Segment {
public:
    // Refuses an existing name (EEXIST).
    static Segment create(const std::string& name, size_t bytes);
    // Without a name: it vanishes with its last process, however that ends. `is_unsupported`: whether an error means
    // that this system has no such objects.
    static Segment create_unnamed(size_t bytes);
    static bool is_unsupported(int code);
    // The same outside of every file system (memfd), so that the size of /dev/shm does not matter; ENOMEM when the
    // machine has less memory available, or this process's cgroups allow less (0: no limit), EOPNOTSUPP if there is
    // no such thing.
    static Segment create_in_memory(size_t bytes, size_t memory_limit);
    // EACCES when the object is another user's, or accessible to others: they could read and change what is in it.
    static Segment open(const std::string& name);
    // The object behind another process's descriptor; ESTALE when it is not the expected one.
    static Segment open_from(pid_t pid, int descriptor, uint64_t inode);
    // A descriptor received from another process; EACCES as with open(). Owns it in either case.
    static Segment adopt(int descriptor);

    Segment(Segment&& other) noexcept;
    Segment& operator=(Segment&&) = delete;
    ~Segment();

    int descriptor() const { return descriptor_; }
    uint64_t inode() const;
    size_t bytes() const;
    // Give a nameless object a name (EEXIST).
    void link(const std::string& name);
    // Only while the name still refers to this object: two processes that unlink it never remove the name of its
    // successor.
    void unlink();
    std::shared_ptr<Mapping> map(size_t bytes, bool populate) const;

private:
    Segment(std::string name, int descriptor) : name_(std::move(name)), descriptor_(descriptor) {}
    std::string name_;
    int descriptor_;
};

// The file of a named object; "" where that is not known.
std::string shm_path(const std::string& name);

}  // namespace cobre::shm

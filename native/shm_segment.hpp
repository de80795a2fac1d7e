// POSIX shared memory objects: made, opened, mapped, unlinked.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

namespace cobre::shm {

// One mapping; unmapped when the last owner (a world, a region, an array) lets go.
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
// Pages are allocated when an object is made, so that a full /dev/shm is ENOSPC there and not a bus error at some later
// write.
class Segment {
public:
    // Refuses an existing name (EEXIST).
    static Segment create(const std::string& name, size_t bytes);
    // Without a name: it goes with its last process, however that ends. `lacks_nameless` tells the errors of systems that
    // have no such objects.
    static Segment create_nameless(size_t bytes);
    static bool lacks_nameless(int code);
    // The same outside of every file system, so that the size of /dev/shm does not matter; ENOMEM when the machine has
    // not so much memory left. EOPNOTSUPP where there is no such thing.
    static Segment create_in_memory(size_t bytes);
    // EACCES when the object is another user's, or open to others: they could read and change what is in it.
    static Segment open(const std::string& name);
    // The object behind another process's descriptor; ESTALE when it is not the one that is expected.
    static Segment open_of(pid_t pid, int descriptor, uint64_t inode);
    // A descriptor that came from another process; EACCES as with open(). Takes it over in either case.
    static Segment adopt(int descriptor);

    Segment(Segment&& other) noexcept;
    Segment& operator=(Segment&&) = delete;
    ~Segment();

    int descriptor() const { return descriptor_; }
    uint64_t inode() const;
    size_t bytes() const;
    // Give a nameless object a name (EEXIST).
    void link(const std::string& name);
    // Only while the name still leads here: two who unlink one object never remove the name of its successor.
    void unlink();
    std::shared_ptr<Mapping> map(size_t bytes, bool populate) const;

private:
    Segment(std::string name, int descriptor) : name_(std::move(name)), descriptor_(descriptor) {}
    std::string name_;
    int descriptor_;
};

// Where the system keeps named objects; "" where that is not known.
std::string path_of(const std::string& name);

}  // namespace cobre::shm

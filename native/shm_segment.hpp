// POSIX shared memory objects: made, opened, mapped, unlinked.
#pragma once

#include <cstddef>
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

// An open object under a name. The descriptor is closed with it, the mapping lives on.
class Segment {
public:
    // Refuses an existing name (EEXIST). The pages are allocated at once, so that a full /dev/shm is ENOSPC here
    // and not a bus error at some later write.
    static Segment create(const std::string& name, size_t bytes);
    static Segment open(const std::string& name);

    Segment(Segment&& other) noexcept;
    Segment& operator=(Segment&&) = delete;
    ~Segment();

    size_t bytes() const;
    bool linked() const;  // whether the name still leads here
    void unlink();        // only while the name still leads here
    std::shared_ptr<Mapping> map(size_t bytes, bool populate) const;

private:
    Segment(std::string name, int descriptor) : name_(std::move(name)), descriptor_(descriptor) {}
    std::string name_;
    int descriptor_;
};

}  // namespace cobre::shm

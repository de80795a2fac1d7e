// A running 64-bit hash that is the same in every process.
#pragma once

#include <cstdint>

namespace cobre {

// Splitmix64's finaliser over the hash so far.
inline uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) + 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    return hash ^ (hash >> 31);
}

}  // namespace cobre

// Memory with the type of its elements, as transports see the buffers of their callers. No Python header: whoever has
// arrays of another kind fills one of these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reduce.hpp"

namespace cobre {

struct TypedMemory {
    std::byte* data = nullptr;
    size_t count = 0;     // of elements
    size_t itemsize = 0;  // bytes of one element
    uint32_t dtype = 0;   // the same number for the same dtype in every process
    ElementType element = ElementType::none;

    size_t nbytes() const { return count * itemsize; }
};

}  // namespace cobre

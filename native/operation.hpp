// The calls of a communicator, as messages name them.
#pragma once

#include <cstdint>
#include <span>

namespace cobre {

enum class Operation : uint32_t {
    join = 0,
    barrier = 1,
    allgatherv = 2,
    allreduce = 3,
    broadcast = 4,
    create_shared_region = 5,
    fence = 6,
    split_local = 7,
};

// In the order of `Operation`.
std::span<const char* const> operation_names();
const char* operation_name(Operation operation);

}  // namespace cobre

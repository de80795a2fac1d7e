// The calls of a communicator, as messages name them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

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

// The call under way on a communicator, as ranks compare it and messages show it. label: UTF-8, valid until the next call.
struct CurrentCall {
    uint64_t sequence = 0;
    Operation operation = Operation::join;
    std::string_view label;
};

// Where a transport reads the call that it is part of: the communicator numbers calls, the transport moves their data.
class CallSource {
public:
    virtual CurrentCall current_call() const = 0;

protected:
    ~CallSource() = default;  // never deleted through this class
};

// In the order of `Operation`.
std::span<const char* const> operation_names();
const char* operation_name(Operation operation);

}  // namespace cobre

#include "operation.hpp"

#include <cstddef>
#include <iterator>

namespace cobre {

namespace {

constexpr const char* kNames[] = {"join",  "barrier",    "allgatherv", "allreduce", "broadcast", "create_shared_region",
                                  "fence", "split_local"};

}  // namespace

std::span<const char* const> operation_names() { return kNames; }

const char* operation_name(Operation operation) {
    const auto at = static_cast<size_t>(operation);
    return at < std::size(kNames) ? kNames[at] : "unknown operation";
}

}  // namespace cobre

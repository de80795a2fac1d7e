#include "operation.hpp"

#include <cstddef>
#include <iterator>

namespace cobre {

const char* operation_name(Operation operation) {
    static const char* const names[] = {
        "join", "barrier", "allgatherv", "allreduce", "broadcast", "create_shared_region", "fence", "split_local"};
    const auto at = static_cast<size_t>(operation);
    return at < std::size(names) ? names[at] : "unknown operation";
}

}  // namespace cobre

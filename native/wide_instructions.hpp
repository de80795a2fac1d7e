// Whether instructions beyond those of every processor of this architecture may be used.
#pragma once

#include <cstdlib>
#include <cstring>

namespace cobre {

// Looked up when the library is loaded. `cobre verify` shows that the bits are the same without them.
inline bool wide_instructions_allowed() {
    const char* value = std::getenv("COBRE_WIDE_INSTRUCTIONS");
    return value == nullptr || std::strcmp(value, "0") != 0;
}

}  // namespace cobre

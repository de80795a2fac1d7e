// Copies between private memory and the shared window.
#pragma once

#include <cstddef>

namespace cobre {

// Into or out of memory that is about to be read again soon: keep it in the cache.
void copy_near(void* to, const void* from, size_t bytes);

// Into memory that nobody reads soon: go past the cache when the copy is long enough to gain from it.
void copy_far(void* to, const void* from, size_t bytes);

}  // namespace cobre

// Copies between private memory and the shared window.
#pragma once

#include <cstddef>

namespace cobre {

// For memory that is read again soon: keep it in the cache.
void copy_cached(void* to, const void* from, size_t bytes);

// For memory that no core reads soon: streaming stores past the cache, when the copy is long enough to gain from them.
void copy_streaming(void* to, const void* from, size_t bytes);

}  // namespace cobre

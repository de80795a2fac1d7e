#include "shm_copy.hpp"

#include "wide_instructions.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cobre::shm {
namespace {

#if defined(__x86_64__)

// libc's memcpy switches to `rep movsb` for middle sizes, which is slow on some processors when source and
// destination are aligned differently; a plain loop of wide loads and stores is not.
constexpr size_t kLoopFrom = 4096;

const bool have_avx = wide_instructions_allowed() && has_avx();

enum class Store { cached, streaming };

template <Store store>
[[gnu::always_inline, gnu::target("avx")]] inline void store_block(std::byte* to, __m256i value) {
    if constexpr (store == Store::streaming) _mm256_stream_si256(reinterpret_cast<__m256i*>(to), value);
    else _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
}

// Streaming stores need a `to` on a multiple of 32.
template <Store store>
[[gnu::target("avx")]] void copy_loop(std::byte* to, const std::byte* from, size_t bytes) {
    for (; bytes >= 128; bytes -= 128, to += 128, from += 128) {
        const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
        const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 64));
        const __m256i d = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 96));
        store_block<store>(to, a);
        store_block<store>(to + 32, b);
        store_block<store>(to + 64, c);
        store_block<store>(to + 96, d);
    }
    // Streaming stores are weakly ordered: make them visible before any later release.
    if constexpr (store == Store::streaming) _mm_sfence();
    _mm256_zeroupper();
    std::memcpy(to, from, bytes);
}

void copy_past_cache(std::byte* to, const std::byte* from, size_t bytes) {
    const size_t head = (32 - reinterpret_cast<uintptr_t>(to) % 32) % 32;
    std::memcpy(to, from, head);
    copy_loop<Store::streaming>(to + head, from + head, bytes - head);
}

#endif

}  // namespace

void copy_cached(void* to, const void* from, size_t bytes) {
#if defined(__x86_64__)
    if (have_avx && bytes >= kLoopFrom)
        return copy_loop<Store::cached>(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
#endif
    if (bytes) std::memcpy(to, from, bytes);
}

void copy_streaming(void* to, const void* from, size_t bytes) {
#if defined(__x86_64__)
    if (have_avx && bytes >= kLoopFrom)
        return copy_past_cache(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
#endif
    if (bytes) std::memcpy(to, from, bytes);
}

}  // namespace cobre::shm

#include "copy.hpp"

#include "wide_instructions.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cobre {
namespace {

#if defined(__x86_64__)

// libc's memcpy switches to `rep movsb` for middle sizes, which is slow on some processors when source and
// destination lie differently; a plain loop of wide loads and stores is not.
constexpr size_t kLoopFrom = 4096;

const bool have_avx = wide_instructions_allowed() && __builtin_cpu_supports("avx");

__attribute__((target("avx"))) void cached_loop(std::byte* to, const std::byte* from, size_t bytes) {
    for (; bytes >= 128; bytes -= 128, to += 128, from += 128) {
        const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
        const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 64));
        const __m256i d = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 96));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), b);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 64), c);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 96), d);
    }
    _mm256_zeroupper();
    std::memcpy(to, from, bytes);
}

__attribute__((target("avx"))) void stream_loop(std::byte* to, const std::byte* from, size_t bytes) {
    const size_t head = (32 - reinterpret_cast<uintptr_t>(to) % 32) % 32;  // streaming stores want alignment
    std::memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    for (; bytes >= 128; bytes -= 128, to += 128, from += 128) {
        const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
        const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 64));
        const __m256i d = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 96));
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to), a);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + 32), b);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + 64), c);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + 96), d);
    }
    _mm_sfence();  // streaming stores are weakly ordered: make them visible before any later release
    _mm256_zeroupper();
    std::memcpy(to, from, bytes);
}

#endif

}  // namespace

void copy_cached(void* to, const void* from, size_t bytes) {
#if defined(__x86_64__)
    if (have_avx && bytes >= kLoopFrom)
        return cached_loop(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
#endif
    if (bytes) std::memcpy(to, from, bytes);
}

void copy_streaming(void* to, const void* from, size_t bytes) {
#if defined(__x86_64__)
    if (have_avx && bytes >= kLoopFrom)
        return stream_loop(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
#endif
    if (bytes) std::memcpy(to, from, bytes);
}

}  // namespace cobre

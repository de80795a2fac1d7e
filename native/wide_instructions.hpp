// Whether instructions beyond those of every processor of this architecture may be used, and packs of numbers for them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace cobre {

// Looked up when the library is loaded. `cobre verify` shows that the bits are the same without them.
inline bool wide_instructions_allowed() {
    const char* value = std::getenv("COBRE_WIDE_INSTRUCTIONS");
    return value == nullptr || std::strcmp(value, "0") != 0;
}

#if defined(__x86_64__)

// Asked of the processor itself: the run-time library of some compilers lacks what __builtin_cpu_supports looks up.
// AVX also needs the system to save the wide registers, which XGETBV tells (bits 1 and 2: SSE and AVX state).
inline bool has_avx() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0 || (c & bit_AVX) == 0) return false;
    unsigned low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & 6u) == 6u;
}

inline bool has_avx2() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return has_avx() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_AVX2) != 0;
}

// LZCNT and POPCNT came together (AMD: ABM).
inline bool has_lzcnt() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & bit_LZCNT) != 0;
}

#endif

// Packs of elements side by side.
struct One {
    using Numbers = double;
    static constexpr size_t lanes = 1;
};
struct Two {
    typedef double Numbers __attribute__((vector_size(16)));
    static constexpr size_t lanes = 2;
};
struct Four {
    typedef double Numbers __attribute__((vector_size(32)));
    static constexpr size_t lanes = 4;
};

}  // namespace cobre

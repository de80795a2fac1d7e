#include "reduce.hpp"

#include "wide_instructions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace cobre {
namespace {

// IEEE half precision, computed in float: one float operation rounded to half is the correctly rounded half
// operation, because float carries more than twice the digits.
struct Half {
    uint16_t bits;
};

float to_float(Half half) {
    const uint32_t sign = uint32_t{half.bits & 0x8000u} << 16;
    const uint32_t exponent = (half.bits >> 10) & 0x1fu;
    const uint32_t fraction = half.bits & 0x3ffu;
    if (exponent == 0) {
        const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
        return sign ? -magnitude : magnitude;
    }
    const uint32_t wide = exponent == 31 ? 0xffu : exponent + 112;
    return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

Half to_half(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude >= 0x7f800000u) return {static_cast<uint16_t>(sign | (magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u))};
    if (magnitude < 0x38800000u) {  // subnormal in half: the hardware rounds to nearest even
        const float scaled = std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f);
        return {static_cast<uint16_t>(sign | static_cast<uint16_t>(scaled))};
    }
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23);
    return {static_cast<uint16_t>(sign | std::min(rounded >> 13, 0x7c00u))};
}

// The unsigned integer with the bits of a float or double; nothing for other types.
template <typename T>
using Bits = std::conditional_t<std::is_same_v<T, float>, uint32_t,
                                std::conditional_t<std::is_same_v<T, double>, uint64_t, void>>;

template <typename T>
struct Arithmetic {
    static constexpr bool has_bits = !std::is_void_v<Bits<T>>;

    static T sum(T a, T b) {
        if constexpr (std::is_integral_v<T>) {
            using Wide = std::make_unsigned_t<T>;
            return static_cast<T>(static_cast<Wide>(static_cast<Wide>(a) + static_cast<Wide>(b)));  // integers wrap
        } else {
            return a + b;
        }
    }
    // A NaN wins, and -0.0 < 0.0. Equal numbers differ at most in the sign of a zero, which `or` keeps and `and`
    // drops; what is neither less, greater nor equal holds a NaN, and so does the sum. No branches: it vectorises.
    static T min(T a, T b) {
        if constexpr (has_bits) return a < b ? a : b < a ? b : a == b ? bit_or(a, b) : a + b;
        else if constexpr (std::is_floating_point_v<T>)
            return a < b ? a : b < a ? b : a == b ? (std::signbit(a) ? a : b) : a + b;
        else return b < a ? b : a;
    }
    static T max(T a, T b) {
        if constexpr (has_bits) return a > b ? a : b > a ? b : a == b ? bit_and(a, b) : a + b;
        else if constexpr (std::is_floating_point_v<T>)
            return a > b ? a : b > a ? b : a == b ? (std::signbit(a) ? b : a) : a + b;
        else return a < b ? b : a;
    }
    static T canonical(T a) {
        if constexpr (std::is_floating_point_v<T>) return a != a ? std::numeric_limits<T>::quiet_NaN() : a;
        return a;
    }

private:
    static T bit_or(T a, T b) {
        if constexpr (has_bits) return std::bit_cast<T>(std::bit_cast<Bits<T>>(a) | std::bit_cast<Bits<T>>(b));
        return a;
    }
    static T bit_and(T a, T b) {
        if constexpr (has_bits) return std::bit_cast<T>(std::bit_cast<Bits<T>>(a) & std::bit_cast<Bits<T>>(b));
        return a;
    }
};

template <typename T>
struct Arithmetic<std::complex<T>> {
    using C = std::complex<T>;
    static C sum(C a, C b) { return a + b; }
    static C canonical(C a) { return {Arithmetic<T>::canonical(a.real()), Arithmetic<T>::canonical(a.imag())}; }
};

template <>
struct Arithmetic<Half> {
    using F = Arithmetic<float>;
    static Half sum(Half a, Half b) { return to_half(F::sum(to_float(a), to_float(b))); }
    static Half min(Half a, Half b) { return to_half(F::min(to_float(a), to_float(b))); }
    static Half max(Half a, Half b) { return to_half(F::max(to_float(a), to_float(b))); }
    static Half canonical(Half a) { return (a.bits & 0x7fffu) > 0x7c00u ? Half{0x7e00u} : a; }
};

// out = ((in[0] op in[1]) op in[2]) ... for N inputs in one pass over memory.
template <size_t N, typename T, typename Combine>
[[gnu::always_inline]] inline void fold_pass(const void* const* inputs, T* out, size_t count, Combine combine) {
    const T* in[N];
    for (size_t rank = 0; rank < N; ++rank) in[rank] = static_cast<const T*>(inputs[rank]);
#pragma GCC ivdep  // `out` may be one of the inputs, but then at the same index
    for (size_t i = 0; i < count; ++i) {
        T value = in[0][i];
        for (size_t rank = 1; rank < N; ++rank) value = combine(value, in[rank][i]);
        out[i] = Arithmetic<T>::canonical(value);  // once a NaN, always a NaN: settling early changes nothing
    }
}

template <size_t N, typename T, typename Combine>
void fold_plain(const void* const* inputs, T* out, size_t count, Combine combine) {
    fold_pass<N>(inputs, out, count, combine);
}

#if defined(__x86_64__)
// The same loop with wider registers. Element by element the same operations, so the same bits.
const bool have_avx2 = wide_instructions_allowed() && has_avx2();

template <size_t N, typename T, typename Combine>
[[gnu::target("avx2")]] void fold_wide(const void* const* inputs, T* out, size_t count, Combine combine) {
    fold_pass<N>(inputs, out, count, combine);
}
#endif

template <size_t N, typename T, typename Combine>
void fold_dispatched(const void* const* inputs, T* out, size_t count, Combine combine) {
#if defined(__x86_64__)
    if (have_avx2) return fold_wide<N>(inputs, out, count, combine);
#endif
    fold_plain<N>(inputs, out, count, combine);
}

constexpr size_t kMaxAtOnce = 4;
constexpr size_t kBlockBytes = 32 * 1024;  // of the running result; stays in the first-level cache between passes

// Up to four inputs a pass; with more, the running result is the first input of the next pass.
template <typename T, typename Combine>
void fold_block(const void* const* inputs, size_t ranks, T* out, size_t count, Combine combine) {
    const void* pass_inputs[kMaxAtOnce];
    size_t folded = 0;
    while (folded < ranks) {
        size_t pass_size = 0;
        if (folded > 0) pass_inputs[pass_size++] = out;
        while (pass_size < kMaxAtOnce && folded < ranks) pass_inputs[pass_size++] = inputs[folded++];
        if (pass_size == 2) fold_dispatched<2>(pass_inputs, out, count, combine);
        if (pass_size == 3) fold_dispatched<3>(pass_inputs, out, count, combine);
        if (pass_size == 4) fold_dispatched<4>(pass_inputs, out, count, combine);
    }
}

template <typename T, typename Combine>
void fold_with(const void* const* inputs, size_t ranks, void* out, size_t count, Combine combine) {
    auto* result = static_cast<T*>(out);
    if (ranks <= kMaxAtOnce) return fold_block(inputs, ranks, result, count, combine);
    // `out` may be a later input than those of the first pass: then fold in a buffer of our own.
    constexpr size_t block = kBlockBytes / sizeof(T);
    T running[block];
    std::vector<const void*> block_inputs(ranks);
    for (size_t begin = 0; begin < count; begin += block) {
        const size_t length = std::min(block, count - begin);
        for (size_t rank = 0; rank < ranks; ++rank) block_inputs[rank] = static_cast<const T*>(inputs[rank]) + begin;
        fold_block(block_inputs.data(), ranks, running, length, combine);
        std::memcpy(result + begin, running, length * sizeof(T));
    }
}

template <typename T>
void fold_typed(ReduceOp op, const void* const* inputs, size_t ranks, void* out, size_t count) {
    using A = Arithmetic<T>;
    if (ranks == 1 && std::is_integral_v<T>) {
        std::memmove(out, inputs[0], count * sizeof(T));
        return;
    }
    if (ranks == 1) return fold_dispatched<1>(inputs, static_cast<T*>(out), count, [](T a, T) { return a; });
    if (op == ReduceOp::sum) return fold_with<T>(inputs, ranks, out, count, [](T a, T b) { return A::sum(a, b); });
    if constexpr (requires(T a) { A::min(a, a); }) {
        if (op == ReduceOp::min) return fold_with<T>(inputs, ranks, out, count, [](T a, T b) { return A::min(a, b); });
        fold_with<T>(inputs, ranks, out, count, [](T a, T b) { return A::max(a, b); });
    }
}

}  // namespace

bool is_reducible(ElementType element, ReduceOp op) {
    if (element == ElementType::none || element == ElementType::boolean) return false;
    const bool complex = element == ElementType::complex64 || element == ElementType::complex128 ||
                         element == ElementType::complex_long_double;
    return !complex || op == ReduceOp::sum;
}

void fold(ElementType element, ReduceOp op, const void* const* inputs, size_t ranks, void* out, size_t count) {
    switch (element) {
        case ElementType::int8: return fold_typed<int8_t>(op, inputs, ranks, out, count);
        case ElementType::int16: return fold_typed<int16_t>(op, inputs, ranks, out, count);
        case ElementType::int32: return fold_typed<int32_t>(op, inputs, ranks, out, count);
        case ElementType::int64: return fold_typed<int64_t>(op, inputs, ranks, out, count);
        case ElementType::uint8: return fold_typed<uint8_t>(op, inputs, ranks, out, count);
        case ElementType::uint16: return fold_typed<uint16_t>(op, inputs, ranks, out, count);
        case ElementType::uint32: return fold_typed<uint32_t>(op, inputs, ranks, out, count);
        case ElementType::uint64: return fold_typed<uint64_t>(op, inputs, ranks, out, count);
        case ElementType::float16: return fold_typed<Half>(op, inputs, ranks, out, count);
        case ElementType::float32: return fold_typed<float>(op, inputs, ranks, out, count);
        case ElementType::float64: return fold_typed<double>(op, inputs, ranks, out, count);
        case ElementType::long_double: return fold_typed<long double>(op, inputs, ranks, out, count);
        case ElementType::complex64: return fold_typed<std::complex<float>>(op, inputs, ranks, out, count);
        case ElementType::complex128: return fold_typed<std::complex<double>>(op, inputs, ranks, out, count);
        case ElementType::complex_long_double:
            return fold_typed<std::complex<long double>>(op, inputs, ranks, out, count);
        case ElementType::none:
        case ElementType::boolean: break;
    }
}

}  // namespace cobre

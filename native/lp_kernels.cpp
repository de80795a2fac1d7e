#include "lp_kernels.hpp"

#include <algorithm>
#include <limits>

#include "wide_instructions.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cobre::lp {

namespace {

// The eight sums of the wide version, lane by lane: the same additions in the same order, so the same bits.
double dot_plain(const double* a, const double* b, size_t n) {
    double sums[8] = {};
    size_t at = 0;
    for (; at + 8 <= n; at += 8)
        for (size_t lane = 0; lane < 8; ++lane) sums[lane] += a[at + lane] * b[at + lane];
    for (size_t lane = 0; at < n; ++at, ++lane) sums[lane] += a[at] * b[at];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

void add_scaled_plain(double* __restrict y, double factor, const double* __restrict x, size_t n) {
    for (size_t at = 0; at < n; ++at) y[at] += factor * x[at];
}

void add_scaled_rows_plain(const double* base, double* y, const double* factors, const double* const* rows,
                           size_t count, size_t n) {
    if (base != y) std::copy(base, base + n, y);
    for (size_t row = 0; row < count; ++row) add_scaled_plain(y, factors[row], rows[row], n);
}

// One block of sums; whether some are above the limit.
bool has_sums_above(double limit, const double* base, const double* factors, const double* const* rows, size_t count,
                    size_t at, size_t n, double* sums) {
    const size_t size = std::min(kSumsPerBlock, n - at);
    std::fill(std::copy(base + at, base + at + size, sums), sums + kSumsPerBlock,
              -std::numeric_limits<double>::infinity());
    for (size_t row = 0; row < count; ++row) add_scaled_plain(sums, factors[row], rows[row] + at, size);
    return std::any_of(sums, sums + size, [limit](double sum) { return sum > limit; });
}

size_t next_above_plain(const double* a, const double* b, double limit, size_t at, size_t n) {
    while (at < n && !(a[at] + b[at] > limit)) ++at;
    return at;
}

#if defined(__x86_64__)

// Looked up once: kernels are called millions of times a second.
const bool use_avx2 = wide_instructions_allowed() && has_avx2();

__attribute__((target("avx2"))) inline __m256i first_lanes(size_t count) {
    const __m256i wanted = _mm256_set1_epi64x(static_cast<long long>(count));
    return _mm256_cmpgt_epi64(wanted, _mm256_setr_epi64x(0, 1, 2, 3));
}

// Lanes past the end add 0, which changes no running sum: none is ever -0.
__attribute__((target("avx2"))) inline double dot_wide(const double* a, const double* b, size_t n) {
    __m256d low = _mm256_setzero_pd(), high = _mm256_setzero_pd();
    size_t at = 0;
    for (; at + 8 <= n; at += 8) {
        low = _mm256_add_pd(low, _mm256_mul_pd(_mm256_loadu_pd(a + at), _mm256_loadu_pd(b + at)));
        high = _mm256_add_pd(high, _mm256_mul_pd(_mm256_loadu_pd(a + at + 4), _mm256_loadu_pd(b + at + 4)));
    }
    if (const size_t left = n - at; left > 0) {
        const __m256i mask = first_lanes(left);
        low = _mm256_add_pd(low, _mm256_mul_pd(_mm256_maskload_pd(a + at, mask), _mm256_maskload_pd(b + at, mask)));
        if (left > 4) {
            const __m256i rest = first_lanes(left - 4);
            high = _mm256_add_pd(
                high, _mm256_mul_pd(_mm256_maskload_pd(a + at + 4, rest), _mm256_maskload_pd(b + at + 4, rest)));
        }
    }
    // (s0 + s1, s4 + s5, s2 + s3, s6 + s7)
    const __m256d pairs = _mm256_hadd_pd(low, high);
    const __m128d fours = _mm_add_pd(_mm256_castpd256_pd128(pairs), _mm256_extractf128_pd(pairs, 1));
    return _mm_cvtsd_f64(fours) + _mm_cvtsd_f64(_mm_unpackhi_pd(fours, fours));
}

__attribute__((target("avx2"))) double dot_once(const double* a, const double* b, size_t n) {
    return dot_wide(a, b, n);
}

__attribute__((target("avx2"))) void multiply_wide(const double* matrix, size_t stride, const double* x, double* out,
                                                   size_t rows, size_t n) {
    for (size_t row = 0; row < rows; ++row) out[row] = dot_wide(matrix + row * stride, x, n);
}

__attribute__((target("avx2"))) void add_scaled_wide(double* y, double factor, const double* x, size_t n) {
    const __m256d factors = _mm256_set1_pd(factor);
    size_t at = 0;
    for (; at + 4 <= n; at += 4)
        _mm256_storeu_pd(y + at,
                         _mm256_add_pd(_mm256_loadu_pd(y + at), _mm256_mul_pd(factors, _mm256_loadu_pd(x + at))));
    for (; at < n; ++at) y[at] += factor * x[at];
}

// Sums of `vectors` vectors of four, in registers while the rows take turns.
template <size_t vectors>
__attribute__((target("avx2"), always_inline)) inline void sum_rows(const double* base, const double* factors,
                                                                    const double* const* rows, size_t count, size_t at,
                                                                    __m256d* sums) {
    for (size_t part = 0; part < vectors; ++part) sums[part] = _mm256_loadu_pd(base + at + 4 * part);
    for (size_t row = 0; row < count; ++row) {
        const __m256d factor = _mm256_set1_pd(factors[row]);
        const double* const x = rows[row] + at;
        for (size_t part = 0; part < vectors; ++part)
            sums[part] = _mm256_add_pd(sums[part], _mm256_mul_pd(factor, _mm256_loadu_pd(x + 4 * part)));
    }
}

constexpr size_t kBlockVectors = kSumsPerBlock / 4;

__attribute__((target("avx2"))) void add_scaled_rows_wide(const double* base, double* y, const double* factors,
                                                          const double* const* rows, size_t count, size_t n) {
    size_t at = 0;
    for (; at + kSumsPerBlock <= n; at += kSumsPerBlock) {
        __m256d sums[kBlockVectors];
        sum_rows<kBlockVectors>(base, factors, rows, count, at, sums);
        for (size_t part = 0; part < kBlockVectors; ++part) _mm256_storeu_pd(y + at + 4 * part, sums[part]);
    }
    for (; at + 4 <= n; at += 4) {
        __m256d sums[1];
        sum_rows<1>(base, factors, rows, count, at, sums);
        _mm256_storeu_pd(y + at, sums[0]);
    }
    for (; at < n; ++at) {
        double sum = base[at];
        for (size_t row = 0; row < count; ++row) sum += factors[row] * rows[row][at];
        y[at] = sum;
    }
}

__attribute__((target("avx2"))) size_t next_sums_above_wide(double limit, const double* base, const double* factors,
                                                            const double* const* rows, size_t count, size_t at,
                                                            size_t n, double* out) {
    const __m256d limits = _mm256_set1_pd(limit);
    for (; at + kSumsPerBlock <= n; at += kSumsPerBlock) {
        __m256d sums[kBlockVectors];
        sum_rows<kBlockVectors>(base, factors, rows, count, at, sums);
        __m256d any = _mm256_setzero_pd();
        for (const __m256d& sum : sums) any = _mm256_or_pd(any, _mm256_cmp_pd(sum, limits, _CMP_GT_OQ));
        if (_mm256_movemask_pd(any) == 0) continue;
        for (size_t part = 0; part < kBlockVectors; ++part) _mm256_storeu_pd(out + 4 * part, sums[part]);
        return at;
    }
    return at < n && has_sums_above(limit, base, factors, rows, count, at, n, out) ? at : n;
}

__attribute__((target("avx2"))) size_t next_above_wide(const double* a, const double* b, double limit, size_t at,
                                                       size_t n) {
    const __m256d limits = _mm256_set1_pd(limit);
    for (; at + 16 <= n; at += 16) {
        __m256d any = _mm256_setzero_pd();
        for (size_t part = at; part < at + 16; part += 4) {
            const __m256d sum = _mm256_add_pd(_mm256_loadu_pd(a + part), _mm256_loadu_pd(b + part));
            any = _mm256_or_pd(any, _mm256_cmp_pd(sum, limits, _CMP_GT_OQ));
        }
        if (_mm256_movemask_pd(any) != 0) break;
    }
    return next_above_plain(a, b, limit, at, n);
}

#endif

}  // namespace

double dot(const double* a, const double* b, size_t n) {
#if defined(__x86_64__)
    if (use_avx2) return dot_once(a, b, n);
#endif
    return dot_plain(a, b, n);
}

void multiply(const double* matrix, size_t stride, const double* x, double* out, size_t rows, size_t n) {
#if defined(__x86_64__)
    if (use_avx2) return multiply_wide(matrix, stride, x, out, rows, n);
#endif
    for (size_t row = 0; row < rows; ++row) out[row] = dot_plain(matrix + row * stride, x, n);
}

void add_scaled(double* y, double factor, const double* x, size_t n) {
#if defined(__x86_64__)
    if (use_avx2) return add_scaled_wide(y, factor, x, n);
#endif
    add_scaled_plain(y, factor, x, n);
}

void add_scaled_rows(const double* base, double* y, const double* factors, const double* const* rows, size_t count,
                     size_t n) {
#if defined(__x86_64__)
    if (use_avx2) return add_scaled_rows_wide(base, y, factors, rows, count, n);
#endif
    add_scaled_rows_plain(base, y, factors, rows, count, n);
}

size_t next_sums_above(double limit, const double* base, const double* factors, const double* const* rows, size_t count,
                       size_t from, size_t n, double* sums) {
#if defined(__x86_64__)
    if (use_avx2) return next_sums_above_wide(limit, base, factors, rows, count, from, n, sums);
#endif
    while (from < n && !has_sums_above(limit, base, factors, rows, count, from, n, sums)) from += kSumsPerBlock;
    return from;
}

size_t next_above(const double* a, const double* b, double limit, size_t from, size_t n) {
#if defined(__x86_64__)
    if (use_avx2) return next_above_wide(a, b, limit, from, n);
#endif
    return next_above_plain(a, b, limit, from, n);
}

}  // namespace cobre::lp

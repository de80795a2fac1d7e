#include "lp_kernels.hpp"

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

}  // namespace cobre::lp

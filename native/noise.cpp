// Numbers behind the noise of a study: rotations of correlation matrices, and standard normals. Plain arithmetic in a
// fixed order, so that bits are the same on every processor.
#include <nanobind/ndarray.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "jacobi.hpp"
#include "wide_instructions.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre::noise {
namespace {

using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// Of prepared cases, whose arrays are read-only pages of a file.
using ConstMatrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Words = nb::ndarray<uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MessageTable = nb::ndarray<const uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Increments = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
__extension__ typedef unsigned __int128 Wide;

// Kernels, compiled for every processor and for AVX2: element by element, so that bits are the same.
[[gnu::always_inline]] inline void add_products_body(double* __restrict total, double factor, double scale,
                                                     const double* __restrict values, size_t count) {
    for (size_t k = 0; k < count; ++k) total[k] = total[k] + scale * (factor * values[k]);
}

// A draw times a matrix: sums of its rows, weighted by the draw, from the first row on. Each strip of columns stays in
// registers from the first row to the last.
constexpr size_t kPacks = 6;

template <typename Pack, size_t packs>
[[gnu::always_inline]] inline void mix_strip(const double* draw, size_t rows, const double* matrix, size_t stride,
                                             double* out) {
    using Numbers = typename Pack::Numbers;
    Numbers total[packs]{};
    for (size_t row = 0; row < rows; ++row, matrix += stride)
        for (size_t k = 0; k < packs; ++k) {
            Numbers values;
            std::memcpy(&values, matrix + k * Pack::lanes, sizeof values);
            total[k] = total[k] + draw[row] * values;
        }
    std::memcpy(out, total, sizeof total);
}

template <typename Pack>
[[gnu::always_inline]] inline void mix_draw_body(const double* draw, size_t rows, const double* matrix, size_t columns,
                                                 double* out) {
    constexpr size_t strip = kPacks * Pack::lanes;
    size_t column = 0;
    for (; column + strip <= columns; column += strip)
        mix_strip<Pack, kPacks>(draw, rows, matrix + column, columns, out + column);
    for (; column + Pack::lanes <= columns; column += Pack::lanes)
        mix_strip<Pack, 1>(draw, rows, matrix + column, columns, out + column);
    for (; column < columns; ++column) mix_strip<One, 1>(draw, rows, matrix + column, columns, out + column);
}

#if defined(__x86_64__)
const bool use_avx2 = wide_instructions_allowed() && has_avx2();
#define COBRE_WIDE __attribute__((target("avx2")))
#else
constexpr bool use_avx2 = false;
#define COBRE_WIDE
#endif

COBRE_WIDE void add_products_wide(double* total, double factor, double scale, const double* values, size_t count) {
    add_products_body(total, factor, scale, values, count);
}
COBRE_WIDE void mix_draw_wide(const double* draw, size_t rows, const double* matrix, size_t columns, double* out) {
    mix_draw_body<Four>(draw, rows, matrix, columns, out);
}

void add_products(double* total, double factor, double scale, const double* values, size_t count) {
    if (use_avx2) return add_products_wide(total, factor, scale, values, count);
    add_products_body(total, factor, scale, values, count);
}
void mix_draw(const double* draw, size_t rows, const double* matrix, size_t columns, double* out) {
    if (use_avx2) return mix_draw_wide(draw, rows, matrix, columns, out);
    mix_draw_body<Two>(draw, rows, matrix, columns, out);
}

// The published layers of the ziggurat: widths from the widest on, and the density at each.
struct Layers {
    const double* widths;
    const double* heights;
    double tail_start;
};

// PCG64 (XSL-RR, 128/64), and standard normals from it.
class Generator {
public:
    Generator(uint64_t high, uint64_t low, uint64_t increment_high, uint64_t increment_low)
        : state_(Wide{high} << 64 | low), increment_(Wide{increment_high} << 64 | increment_low) {}

    uint64_t high() const { return static_cast<uint64_t>(state_ >> 64); }
    uint64_t low() const { return static_cast<uint64_t>(state_); }

    // The step that PCG64 makes when it is seeded.
    void begin() {
        state_ += increment_;
        next();
    }

    double normal(const Layers& layers) {
        while (true) {
            const uint64_t bits = next();
            const size_t layer = bits & 0xFF;
            // The top 52 bits as the mantissa of a number in [2, 4), minus 3.
            const double unit = std::bit_cast<double>((bits >> 12) | uint64_t{0x4000000000000000}) - 3.0;
            const double value = unit * layers.widths[layer];
            if (std::abs(value) < layers.widths[layer + 1]) return value;
            if (layer == 0) return tail(layers.tail_start, unit);
            const double above = layers.heights[layer], below = layers.heights[layer + 1];
            const double height = below + (above - below) * (static_cast<double>(next() >> 11) * 0x1p-53);
            if (height < std::exp(-value * value / 2.0)) return value;
        }
    }

private:
    uint64_t next() {
        constexpr Wide kMultiplier = Wide{0x2360ED051FC65DA4} << 64 | 0x4385DF649FCCF645;
        state_ = state_ * kMultiplier + increment_;
        return std::rotr(high() ^ low(), static_cast<int>(high() >> 58));
    }

    double tail(double start, double unit) {
        double x = 1.0, y = 0.0;
        while (-2.0 * y < x * x) {
            x = std::log(open_unit()) / start;
            y = std::log(open_unit());
        }
        return unit < 0.0 ? x - start : start - x;
    }

    // A number strictly between 0 and 1: odd multiples of 2^-53.
    double open_unit() { return static_cast<double>(2 * (next() >> 12) + 1) * 0x1p-53; }

    Wide state_, increment_;
};

void diagonalise_matrix(Matrix work, Matrix vectors, int max_sweeps) {
    const size_t count = work.shape(0);
    if (work.shape(1) != count || vectors.shape(0) != count || vectors.shape(1) != count)
        throw nb::value_error("diagonalise: the matrices must be square and of one size");
    nb::gil_scoped_release unlocked;
    diagonalise(work.data(), vectors.data(), count, max_sweeps);
}

// Sums of scaled outer products of the rows of `vectors`, one after the other.
void add_outer_products(Matrix vectors, Vector scales, Matrix out) {
    const size_t count = out.shape(0), terms = vectors.shape(0);
    if (out.shape(1) != count || vectors.shape(1) != count || scales.size() != terms)
        throw nb::value_error("add_outer_products: a scale and a row of the matrix's size for each term");
    nb::gil_scoped_release unlocked;
    for (size_t row = 0; row < count; ++row) {
        double* line = out.data() + row * count;
        for (size_t term = 0; term < terms; ++term) {
            const double* values = vectors.data() + term * count;
            add_products(line + row, values[row], scales.data()[term], values + row, count - row);
        }
    }
    for (size_t row = 0; row < count; ++row)
        for (size_t column = 0; column < row; ++column)
            out.data()[row * count + column] = out.data()[column * count + row];
}

// Rows of `out`: sums of the rows of `transposed`, weighted by a draw, from the first on.
void mix(ConstMatrix draws, ConstMatrix transposed, Matrix out) {
    const size_t count = transposed.shape(0), width = transposed.shape(1);
    if (draws.shape(1) != count || out.shape(0) != draws.shape(0) || out.shape(1) != width)
        throw nb::value_error("mix: draws of as many numbers as the matrix has rows, and room for the results");
    nb::gil_scoped_release unlocked;
    for (size_t draw = 0; draw < draws.shape(0); ++draw)
        mix_draw(draws.data() + draw * count, count, transposed.data(), width, out.data() + draw * width);
}

void draw_normals(Words high, Words low, Increments increment_high, Increments increment_low, Vector widths,
                  Vector heights, double tail_start, Matrix out) {
    const size_t streams = out.shape(0), dimension = out.shape(1);
    for (const size_t length : {high.size(), low.size(), increment_high.size(), increment_low.size()})
        if (length != streams) throw nb::value_error("draw_normals: a state and an increment for each row");
    if (widths.size() != 257 || heights.size() != 257) throw nb::value_error("draw_normals: tables of 257 numbers");
    const Layers layers{widths.data(), heights.data(), tail_start};
    nb::gil_scoped_release unlocked;
    for (size_t stream = 0; stream < streams; ++stream) {
        Generator generator(high.data()[stream], low.data()[stream], increment_high.data()[stream],
                            increment_low.data()[stream]);
        double* row = out.data() + stream * dimension;
        for (size_t column = 0; column < dimension; ++column) row[column] = generator.normal(layers);
        high.data()[stream] = generator.high();
        low.data()[stream] = generator.low();
    }
}

// The small generator that stretches a 64-bit seed to the 256 bits of a state: eight outputs, low half first.
struct Expansion {
    uint64_t state;

    uint64_t half() {
        state = state * 6364136223846793005u + 11634580027462260723u;
        return std::rotr(static_cast<uint32_t>(((state >> 18) ^ state) >> 27), static_cast<int>(state >> 59));
    }
    uint64_t word() {
        const uint64_t low = half();
        return low | half() << 32;
    }
};

// States and increments of PCG64 generators, one for each seed.
void seed_streams(Increments seeds, Words high, Words low, Words increment_high, Words increment_low) {
    const size_t streams = seeds.size();
    for (const size_t length : {high.size(), low.size(), increment_high.size(), increment_low.size()})
        if (length != streams) throw nb::value_error("seed_streams: room for a state and an increment of each seed");
    for (size_t stream = 0; stream < streams; ++stream) {
        Expansion expansion{seeds.data()[stream]};
        uint64_t words[4];
        for (uint64_t& word : words) word = expansion.word();
        Generator generator(words[1], words[0], words[3], words[2] | 1);
        generator.begin();
        high.data()[stream] = generator.high();
        low.data()[stream] = generator.low();
        increment_high.data()[stream] = words[3];
        increment_low.data()[stream] = words[2] | 1;
    }
}

// SipHash-1-3 with both keys zero.
class SipHash {
public:
    void add(uint64_t word) {
        v3_ ^= word;
        mix();
        v0_ ^= word;
    }

    uint64_t finish() {
        v2_ ^= 0xFF;
        for (int round = 0; round < 3; ++round) mix();
        return v0_ ^ v1_ ^ v2_ ^ v3_;
    }

private:
    void mix() {
        v0_ += v1_;
        v1_ = std::rotl(v1_, 13) ^ v0_;
        v0_ = std::rotl(v0_, 32);
        v2_ += v3_;
        v3_ = std::rotl(v3_, 16) ^ v2_;
        v0_ += v3_;
        v3_ = std::rotl(v3_, 21) ^ v0_;
        v2_ += v1_;
        v1_ = std::rotl(v1_, 17) ^ v2_;
        v2_ = std::rotl(v2_, 32);
    }

    // The letters "somepseudorandomlygeneratedbytes", as the definition has them.
    uint64_t v0_ = 0x736F6D6570736575, v1_ = 0x646F72616E646F6D, v2_ = 0x6C7967656E657261, v3_ = 0x7465646279746573;
};

// Hashes of messages, one in each column of the table.
void siphash13(MessageTable messages, Words out) {
    const size_t length = messages.shape(0), count = messages.shape(1);
    if (out.size() != count) throw nb::value_error("siphash13: room for a hash of each message");
    for (size_t message = 0; message < count; ++message) {
        SipHash hash;
        for (size_t word = 0; word < length; ++word) hash.add(messages.data()[word * count + message]);
        out.data()[message] = hash.finish();
    }
}

}  // namespace

void bind_noise(nb::module_& module) {
    module.def("seed_streams", &seed_streams, "seeds"_a.noconvert(), "high"_a.noconvert(), "low"_a.noconvert(),
               "increment_high"_a.noconvert(), "increment_low"_a.noconvert());
    module.def("siphash13", &siphash13, "messages"_a.noconvert(), "out"_a.noconvert());
    module.def("diagonalise", &diagonalise_matrix, "work"_a.noconvert(), "vectors"_a.noconvert(), "max_sweeps"_a);
    module.def("add_outer_products", &add_outer_products, "vectors"_a.noconvert(), "scales"_a.noconvert(),
               "out"_a.noconvert());
    module.def("mix", &mix, "draws"_a.noconvert(), "transposed"_a.noconvert(), "out"_a.noconvert());
    module.def("draw_normals", &draw_normals, "high"_a.noconvert(), "low"_a.noconvert(), "increment_high"_a.noconvert(),
               "increment_low"_a.noconvert(), "widths"_a.noconvert(), "heights"_a.noconvert(), "tail_start"_a,
               "out"_a.noconvert());
}

}  // namespace cobre::noise

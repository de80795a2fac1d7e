#include "noise.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "wide_instructions.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre::noise {
namespace {

using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Words = nb::ndarray<uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MessageTable = nb::ndarray<const uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Increments = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
__extension__ typedef unsigned __int128 Wide;

constexpr double kNegligible = 1e-15;

struct Turn {
    size_t p, q;
    double cosine, sine;
};

// Kernels, compiled for every processor and for AVX2: element by element, so that bits are the same.
struct Line {
    const double* from;  // elements of the players of the upper half of the table; those of their opponents follow
    double* to;
    const double *cosine, *sine;
    const uint64_t* is_on;  // all bits or none
    size_t half;
};

[[gnu::always_inline]] inline void turn_pair(const Turn& turn, double& first, double& second) {
    const double turned = turn.cosine * first - turn.sine * second;
    second = turn.sine * first + turn.cosine * second;
    first = turned;
}

[[gnu::always_inline]] inline void turn_lines_body(const Turn& turn, double* __restrict first,
                                                   double* __restrict second, size_t count) {
    for (size_t column = 0; column < count; ++column) turn_pair(turn, first[column], second[column]);
}

[[gnu::always_inline]] inline double chosen(uint64_t mask, double value, double otherwise) {
    return std::bit_cast<double>((std::bit_cast<uint64_t>(value) & mask) |
                                 (std::bit_cast<uint64_t>(otherwise) & ~mask));
}

// Turns all pairs of a line, and puts its elements where the next round wants them: the first player stays, the others
// go one place on, the last of the upper half over to the opponents, and their first to the upper half.
[[gnu::always_inline]] inline void turn_within_body(const Line& line) {
    const size_t half = line.half;
    const double* __restrict x = line.from, * __restrict y = line.from + half;
    const double* __restrict cosine = line.cosine, * __restrict sine = line.sine;
    const uint64_t* __restrict is_on = line.is_on;
    const auto turned = [&](size_t k) { return chosen(is_on[k], cosine[k] * x[k] - sine[k] * y[k], x[k]); };
    const auto other = [&](size_t k) { return chosen(is_on[k], sine[k] * x[k] + cosine[k] * y[k], y[k]); };
    if (half == 1) {
        line.to[0] = turned(0);
        line.to[1] = other(0);
        return;
    }
    line.to[0] = turned(0);
    line.to[1] = other(0);
    double* __restrict upper = line.to + 1, * __restrict lower = line.to + half - 1;
    for (size_t k = 1; k + 1 < half; ++k) {
        upper[k] = turned(k);
        lower[k] = other(k);
    }
    lower[half - 1] = other(half - 1);
    line.to[2 * half - 1] = turned(half - 1);
}

[[gnu::always_inline]] inline void add_products_body(double* __restrict total, double factor, double scale,
                                                     const double* __restrict values, size_t count) {
    for (size_t k = 0; k < count; ++k) total[k] = total[k] + scale * (factor * values[k]);
}

[[gnu::always_inline]] inline void add_scaled_body(double* __restrict total, double factor,
                                                   const double* __restrict values, size_t count) {
    for (size_t k = 0; k < count; ++k) total[k] = total[k] + factor * values[k];
}

#if defined(__x86_64__)
const bool use_avx2 = wide_instructions_allowed() && has_avx2();
#define COBRE_WIDE __attribute__((target("avx2")))
#else
constexpr bool use_avx2 = false;
#define COBRE_WIDE
#endif

COBRE_WIDE void turn_lines_wide(const Turn& turn, double* first, double* second, size_t count) {
    turn_lines_body(turn, first, second, count);
}
COBRE_WIDE void turn_within_wide(const Line& line) { turn_within_body(line); }
COBRE_WIDE void add_products_wide(double* total, double factor, double scale, const double* values, size_t count) {
    add_products_body(total, factor, scale, values, count);
}
COBRE_WIDE void add_scaled_wide(double* total, double factor, const double* values, size_t count) {
    add_scaled_body(total, factor, values, count);
}

void turn_lines(const Turn& turn, double* first, double* second, size_t count) {
    if (use_avx2) return turn_lines_wide(turn, first, second, count);
    turn_lines_body(turn, first, second, count);
}
void turn_within(const Line& line) {
    if (use_avx2) return turn_within_wide(line);
    turn_within_body(line);
}
void add_products(double* total, double factor, double scale, const double* values, size_t count) {
    if (use_avx2) return add_products_wide(total, factor, scale, values, count);
    add_products_body(total, factor, scale, values, count);
}
void add_scaled(double* total, double factor, const double* values, size_t count) {
    if (use_avx2) return add_scaled_wide(total, factor, values, count);
    add_scaled_body(total, factor, values, count);
}

// Rotates pairs of axes until the matrix is diagonal. Columns lie in the order of the tournament: first those of the
// upper half of the table, then those of their opponents, so that the pairs of a row are turned side by side.
class Jacobi {
public:
    Jacobi(double* work, double* vectors, size_t count)
        : work_(work), vectors_(vectors), count_(count), half_((count + 1) / 2), width_(2 * half_) {
        for (size_t player = 0; player < width_; ++player) players_.push_back(player);
        cosine_.resize(half_), sine_.resize(half_), is_on_.resize(half_);
        column_of_.resize(width_);
        for (size_t player = 0; player < width_; ++player) column_of_[player] = player;
        table_.assign(count * width_, 0.0), next_.assign(count * width_, 0.0);
        for (size_t row = 0; row < count; ++row) std::copy_n(work + row * count, count, line(row));
    }

    // One turn of every pair, in rounds of disjoint pairs as in a tournament; false when none was worth it.
    bool sweep() {
        bool is_turned = false;
        for (size_t round = 0; round + 1 < width_; ++round) {
            is_turned |= turn_round();
            players_.insert(players_.begin() + 1, players_.back());
            players_.pop_back();
        }
        return is_turned;
    }

    // Writes the matrix back.
    void finish() {
        for (size_t row = 0; row < count_; ++row)
            for (size_t column = 0; column < count_; ++column) work_[row * count_ + column] = at(row, column);
    }

private:
    double* line(size_t row) { return table_.data() + row * width_; }
    double* next_line(size_t row) { return next_.data() + row * width_; }
    double& at(size_t row, size_t column) { return line(row)[column_of_[column]]; }

    // Angles of a round come from the matrix before it. Every round is defined to turn rows, transpose, and turn rows
    // again; instead of moving the elements, `is_transposed_` says how they lie, and columns are turned.
    bool turn_round() {
        turns_.clear();
        std::fill(is_on_.begin(), is_on_.end(), uint64_t{0});
        for (size_t k = 0; k < half_; ++k) {
            const size_t mine = players_[k], theirs = players_[width_ - 1 - k];
            const auto [p, q] = std::minmax(mine, theirs);
            if (q < count_ && add_turn(p, q)) {
                cosine_[k] = turns_.back().cosine;
                sine_[k] = mine == p ? turns_.back().sine : -turns_.back().sine;
                is_on_[k] = ~uint64_t{0};
            }
        }
        if (turns_.empty()) return false;
        for (const Turn& turn : turns_)
            turn_lines(turn, vectors_ + turn.p * count_, vectors_ + turn.q * count_, count_);
        if (turns_.size() * 4 < half_) turn_few();
        else turn_many();
        is_transposed_ = !is_transposed_;
        // What rounding leaves here would be turned again and again.
        for (const Turn& turn : turns_) at(turn.p, turn.q) = at(turn.q, turn.p) = 0.0;
        return true;
    }

    bool add_turn(size_t p, size_t q) {
        const double element = is_transposed_ ? at(q, p) : at(p, q);
        const double left = at(p, p), right = at(q, q);
        const double size = std::max(1.0, std::max(std::abs(left), std::abs(right)));
        if (!(std::abs(element) > kNegligible * size)) return false;
        const double ratio = (right - left) / (2.0 * element);
        const double tangent = std::copysign(1.0, ratio) / (std::abs(ratio) + std::sqrt(ratio * ratio + 1.0));
        const double cosine = 1.0 / std::sqrt(tangent * tangent + 1.0);
        turns_.push_back({p, q, cosine, tangent * cosine});
        return true;
    }

    // A few turns, as in the last sweeps, are made where their columns lie.
    void turn_few() {
        const auto turn_rows = [&] {
            for (const Turn& turn : turns_) turn_lines(turn, line(turn.p), line(turn.q), width_);
        };
        if (!is_transposed_) turn_rows();
        for (size_t row = 0; row < count_; ++row)
            for (const Turn& turn : turns_) turn_pair(turn, at(row, turn.p), at(row, turn.q));
        if (is_transposed_) turn_rows();
    }

    // Pair after pair of rows, each turned and turned within while it is in the cache.
    void turn_many() {
        arrange();
        auto turn = turns_.begin();
        for (size_t k = 0; k < half_; ++k) {
            const size_t rows[] = {players_[k], players_[width_ - 1 - k]};
            if (is_on_[k] && !is_transposed_) turn_lines(*turn, line(turn->p), line(turn->q), width_);
            for (const size_t row : rows)
                if (row < count_)
                    turn_within({line(row), next_line(row), cosine_.data(), sine_.data(), is_on_.data(), half_});
            if (is_on_[k] && is_transposed_) turn_lines(*turn, next_line(turn->p), next_line(turn->q), width_);
            if (is_on_[k]) ++turn;
        }
        table_.swap(next_);
        if (half_ == 1) return;
        for (size_t k = 0; k < half_; ++k) {
            column_of_[players_[k]] = k == 0 ? 0 : k + 1;  // the last of the half goes over to the opponents
            column_of_[players_[width_ - 1 - k]] = k == 0 ? 1 : half_ + k - 1;
        }
        column_of_[players_[half_ - 1]] = width_ - 1;
    }

    // Moves columns to where this round expects them; after a round of many turns they lie so already.
    void arrange() {
        std::vector<size_t> from(width_);
        bool is_arranged = true;
        for (size_t k = 0; k < half_; ++k) {
            from[k] = column_of_[players_[k]];
            from[half_ + k] = column_of_[players_[width_ - 1 - k]];
            is_arranged = is_arranged && from[k] == k && from[half_ + k] == half_ + k;
        }
        if (is_arranged) return;
        std::vector<double> moved(width_);
        for (size_t row = 0; row < count_; ++row) {
            for (size_t k = 0; k < width_; ++k) moved[k] = line(row)[from[k]];
            std::copy(moved.begin(), moved.end(), line(row));
        }
        for (size_t k = 0; k < half_; ++k) {
            column_of_[players_[k]] = k;
            column_of_[players_[width_ - 1 - k]] = half_ + k;
        }
    }

    double* work_;
    double* vectors_;
    size_t count_, half_, width_;
    bool is_transposed_ = false;
    std::vector<size_t> players_, column_of_;
    std::vector<double> table_, next_, cosine_, sine_;
    std::vector<uint64_t> is_on_;
    std::vector<Turn> turns_;
};

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

void diagonalise(Matrix work, Matrix vectors, int max_sweeps) {
    const size_t count = work.shape(0);
    if (work.shape(1) != count || vectors.shape(0) != count || vectors.shape(1) != count)
        throw nb::value_error("diagonalise: the matrices must be square and of one size");
    nb::gil_scoped_release unlocked;
    Jacobi jacobi(work.data(), vectors.data(), count);
    for (int sweep = 0; sweep < max_sweeps && jacobi.sweep(); ++sweep) continue;
    jacobi.finish();
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
void mix(Matrix draws, Matrix transposed, Matrix out) {
    const size_t count = transposed.shape(0), width = transposed.shape(1);
    if (draws.shape(1) != count || out.shape(0) != draws.shape(0) || out.shape(1) != width)
        throw nb::value_error("mix: draws of as many numbers as the matrix has rows, and room for the results");
    nb::gil_scoped_release unlocked;
    for (size_t draw = 0; draw < draws.shape(0); ++draw) {
        double* total = out.data() + draw * width;
        std::fill_n(total, width, 0.0);
        for (size_t row = 0; row < count; ++row)
            add_scaled(total, draws.data()[draw * count + row], transposed.data() + row * width, width);
    }
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
    module.def("diagonalise", &diagonalise, "work"_a.noconvert(), "vectors"_a.noconvert(), "max_sweeps"_a);
    module.def("add_outer_products", &add_outer_products, "vectors"_a.noconvert(), "scales"_a.noconvert(),
               "out"_a.noconvert());
    module.def("mix", &mix, "draws"_a.noconvert(), "transposed"_a.noconvert(), "out"_a.noconvert());
    module.def("draw_normals", &draw_normals, "high"_a.noconvert(), "low"_a.noconvert(), "increment_high"_a.noconvert(),
               "increment_low"_a.noconvert(), "widths"_a.noconvert(), "heights"_a.noconvert(), "tail_start"_a,
               "out"_a.noconvert());
}

}  // namespace cobre::noise

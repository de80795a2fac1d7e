#include "noise.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre::noise {
namespace {

using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Words = nb::ndarray<uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Increments = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
__extension__ typedef unsigned __int128 Wide;

constexpr double kNegligible = 1e-15;

struct Turn {
    size_t p, q;
    double cosine, sine;
};

// Rotates pairs of axes until the matrix is diagonal.
class Jacobi {
public:
    Jacobi(double* work, double* vectors, size_t count) : work_(work), vectors_(vectors), count_(count) {
        for (size_t player = 0; player < count + count % 2; ++player) players_.push_back(player);
    }

    // One turn of every pair, in rounds of disjoint pairs as in a tournament; false when none was worth it.
    bool sweep() {
        bool is_turned = false;
        for (size_t round = 0; round + 1 < players_.size(); ++round) {
            is_turned |= turn_round();
            players_.insert(players_.begin() + 1, players_.back());
            players_.pop_back();
        }
        return is_turned;
    }

private:
    // Angles of a round come from the matrix before it. Every round is defined to turn rows, transpose, and turn rows
    // again; instead of moving the elements, `is_transposed_` says how they lie, and columns are turned.
    bool turn_round() {
        turns_.clear();
        const size_t half = players_.size() / 2;
        for (size_t k = 0; k < half; ++k) {
            const auto [p, q] = std::minmax(players_[k], players_[players_.size() - 1 - k]);
            if (q < count_) add_turn(p, q);
        }
        if (turns_.empty()) return false;
        turn_rows(vectors_);
        if (is_transposed_) turn_columns(work_);
        turn_rows(work_);
        if (!is_transposed_) turn_columns(work_);
        is_transposed_ = !is_transposed_;
        // What rounding leaves here would be turned again and again.
        for (const Turn& turn : turns_) work_[turn.p * count_ + turn.q] = work_[turn.q * count_ + turn.p] = 0.0;
        return true;
    }

    void add_turn(size_t p, size_t q) {
        const double element = is_transposed_ ? work_[q * count_ + p] : work_[p * count_ + q];
        const double left = work_[p * count_ + p], right = work_[q * count_ + q];
        const double size = std::max(1.0, std::max(std::abs(left), std::abs(right)));
        if (!(std::abs(element) > kNegligible * size)) return;
        const double ratio = (right - left) / (2.0 * element);
        const double tangent = std::copysign(1.0, ratio) / (std::abs(ratio) + std::sqrt(ratio * ratio + 1.0));
        const double cosine = 1.0 / std::sqrt(tangent * tangent + 1.0);
        turns_.push_back({p, q, cosine, tangent * cosine});
    }

    void turn_rows(double* matrix) const {
        for (const Turn& turn : turns_) {
            double* __restrict first = matrix + turn.p * count_;
            double* __restrict second = matrix + turn.q * count_;
            for (size_t column = 0; column < count_; ++column) turn_pair(turn, first[column], second[column]);
        }
    }

    void turn_columns(double* matrix) const {
        for (size_t row = 0; row < count_; ++row) {
            double* elements = matrix + row * count_;
            for (const Turn& turn : turns_) turn_pair(turn, elements[turn.p], elements[turn.q]);
        }
    }

    static void turn_pair(const Turn& turn, double& first, double& second) {
        const double turned = turn.cosine * first - turn.sine * second;
        second = turn.sine * first + turn.cosine * second;
        first = turned;
    }

    double* work_;
    double* vectors_;
    size_t count_;
    bool is_transposed_ = false;
    std::vector<size_t> players_;
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

}  // namespace

void bind_noise(nb::module_& module) {
    module.def("diagonalise", &diagonalise, "work"_a.noconvert(), "vectors"_a.noconvert(), "max_sweeps"_a);
    module.def("draw_normals", &draw_normals, "high"_a.noconvert(), "low"_a.noconvert(), "increment_high"_a.noconvert(),
               "increment_low"_a.noconvert(), "widths"_a.noconvert(), "heights"_a.noconvert(), "tail_start"_a,
               "out"_a.noconvert());
}

}  // namespace cobre::noise

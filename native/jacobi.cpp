#include "jacobi.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "wide_instructions.hpp"

namespace cobre::noise {
namespace {

constexpr double kNegligible = 1e-15;

// Columns of the eigenvectors that are turned together: as many as fit into the first cache for 150 rows.
constexpr size_t kStrip = 16;

struct Turn {
    uint32_t p, q;
    double cosine, sine;
};

// Angles of the pairs of a round, side by side: pair k is player k against player k of the opponents. That of a pair
// that is not turned is zero, which leaves its elements as they are.
struct Angles {
    const double *cosine, *sine;
};

// Kernels, compiled for every processor and for AVX2: element by element, so that bits are the same.

template <typename Pack, typename Element>
[[gnu::always_inline]] inline void load(Pack& pack, const Element* from) {
    std::memcpy(&pack, from, sizeof pack);
}

template <typename Pack>
[[gnu::always_inline]] inline void store(double* to, const Pack& pack) {
    std::memcpy(to, &pack, sizeof pack);
}

template <typename Number>
[[gnu::always_inline]] inline void turn_pair(const Number& cosine, const Number& sine, Number& first, Number& second) {
    const Number turned = cosine * first - sine * second;
    second = sine * first + cosine * second;
    first = turned;
}

[[gnu::always_inline]] inline void turn_lines_body(const Turn& turn, double* __restrict first,
                                                   double* __restrict second, size_t count) {
    for (size_t column = 0; column < count; ++column) turn_pair(turn.cosine, turn.sine, first[column], second[column]);
}

enum class Order { rows_first, columns_first, columns_only };

// Two rows of the table, from where they lie in this round to where they lie in the next: elements of the players of
// the upper half come first, those of their opponents follow.
struct RowPair {
    const double *from_p, *from_q;
    double *to_p, *to_q;
    double cosine, sine;
    Order order;
};

// Turns the two rows with each other and pairs of columns within them: one pair, or a pack of pairs from number k on.
// They go to `upper` and `lower` in the next round.
template <Order order, typename Packed>
[[gnu::always_inline]] inline void turn_square(const RowPair& rows, const Angles& angles, size_t half, size_t k,
                                               size_t upper, size_t lower) {
    using Numbers = typename Packed::Numbers;
    Numbers px, py, qx, qy, cosine, sine;
    load(px, rows.from_p + k), load(py, rows.from_p + half + k);
    load(qx, rows.from_q + k), load(qy, rows.from_q + half + k);
    const Numbers c = rows.cosine - Numbers{}, s = rows.sine - Numbers{};
    if constexpr (order == Order::rows_first) turn_pair(c, s, px, qx), turn_pair(c, s, py, qy);
    load(cosine, angles.cosine + k), load(sine, angles.sine + k);
    turn_pair(cosine, sine, px, py), turn_pair(cosine, sine, qx, qy);
    if constexpr (order == Order::columns_first) turn_pair(c, s, px, qx), turn_pair(c, s, py, qy);
    store(rows.to_p + upper, px), store(rows.to_p + lower, py);
    store(rows.to_q + upper, qx), store(rows.to_q + lower, qy);
}

// Puts the elements where the next round wants them: the first player stays, the others go one place on, the last of
// the upper half over to the opponents, and their first to the upper half.
template <Order order, typename Packed>
[[gnu::always_inline]] inline void turn_in_order(const RowPair rows, const Angles angles, size_t half) {
    constexpr size_t lanes = Packed::lanes;
    const size_t last = half - 1;
    turn_square<order, One>(rows, angles, half, 0, 0, 1);
    if (half == 1) return;
    turn_square<order, One>(rows, angles, half, last, half + last, half + last - 1);
    if (last > lanes) {
        for (size_t k = 1; k + lanes < last; k += lanes)
            turn_square<order, Packed>(rows, angles, half, k, k + 1, half + k - 1);
        const size_t k = last - lanes;  // some of its pairs again, with the same result
        turn_square<order, Packed>(rows, angles, half, k, k + 1, half + k - 1);
    } else {
        for (size_t k = 1; k < last; ++k) turn_square<order, One>(rows, angles, half, k, k + 1, half + k - 1);
    }
}

template <typename Packed>
[[gnu::always_inline]] inline void turn_rows_body(const RowPair& rows, const Angles& angles, size_t half) {
    if (rows.order == Order::rows_first) turn_in_order<Order::rows_first, Packed>(rows, angles, half);
    else if (rows.order == Order::columns_first) turn_in_order<Order::columns_first, Packed>(rows, angles, half);
    else turn_in_order<Order::columns_only, Packed>(rows, angles, half);
}

template <typename Packed>
[[gnu::always_inline]] inline void turn_strip_body(const std::vector<Turn>& turns, double* strip) {
    using Numbers = typename Packed::Numbers;
    for (const Turn& turn : turns) {
        double *first = strip + turn.p * kStrip, *second = strip + turn.q * kStrip;
        const Numbers cosine = turn.cosine - Numbers{}, sine = turn.sine - Numbers{};
        for (size_t k = 0; k < kStrip; k += Packed::lanes) {
            Numbers a, b;
            load(a, first + k), load(b, second + k);
            turn_pair(cosine, sine, a, b);
            store(first + k, a), store(second + k, b);
        }
    }
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
COBRE_WIDE void turn_rows_wide(const RowPair& rows, const Angles& angles, size_t half) {
    turn_rows_body<Four>(rows, angles, half);
}
COBRE_WIDE void turn_strip_wide(const std::vector<Turn>& turns, double* strip) { turn_strip_body<Four>(turns, strip); }

void turn_lines(const Turn& turn, double* first, double* second, size_t count) {
    if (use_avx2) return turn_lines_wide(turn, first, second, count);
    turn_lines_body(turn, first, second, count);
}
void turn_rows(const RowPair& rows, const Angles& angles, size_t half) {
    if (use_avx2) return turn_rows_wide(rows, angles, half);
    turn_rows_body<Two>(rows, angles, half);
}
void turn_strip(const std::vector<Turn>& turns, double* strip) {
    if (use_avx2) return turn_strip_wide(turns, strip);
    turn_strip_body<Two>(turns, strip);
}

// The matrix while it is turned. Columns lie in the order of the tournament: first those of the upper half of the
// table, then those of their opponents, so that the pairs of a row are turned side by side.
class Table {
public:
    Table(const double* matrix, size_t count) : count_(count), half_((count + 1) / 2), width_(2 * half_) {
        for (size_t player = 0; player < width_; ++player) players_.push_back(player);
        column_of_ = players_;
        cosine_.resize(half_), sine_.resize(half_);
        table_.assign((count + 1) * width_, 0.0), next_.assign((count + 1) * width_, 0.0);
        for (size_t row = 0; row < count; ++row) std::copy_n(matrix + row * count, count, line(row));
    }

    // One turn of every pair, in rounds of disjoint pairs as in a tournament; returns the turns that were worth it.
    const std::vector<Turn>& sweep() {
        turns_.clear();
        for (size_t round = 0; round + 1 < width_; ++round) {
            turn_round();
            std::rotate(players_.begin() + 1, players_.end() - 1, players_.end());
        }
        return turns_;
    }

    void write(double* matrix) {
        for (size_t row = 0; row < count_; ++row)
            for (size_t column = 0; column < count_; ++column) matrix[row * count_ + column] = at(row, column);
    }

private:
    double* line(size_t row) { return table_.data() + row * width_; }
    double* next_line(size_t row) { return next_.data() + row * width_; }
    double& at(size_t row, size_t column) { return line(row)[column_of_[column]]; }
    const size_t& opponent(size_t k) const { return players_[width_ - 1 - k]; }

    // Angles of a round come from the matrix before it. Every round is defined to turn rows, transpose, and turn rows
    // again; instead of moving the elements, `is_transposed_` says how they lie, and columns are turned.
    void turn_round() {
        const size_t first = turns_.size();
        for (size_t k = 0; k < half_; ++k) {
            const auto [p, q] = std::minmax(players_[k], opponent(k));
            const bool is_on = q < count_ && add_turn(p, q);
            const double sine = is_on ? turns_.back().sine : 0.0;
            cosine_[k] = is_on ? turns_.back().cosine : 1.0;
            sine_[k] = players_[k] == p ? sine : -sine;
        }
        const size_t made = turns_.size() - first;
        if (made == 0) return;
        if (made * 4 < half_) turn_few(first);
        else turn_many(first);
        is_transposed_ = !is_transposed_;
        // What rounding leaves here would be turned again and again.
        for (size_t k = first; k < turns_.size(); ++k)
            at(turns_[k].p, turns_[k].q) = at(turns_[k].q, turns_[k].p) = 0.0;
    }

    bool add_turn(size_t p, size_t q) {
        const double element = is_transposed_ ? at(q, p) : at(p, q);
        const double left = at(p, p), right = at(q, q);
        const double size = std::max(1.0, std::max(std::abs(left), std::abs(right)));
        if (!(std::abs(element) > kNegligible * size)) return false;
        const double ratio = (right - left) / (2.0 * element);
        const double tangent = std::copysign(1.0, ratio) / (std::abs(ratio) + std::sqrt(ratio * ratio + 1.0));
        const double cosine = 1.0 / std::sqrt(tangent * tangent + 1.0);
        turns_.push_back({static_cast<uint32_t>(p), static_cast<uint32_t>(q), cosine, tangent * cosine});
        return true;
    }

    // A few turns, as in the last sweeps, are made where their columns lie.
    void turn_few(size_t first) {
        const auto turn_all_rows = [&] {
            for (size_t k = first; k < turns_.size(); ++k)
                turn_lines(turns_[k], line(turns_[k].p), line(turns_[k].q), width_);
        };
        if (!is_transposed_) turn_all_rows();
        for (size_t row = 0; row < count_; ++row)
            for (size_t k = first; k < turns_.size(); ++k)
                turn_pair(turns_[k].cosine, turns_[k].sine, at(row, turns_[k].p), at(row, turns_[k].q));
        if (is_transposed_) turn_all_rows();
    }

    // Pair after pair of rows, each turned with the other and within. Without an opponent, the partner is a row that
    // nobody reads.
    void turn_many(size_t first) {
        arrange();
        auto turn = turns_.begin() + static_cast<std::ptrdiff_t>(first);
        for (size_t k = 0; k < half_; ++k) {
            const auto [p, q] = std::minmax(players_[k], opponent(k));
            RowPair rows{line(p), line(q), next_line(p), next_line(q), 1.0, 0.0, Order::columns_only};
            if (turn != turns_.end() && turn->p == p && turn->q == q) {
                rows.cosine = turn->cosine, rows.sine = turn->sine;
                rows.order = is_transposed_ ? Order::columns_first : Order::rows_first;
                ++turn;
            }
            turn_rows(rows, {cosine_.data(), sine_.data()}, half_);
        }
        table_.swap(next_);
        if (half_ == 1) return;
        for (size_t k = 0; k < half_; ++k) {
            column_of_[players_[k]] = k == 0 ? 0 : k + 1;  // the last of the half goes over to the opponents
            column_of_[opponent(k)] = k == 0 ? 1 : half_ + k - 1;
        }
        column_of_[players_[half_ - 1]] = width_ - 1;
    }

    // Moves columns to where this round expects them; after a round of many turns they lie so already.
    void arrange() {
        std::vector<size_t> from(width_);
        bool is_arranged = true;
        for (size_t k = 0; k < half_; ++k) {
            from[k] = column_of_[players_[k]];
            from[half_ + k] = column_of_[opponent(k)];
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
            column_of_[opponent(k)] = half_ + k;
        }
    }

    size_t count_, half_, width_;
    bool is_transposed_ = false;
    std::vector<size_t> players_, column_of_;
    std::vector<double> table_, next_, cosine_, sine_;
    std::vector<Turn> turns_;
};

// Turns rows of the eigenvectors, strip after strip of columns, each while it is in the cache.
void turn_vectors(const std::vector<Turn>& turns, double* vectors, size_t count, std::vector<double>& strip) {
    strip.assign(count * kStrip, 0.0);
    for (size_t column = 0; column < count; column += kStrip) {
        const size_t width = std::min(kStrip, count - column);
        for (size_t row = 0; row < count; ++row)
            std::copy_n(vectors + row * count + column, width, strip.data() + row * kStrip);
        turn_strip(turns, strip.data());
        for (size_t row = 0; row < count; ++row)
            std::copy_n(strip.data() + row * kStrip, width, vectors + row * count + column);
    }
}

}  // namespace

void diagonalise(double* work, double* vectors, std::size_t count, int max_sweeps) {
    Table table(work, count);
    std::vector<double> strip;
    for (int sweep = 0; sweep < max_sweeps; ++sweep) {
        const std::vector<Turn>& turns = table.sweep();
        if (turns.empty()) break;
        turn_vectors(turns, vectors, count, strip);
    }
    table.write(work);
}

}  // namespace cobre::noise

// Vectors with few nonzero entries, and sets of positions that are visited in order.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "highs_api.hpp"
#include "lp_tolerances.hpp"
#include "wide_instructions.hpp"

namespace cobre::lp {

// Values at every index, and a list of the indices that are not zero: clearing and walking cost what is listed. An
// entry that cancels keeps a tiny value, so that being listed and not being zero are the same.
class SparseVector {
public:
    std::vector<double> value;

    void resize(size_t size) {
        clear();
        value.resize(size, 0.0);
        list_.resize(size + 1);  // one more: indices are written before it is known whether they are new
    }
    std::span<const Int> index() const { return {list_.data(), count_}; }
    void clear() {
        for (size_t at = 0; at < count_; ++at) value[list_[at]] = 0.0;
        count_ = 0;
    }
    // Of an index that is not listed yet.
    void set(Int at, double number) {
        list_[count_++] = at;
        value[at] = number;
    }
    void add(Int at, double number) { Adder(*this).add(at, number); }

    // Adds many numbers: the count stays in a register, and there are no branches, because no predictor guesses which
    // entries are new.
    class Adder {
    public:
        explicit Adder(SparseVector& home)
            : home_(home), value_(home.value.data()), list_(home.list_.data()), count_(home.count_) {}
        ~Adder() { home_.count_ = count_; }
        Adder(const Adder&) = delete;
        Adder& operator=(const Adder&) = delete;
        void add(Int at, double number) {
            const double before = value_[at], after = before + number;
            list_[count_] = at;
            count_ += std::bit_cast<uint64_t>(before) == 0;  // never a negative zero
            value_[at] = std::abs(after) < kTiny ? kListedZero : after;
        }

    private:
        SparseVector& home_;
        double* const value_;
        Int* const list_;
        size_t count_;
    };

    // Sets many, of indices that are not listed yet.
    class Writer {
    public:
        explicit Writer(SparseVector& home)
            : home_(home), value_(home.value.data()), list_(home.list_.data()), count_(home.count_) {}
        ~Writer() { home_.count_ = count_; }
        Writer(const Writer&) = delete;
        Writer& operator=(const Writer&) = delete;
        void set(Int at, double number) {
            list_[count_++] = at;
            value_[at] = number;
        }

    private:
        SparseVector& home_;
        double* const value_;
        Int* const list_;
        size_t count_;
    };

private:
    std::vector<Int> list_;
    size_t count_ = 0;
};

// The highest bit of a word that is not zero. LZCNT, which is much faster than BSR on AMD processors, is BSR with a
// prefix that processors without LZCNT ignore: their result is the bit itself, not the number of zeros above it.
#if defined(__x86_64__)
inline const uint64_t kCountsZeros = has_lzcnt() ? 63 : 0;
inline int highest_bit(uint64_t word) {
    uint64_t result;
    __asm__("rep bsrq %1, %0" : "=r"(result) : "r"(word) : "cc");
    return static_cast<int>(result ^ kCountsZeros);
}
#else
inline int highest_bit(uint64_t word) { return 63 - std::countl_zero(word); }
#endif

// A set of positions as bits. Visiting it in ascending or descending order meets positions that are inserted ahead of
// the visitor, which is what a triangular solve with a sparse right-hand side needs: no search for the pattern
// beforehand, and one order of all sums.
class PositionSet {
public:
    void resize(size_t size) { words_.assign((size + 63) / 64, 0); }
    void extend(size_t size) { words_.resize((size + 63) / 64, 0); }  // keeps its members
    void insert(Int at) { Inserter(*this).insert(at); }

    // Inserts many: the pointer stays in a register.
    class Inserter {
    public:
        explicit Inserter(PositionSet& home) : words_(home.words_.data()) {}
        void insert(Int at) const { words_[static_cast<size_t>(at) >> 6] |= uint64_t{1} << (at & 63); }

    private:
        uint64_t* words_;
    };

    // Visit the members of both sets, smallest first; `visit` may insert larger positions. `only` may end earlier.
    template <typename Visit>
    void ascend(const PositionSet& only, Visit visit) const {
        for (size_t word = 0; word < only.words_.size(); ++word) {
            uint64_t left = words_[word] & only.words_[word];
            while (left) {
                const int bit = std::countr_zero(left);
                visit(static_cast<Int>(word * 64) + bit);
                left = words_[word] & only.words_[word] & (~uint64_t{1} << bit);
            }
        }
    }
    // The same, largest first; `visit` may insert smaller positions.
    template <typename Visit>
    void descend(const PositionSet& only, Visit visit) const {
        for (size_t word = only.words_.size(); word-- > 0;) {
            uint64_t left = words_[word] & only.words_[word];
            while (left) {
                const int bit = highest_bit(left);
                visit(static_cast<Int>(word * 64) + bit);
                left = words_[word] & only.words_[word] & ((uint64_t{1} << bit) - 1);
            }
        }
    }
    // Visit all members, smallest first. `visit` is told whether the member is in `inserting`; only then it may insert
    // positions, larger ones. The others, which are most, need not wait for what was written just before.
    template <typename Visit>
    void ascend_with(const PositionSet& inserting, Visit visit) const {
        for (size_t word = 0; word < words_.size(); ++word) {
            uint64_t left = words_[word];
            while (left) {
                const int bit = std::countr_zero(left);
                const bool inserts = inserting.words_[word] >> bit & 1;
                visit(static_cast<Int>(word * 64) + bit, inserts);
                left = inserts ? words_[word] & (~uint64_t{1} << bit) : left & (left - 1);
            }
        }
    }
    // Visit all members, smallest first; nothing is inserted in the meantime.
    template <typename Visit>
    void for_each(Visit visit) const {
        for (size_t word = 0; word < words_.size(); ++word)
            for (uint64_t left = words_[word]; left; left &= left - 1)
                visit(static_cast<Int>(word * 64) + std::countr_zero(left));
    }
    // As `ascend_with`, but largest first and inserting smaller positions; leaves the set empty.
    template <typename Visit>
    void drain_descending(const PositionSet& inserting, Visit visit) {
        for (size_t word = words_.size(); word-- > 0;) {
            uint64_t left = std::exchange(words_[word], 0);
            while (left) {
                const int bit = highest_bit(left);
                const bool inserts = inserting.words_[word] >> bit & 1;
                left ^= uint64_t{1} << bit;
                visit(static_cast<Int>(word * 64) + bit, inserts);
                if (inserts) left |= std::exchange(words_[word], 0);
            }
        }
    }

    // Visit all members, largest first; leaves the set empty.
    template <typename Visit>
    void drain_descending(Visit visit) {
        for (size_t word = words_.size(); word-- > 0;)
            for (uint64_t left = std::exchange(words_[word], 0); left;) {
                const int bit = highest_bit(left);
                left ^= uint64_t{1} << bit;
                visit(static_cast<Int>(word * 64) + bit);
            }
    }

private:
    std::vector<uint64_t> words_;
};

}  // namespace cobre::lp

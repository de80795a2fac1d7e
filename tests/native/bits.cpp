// Digests of what native arithmetic gives: vector kernels, ordered reductions, both simplex methods. Another processor,
// or the same one without its wide instructions, must print the same.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "hash.hpp"
#include "lp_dense_simplex.hpp"
#include "lp_kernels.hpp"
#include "lp_sparse_simplex.hpp"
#include "reduce.hpp"

namespace {

using namespace cobre;
using lp::Int;

// Numbers of many magnitudes, the same everywhere: no library function between the bits and the number.
class Numbers {
public:
    explicit Numbers(uint64_t seed) : state_(seed) {}
    uint64_t bits() { return state_ = mix(state_, 1); }
    double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
    double wide() { return (unit() - 0.5) * std::bit_cast<double>((1003 + bits() % 40) << 52); }
    std::vector<double> several(size_t count) {
        std::vector<double> numbers(count);
        for (double& number : numbers) number = wide();
        return numbers;
    }

private:
    uint64_t state_;
};

uint64_t digest(const void* data, size_t bytes, uint64_t hash = 0) {
    for (size_t at = 0; at < bytes; ++at) hash = mix(hash, static_cast<const unsigned char*>(data)[at]);
    return hash;
}

uint64_t digest(const std::vector<double>& numbers, uint64_t hash = 0) {
    return digest(numbers.data(), numbers.size() * 8, hash);
}

void print(const char* what, uint64_t hash) {
    std::printf("%-24s %016llx\n", what, static_cast<unsigned long long>(hash));
}

void kernels() {
    Numbers numbers(1);
    uint64_t dots = 0, products = 0, updates = 0, sums = 0;
    for (size_t n = 0; n < 70; ++n) {
        const std::vector<double> a = numbers.several(n * n), x = numbers.several(n);
        std::vector<double> y = numbers.several(n), out(n);
        dots = mix(dots, std::bit_cast<uint64_t>(lp::dot(x.data(), y.data(), n)));
        lp::multiply(a.data(), n, x.data(), out.data(), n, n);
        products = digest(out, products);
        lp::add_scaled(y.data(), numbers.wide(), x.data(), n);
        updates = digest(y, updates);
        std::vector<const double*> rows(n);
        for (size_t row = 0; row < n; ++row) rows[row] = a.data() + row * n;
        double block[lp::kSumsPerBlock];
        const double limit = numbers.wide();
        for (size_t at = 0; (at = lp::next_sums_above(limit, y.data(), x.data(), rows.data(), n, at, n, block)) < n;
             at += lp::kSumsPerBlock)
            sums = mix(digest(block, sizeof block, sums), at);
        sums = mix(sums, lp::next_above(x.data(), y.data(), limit, n / 3, n));
        lp::add_scaled_rows(y.data(), out.data(), x.data(), rows.data(), n, n);
        sums = digest(out, sums);
    }
    print("dot", dots);
    print("multiply", products);
    print("add_scaled", updates);
    print("sums of rows", sums);
}

void reductions() {
    Numbers numbers(2);
    constexpr size_t kBytes = 16 * 1009;
    for (uint32_t element = 1; element < 16; ++element) {
        const auto type = static_cast<ElementType>(element);
        if (type == ElementType::long_double || type == ElementType::complex_long_double)
            continue;  // of each processor
        static constexpr size_t sizes[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 16, 8, 16};
        uint64_t hash = 0;
        for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max})
            for (const size_t ranks : {1, 2, 3, 5, 9}) {
                if (!reducible(type, op)) continue;
                std::vector<std::vector<uint64_t>> inputs(ranks);
                std::vector<const void*> pointers;
                for (auto& input : inputs) {
                    for (size_t at = 0; at < kBytes / 8; ++at) input.push_back(numbers.bits());  // NaNs among them
                    pointers.push_back(input.data());
                }
                std::vector<uint64_t> out(kBytes / 8);
                fold(type, op, pointers.data(), ranks, out.data(), kBytes / sizes[element]);
                hash = digest(out.data(), kBytes, hash);
            }
        print(element_name(type), hash);
    }
}

// A random stage: every row an equation with a penalised slack on either side, and cuts on two states.
struct RandomStage {
    static constexpr Int kRows = 60, kColumns = 90, kCuts = 48;
    std::vector<double> cost, lower, upper, rows, value, scale{1.0, 1.0}, chunk;
    std::vector<Int> start{0}, index, state_column{0, 1};
    std::vector<uint8_t> selected;
    lp::StageModel model;

    explicit RandomStage(Numbers& numbers) : selected(kCuts, 1) {
        const Int width = kColumns + 2 * kRows + 1;
        for (Int column = 0; column < width; ++column) {
            const bool is_slack = column >= kColumns;
            cost.push_back(column + 1 == width ? 1.0 : is_slack ? 50.0 : numbers.unit() * 4.0 - 1.0);
            lower.push_back(0.0);
            upper.push_back(is_slack ? std::numeric_limits<double>::infinity() : 1.0 + 9.0 * numbers.unit());
        }
        for (Int row = 0; row < kRows; ++row) {
            for (Int column = 0; column < kColumns; ++column)
                if (numbers.bits() % 12 == 0) index.push_back(column), value.push_back(numbers.unit() * 2.0 - 1.0);
            for (const double sign : {1.0, -1.0})
                index.push_back(kColumns + 2 * row + (sign < 0.0)), value.push_back(sign);
            start.push_back(static_cast<Int>(index.size()));
            rows.push_back(numbers.unit() * 6.0 - 3.0);
        }
        chunk = std::vector<double>(3 * kCuts);
        for (Int cut = 0; cut < kCuts; ++cut) {
            chunk[static_cast<size_t>(cut)] = 20.0 * numbers.unit();
            for (Int state = 1; state <= 2; ++state)
                chunk[static_cast<size_t>(state * kCuts + cut)] = -3.0 * numbers.unit();
        }
        model.cost = cost, model.column_lower = lower, model.column_upper = upper;
        model.row_lower = rows, model.row_upper = rows, model.row_start = start, model.column_index = index,
        model.value = value;
        model.num_decided = 2, model.state_column = state_column, model.state_scale = scale,
        model.future_cost = width - 1;
        model.finish();
    }
};

// A chain of solves with changing right-hand sides; digests of values, reduced costs and duals. is_lazy: whether cuts
// are searched in single precision first.
uint64_t solve(lp::DualSimplex& simplex, const char* name, bool is_lazy = false) {
    uint64_t hash = 0;
    int64_t pivots = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
        Numbers numbers(seed);
        RandomStage stage(numbers);
        const lp::CutView cuts({{stage.chunk.data(), RandomStage::kCuts}}, 3, RandomStage::kCuts, nullptr,
                               stage.selected.data());
        simplex.load(stage.model, cuts, 1e-9, 1e-9);
        std::vector<double> rows = stage.rows, x, reduced, duals;
        std::vector<Int> active;
        lp::CutRhs rhs;
        rhs.load(cuts, is_lazy);
        rhs.begin_chain(1);
        rhs.choose(0);
        for (int turn = 0; turn < 10; ++turn) {
            for (double& row : rows) row += numbers.unit() - 0.5;
            const lp::Bounds bounds{stage.lower.data(), stage.upper.data(), rows.data(), rows.data(), &rhs};
            if (simplex.optimise(bounds) != lp::SimplexStatus::optimal) {
                std::printf("%s: seed %llu gave up\n", name, static_cast<unsigned long long>(seed));
                simplex.start_from_slacks();
                continue;
            }
            simplex.solution(x, reduced, duals, active);
            hash = digest(duals, digest(reduced, digest(x, hash)));
        }
        pivots += simplex.take_counts().pivots;
    }
    return mix(hash, static_cast<uint64_t>(pivots));
}

}  // namespace

int main() {
    kernels();
    reductions();
    lp::DenseDualSimplex dense;
    lp::SparseDualSimplex sparse;
    print("dense dual simplex", solve(dense, "dense"));
    print("the same, cuts screened", solve(dense, "dense", /*is_lazy=*/true));
    print("sparse dual simplex", solve(sparse, "sparse"));
}

// Correlations of PAR models and of their residuals: what a model implies, and sums over what was observed. Plain
// arithmetic in a fixed order, so that bits are the same on every processor; see cobre.stochastic.par.residuals.
#include <nanobind/ndarray.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bindings.hpp"
#include "wide_instructions.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre::noise {
namespace {

using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using CubeOut = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using TableOut = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using LineOut = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FlagsIn = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using FlagsOut = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = std::vector<double>;

// The correlations (season, lag, hydro) of a cyclic model, run year by year until nothing changes. Hydros whose process
// grows without bound are flagged, and count as white noise from then on.
class CyclicModel {
public:
    CyclicModel(const double* coefficients, double* correlations, size_t seasons, size_t order, size_t hydros)
        : coefficients_(coefficients, coefficients + seasons * order * hydros),
          correlations_(correlations),
          seasons_(seasons),
          order_(order),
          hydros_(hydros) {
        std::fill_n(correlations_, seasons * (order + 1) * hydros, 0.0);
        for (size_t season = 0; season < seasons; ++season) std::fill_n(at(season, 0), hydros, 1.0);
    }

    // Returns the largest change of a year, NaN if some change is.
    double advance() {
        double largest = 0.0;
        Numbers total(hydros_);
        for (size_t season = 0; season < seasons_; ++season)
            for (size_t lag = 1; lag <= order_; ++lag) {
                std::fill(total.begin(), total.end(), 0.0);
                for (size_t i = 1; i <= order_; ++i) {
                    const double* coefficient = coefficients_.data() + (season * order_ + i - 1) * hydros_;
                    const double* known = between(season, i, lag);
                    for (size_t hydro = 0; hydro < hydros_; ++hydro)
                        total[hydro] = total[hydro] + coefficient[hydro] * known[hydro];
                }
                double* correlation = at(season, lag);
                for (size_t hydro = 0; hydro < hydros_; ++hydro) {
                    const double change = std::abs(total[hydro] - correlation[hydro]);
                    if (change > largest || std::isnan(change)) largest = change;
                    correlation[hydro] = total[hydro];
                }
            }
        return largest;
    }

    void drop_diverging(double limit, bool* has_diverged) {
        for (size_t k = 0; k < seasons_ * (order_ + 1); ++k)
            for (size_t hydro = 0; hydro < hydros_; ++hydro)
                if (std::abs(correlations_[k * hydros_ + hydro]) > limit) has_diverged[hydro] = true;
        for (size_t k = 0; k < seasons_ * order_; ++k)
            for (size_t hydro = 0; hydro < hydros_; ++hydro)
                if (has_diverged[hydro]) coefficients_[k * hydros_ + hydro] = 0.0;
    }

private:
    double* at(size_t season, size_t lag) { return correlations_ + (season * (order_ + 1) + lag) * hydros_; }
    // The correlation of the seasons i and j before a season.
    double* between(size_t season, size_t i, size_t j) {
        const size_t back = std::min(i, j) % seasons_;
        return at((season + seasons_ - back) % seasons_, i > j ? i - j : j - i);
    }

    Numbers coefficients_;
    double* correlations_;
    size_t seasons_, order_, hydros_;
};

void periodic_correlations(Cube coefficients, double tolerance, int max_years, double diverged, CubeOut correlations,
                           FlagsOut has_diverged) {
    const size_t seasons = coefficients.shape(0), order = coefficients.shape(1), hydros = coefficients.shape(2);
    if (correlations.shape(0) != seasons || correlations.shape(1) != order + 1 || correlations.shape(2) != hydros ||
        has_diverged.shape(0) != hydros)
        throw nb::value_error("periodic_correlations: correlations of seasons x (order + 1) x hydros, a flag a hydro");
    nb::gil_scoped_release unlocked;
    CyclicModel model(coefficients.data(), correlations.data(), seasons, order, hydros);
    for (int year = 0; year < max_years && !(model.advance() <= tolerance); ++year)
        model.drop_diverging(diverged, has_diverged.data());
}

// What the past explains of the variance, per hydro: sum over i and j of phi_i phi_j rho(i, j).
void explained_variance(Cube correlations, size_t season, Table coefficients, LineOut out) {
    const size_t seasons = correlations.shape(0), lags = correlations.shape(1), hydros = correlations.shape(2);
    const size_t order = coefficients.shape(0);
    if (season >= seasons || order >= lags || coefficients.shape(1) != hydros || out.shape(0) != hydros)
        throw nb::value_error("explained_variance: coefficients of at most as many lags as there are correlations");
    nb::gil_scoped_release unlocked;
    std::fill_n(out.data(), hydros, 0.0);
    for (size_t i = 0; i < order; ++i)
        for (size_t j = 0; j < order; ++j) {
            const size_t nearer = (season + seasons - (std::min(i, j) + 1) % seasons) % seasons;
            const double* known = correlations.data() + (nearer * lags + (i > j ? i - j : j - i)) * hydros;
            const double *left = coefficients.data() + i * hydros, *right = coefficients.data() + j * hydros;
            for (size_t hydro = 0; hydro < hydros; ++hydro)
                out.data()[hydro] = out.data()[hydro] + left[hydro] * right[hydro] * known[hydro];
        }
}

// Sums over the rows that a column shares with each of a strip of partners, which stay in registers from the first row
// to the last. Compiled for every processor and for AVX2: element by element, so that bits are the same. Rows that a
// pair does not share add a zero, which changes no sum that began with 0.
constexpr size_t kPartners = 8;

struct Two {
    typedef double Numbers __attribute__((vector_size(16)));
};
struct Four {
    typedef double Numbers __attribute__((vector_size(32)));
};

// Columns that follow each other, row by row, and 1 or 0 for each value that is known or not.
struct Strip {
    const double *values, *is_known;
};

struct PairSums {
    double product[kPartners], square_own[kPartners], square_other[kPartners];
};

// own: values of the column, one for each row of the strips; `rows` lists those where it is known.
template <typename Pack>
[[gnu::always_inline]] inline void sum_pairs_body(const std::vector<size_t>& rows, const double* own,
                                                  const Strip& strip, PairSums& out) {
    using Numbers = typename Pack::Numbers;
    constexpr size_t lanes = sizeof(Numbers) / sizeof(double), packs = kPartners / lanes;
    const auto load = [](const double* from) {
        Numbers pack;
        std::memcpy(&pack, from, sizeof pack);
        return pack;
    };
    const Numbers zero{};
    Numbers shared[packs]{}, sum_own[packs]{}, sum_other[packs]{};
    for (const size_t row : rows)
        for (size_t k = 0; k < packs; ++k) {
            const Numbers is_known = load(strip.is_known + row * kPartners + k * lanes);
            const Numbers others = load(strip.values + row * kPartners + k * lanes);
            shared[k] = shared[k] + is_known;
            sum_own[k] = sum_own[k] + (is_known != zero ? own[row] - zero : zero);
            sum_other[k] = sum_other[k] + (is_known != zero ? others : zero);
        }
    Numbers product[packs]{}, square_own[packs]{}, square_other[packs]{};
    for (size_t k = 0; k < packs; ++k) {
        const Numbers divisor = shared[k] < 1.0 - zero ? 1.0 - zero : shared[k];
        sum_own[k] = sum_own[k] / divisor, sum_other[k] = sum_other[k] / divisor;  // means from here on
    }
    for (const size_t row : rows)
        for (size_t k = 0; k < packs; ++k) {
            const Numbers is_known = load(strip.is_known + row * kPartners + k * lanes);
            const Numbers others = load(strip.values + row * kPartners + k * lanes);
            const Numbers left = is_known != zero ? own[row] - sum_own[k] : zero;
            const Numbers right = is_known != zero ? others - sum_other[k] : zero;
            product[k] = product[k] + left * right;
            square_own[k] = square_own[k] + left * left;
            square_other[k] = square_other[k] + right * right;
        }
    std::memcpy(out.product, product, sizeof product);
    std::memcpy(out.square_own, square_own, sizeof square_own);
    std::memcpy(out.square_other, square_other, sizeof square_other);
}

#if defined(__x86_64__)
const bool use_avx2 = wide_instructions_allowed() && has_avx2();
#define COBRE_WIDE __attribute__((target("avx2")))
#else
constexpr bool use_avx2 = false;
#define COBRE_WIDE
#endif

COBRE_WIDE void sum_pairs_wide(const std::vector<size_t>& rows, const double* own, const Strip& strip, PairSums& out) {
    sum_pairs_body<Four>(rows, own, strip, out);
}

void sum_pairs(const std::vector<size_t>& rows, const double* own, const Strip& strip, PairSums& out) {
    if (use_avx2) return sum_pairs_wide(rows, own, strip, out);
    sum_pairs_body<Two>(rows, own, strip, out);
}

// Products and squares of deviations of all pairs of columns, each over the rows that both have, from means over these.
// Values that are not known must be 0. Sums run over rows in order, strip after strip of columns.
void pair_products(Table values, FlagsIn known, TableOut products, TableOut squares) {
    const size_t num_rows = values.shape(0), count = values.shape(1);
    for (const auto* table : {&products, &squares})
        if (table->shape(0) != count || table->shape(1) != count || known.shape(0) != num_rows ||
            known.shape(1) != count)
            throw nb::value_error("pair_products: tables of columns x columns");
    nb::gil_scoped_release unlocked;
    Numbers columns(num_rows * count);  // one after another
    std::vector<std::vector<size_t>> rows(count);
    for (size_t row = 0; row < num_rows; ++row)
        for (size_t column = 0; column < count; ++column) {
            columns[column * num_rows + row] = values.data()[row * count + column];
            if (known.data()[row * count + column]) rows[column].push_back(row);
        }
    Numbers strip(num_rows * kPartners), is_known(num_rows * kPartners);
    PairSums sums;
    for (size_t first = 0; first < count; first += kPartners) {
        const size_t width = std::min(kPartners, count - first);
        for (size_t row = 0; row < num_rows; ++row)
            for (size_t k = 0; k < width; ++k) {
                strip[row * kPartners + k] = columns[(first + k) * num_rows + row];
                is_known[row * kPartners + k] = known.data()[row * count + first + k] ? 1.0 : 0.0;
            }
        for (size_t i = 0; i < first + width; ++i) {
            sum_pairs(rows[i], columns.data() + i * num_rows, {strip.data(), is_known.data()}, sums);
            for (size_t j = std::max(i, first); j < first + width; ++j) {
                products.data()[i * count + j] = products.data()[j * count + i] = sums.product[j - first];
                squares.data()[j * count + i] = sums.square_other[j - first];
                squares.data()[i * count + j] = sums.square_own[j - first];
            }
        }
    }
}

// The number of rows that those two columns have in common which share the fewest.
size_t fewest_pairs(FlagsIn known) {
    const size_t rows = known.shape(0), count = known.shape(1), words = (rows + 63) / 64;
    std::vector<uint64_t> bits(words * count, 0);
    for (size_t row = 0; row < rows; ++row)
        for (size_t column = 0; column < count; ++column)
            if (known.data()[row * count + column]) bits[column * words + row / 64] |= uint64_t{1} << (row % 64);
    size_t fewest = rows;
    for (size_t i = 0; i < count; ++i)
        for (size_t j = i; j < count; ++j) {
            size_t shared = 0;
            for (size_t word = 0; word < words; ++word)
                shared += static_cast<size_t>(std::popcount(bits[i * words + word] & bits[j * words + word]));
            fewest = std::min(fewest, shared);
        }
    return fewest;
}

// Sums of the columns, from the first row on.
void add_rows(Table values, LineOut out) {
    const size_t rows = values.shape(0), count = values.shape(1);
    if (out.size() != count) throw nb::value_error("add_rows: room for a sum of each column");
    double* __restrict total = out.data();
    std::fill_n(total, count, 0.0);
    for (size_t row = 0; row < rows; ++row) {
        const double* __restrict line = values.data() + row * count;
        for (size_t column = 0; column < count; ++column) total[column] = total[column] + line[column];
    }
}

}  // namespace

void bind_par_correlations(nb::module_& module) {
    module.def("periodic_correlations", &periodic_correlations, "coefficients"_a.noconvert(), "tolerance"_a,
               "max_years"_a, "diverged"_a, "correlations"_a.noconvert(), "has_diverged"_a.noconvert());
    module.def("explained_variance", &explained_variance, "correlations"_a.noconvert(), "season"_a,
               "coefficients"_a.noconvert(), "out"_a.noconvert());
    module.def("add_rows", &add_rows, "values"_a.noconvert(), "out"_a.noconvert());
    module.def("fewest_pairs", &fewest_pairs, "known"_a.noconvert());
    module.def("pair_products", &pair_products, "values"_a.noconvert(), "known"_a.noconvert(), "products"_a.noconvert(),
               "squares"_a.noconvert());
}

}  // namespace cobre::noise

// Fits of PAR(p) and PAR(p)-A models to periodic correlations, and the sums behind them. Plain arithmetic in a fixed order, so that bits are the
// same on every processor; rules and sources are described in cobre.stochastic.par.estimation.
#include <nanobind/ndarray.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
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
using Numbers = std::vector<double>;

constexpr double kSingular = 1e-14;

// A dense system of a few rows, each with its right-hand side as the last element.
class SmallSystem {
public:
    explicit SmallSystem(size_t count) : count_(count), rows_(count * (count + 1), 0.0), order_(count) {
        for (size_t row = 0; row < count; ++row) order_[row] = row;
    }

    size_t size() const { return count_; }
    double& at(size_t row, size_t column) { return rows_[order_[row] * (count_ + 1) + column]; }
    double& right(size_t row) { return at(row, count_); }

    // Elimination with row exchanges; false where the matrix is singular. Afterwards the right-hand side is used up.
    bool solve(Numbers& solution) {
        for (size_t column = 0; column < count_; ++column) {
            size_t pivot = column;
            for (size_t row = column + 1; row < count_; ++row)
                if (std::abs(at(row, column)) > std::abs(at(pivot, column))) pivot = row;
            if (std::abs(at(pivot, column)) < kSingular) return false;
            std::swap(order_[column], order_[pivot]);
            for (size_t row = column + 1; row < count_; ++row) {
                const double factor = at(row, column) / at(column, column);
                for (size_t k = column; k <= count_; ++k) at(row, k) = at(row, k) - factor * at(column, k);
            }
        }
        solution.assign(count_, 0.0);
        for (size_t row = count_; row-- > 0;) {
            double rest = right(row);
            for (size_t column = row + 1; column < count_; ++column) rest = rest - at(row, column) * solution[column];
            solution[row] = rest / at(row, row);
        }
        return true;
    }

private:
    size_t count_;
    Numbers rows_;
    std::vector<size_t> order_;
};

// The numbers of all hydros; an absent yearly component is a null pointer.
struct Samples {
    const double* correlation;  // season, lag, hydro
    const double* annual;       // the same shape
    const double* std;          // season, hydro
    const double* count;
    const double* annual_std;
    size_t seasons, lags, hydros;
};

struct Rules {
    long max_order;
    double max_magnitude;  // infinity: none
    double quantile;       // of the test of significance
};

struct SeasonFit {
    Numbers coefficients;
    double annual = 0.0;
};

class HydroFit {
public:
    HydroFit(const Samples& samples, const Rules& rules, size_t hydro)
        : of_(samples), rules_(rules), hydro_(hydro), fits_(samples.seasons) {}

    // In each round the largest order allowed to a season with a negative contribution goes down by one, in all such
    // seasons at once: the contributions of one depend on the orders of the others.
    const std::vector<SeasonFit>& fit() {
        const long seasons = static_cast<long>(of_.seasons);
        std::vector<long> limits(of_.seasons, rules_.max_order);
        for (long season = 0; season < seasons; ++season) fits_[season] = fit_season(season, rules_.max_order);
        while (true) {
            std::vector<long> failing;
            for (long season = 0; season < seasons; ++season)
                if (has_negative(season)) failing.push_back(season);
            if (failing.empty()) return fits_;
            for (const long season : failing) lower_order(season, --limits[season]);
        }
    }

private:
    size_t wrapped(long season) const {
        const long seasons = static_cast<long>(of_.seasons);
        return static_cast<size_t>(((season % seasons) + seasons) % seasons);
    }
    double lagged(const double* values, long season, long lag) const {
        return values[(wrapped(season) * of_.lags + static_cast<size_t>(lag)) * of_.hydros + hydro_];
    }
    double of_season(const double* values, long season) const { return values[wrapped(season) * of_.hydros + hydro_]; }

    SeasonFit fit_season(long season, long max_order) const {
        if (of_season(of_.std, season) == 0.0 || of_season(of_.count, season) == 0.0) return {};
        // One year before this season is known: two points would give a correlation of exactly 1.
        if (of_.annual && of_season(of_.annual_std, season) == 0.0) return {};
        const long order = select_order(season, max_order);
        Numbers solution;
        if (!yule_walker(season, order, solution))  // such as a lag that follows the last year exactly
            return of_.annual && yule_walker(season, 0, solution) ? SeasonFit{{}, solution[0]} : SeasonFit{};
        const double annual = of_.annual ? solution[order] : 0.0;
        solution.resize(order);
        for (const double value : solution)
            if (std::abs(value) > rules_.max_magnitude) return {};
        if (order > 0 && solution[0] < 0.0) solution.clear();
        return {std::move(solution), annual};
    }

    // Where a later fit drops all lags, the last year alone.
    void lower_order(long season, long limit) {
        if (limit >= static_cast<long>(fits_[season].coefficients.size())) return;
        SeasonFit fit = fit_season(season, limit);
        Numbers alone;
        if (fit.coefficients.empty() && fit.annual != 0.0 && yule_walker(season, 0, alone) && !alone.empty())
            fit.annual = alone[0];
        fits_[season] = std::move(fit);
    }

    long select_order(long season, long max_order) const {
        const double threshold = rules_.quantile / std::sqrt(of_season(of_.count, season));
        for (long order = max_order; order > 0; --order)
            if (std::abs(partial_correlation(season, order)) > threshold) return order;
        return of_.annual ? std::min(1L, max_order) : 0;
    }

    // Without a yearly component the last coefficient of the model of that order; 0 when undetermined.
    double partial_correlation(long season, long order) const {
        Numbers first, last;
        if (!of_.annual) return yule_walker(season, order, last) ? last.back() : 0.0;
        if (!inverse_column(season, order, 0, first) || !inverse_column(season, order, order, last)) return 0.0;
        if (first[0] * last[order] <= 0.0) return 0.0;
        return -first[order] / std::sqrt(first[0] * last[order]);
    }

    bool yule_walker(long season, long order, Numbers& solution) const {
        return equations(season, order).solve(solution);
    }

    // A column of the inverse of the correlations of the season itself, its lags and the last year.
    bool inverse_column(long season, long order, long column, Numbers& solution) const {
        SmallSystem inner = equations(season, order);
        SmallSystem whole(inner.size() + 1);
        whole.at(0, 0) = 1.0;
        for (size_t i = 0; i < inner.size(); ++i) {
            whole.at(0, i + 1) = whole.at(i + 1, 0) = inner.right(i);
            for (size_t j = 0; j < inner.size(); ++j) whole.at(i + 1, j + 1) = inner.at(i, j);
        }
        whole.right(static_cast<size_t>(column)) = 1.0;
        return whole.solve(solution);
    }

    SmallSystem equations(long season, long order) const {
        const size_t count = static_cast<size_t>(order) + (of_.annual ? 1 : 0);
        SmallSystem system(count);
        for (long i = 0; i < order; ++i) {
            for (long j = 0; j < order; ++j)
                system.at(i, j) = i == j ? 1.0 : lagged(of_.correlation, season - 1 - std::min(i, j), std::abs(i - j));
            system.right(i) = lagged(of_.correlation, season, i + 1);
        }
        if (of_.annual) {
            for (long i = 0; i < order; ++i)
                system.at(i, order) = system.at(order, i) = lagged(of_.annual, season, i + 1);
            system.at(order, order) = 1.0;
            system.right(order) = lagged(of_.annual, season, 0);
        }
        return system;
    }

    // Whether an inflow 1, 2, ... seasons back takes away from that of a season, through all seasons in between.
    bool has_negative(long season) const {
        const size_t order = fits_[season].coefficients.size();
        if (order == 0) return false;
        Numbers row(order), next(order);
        for (size_t lag = 0; lag < order; ++lag) row[lag] = in_units(season, static_cast<long>(lag) + 1);
        double least = row[0];
        for (size_t back = 1; back < order; ++back) {
            for (size_t j = 0; j < order; ++j) {
                const double later = j + 1 < order ? row[j + 1] : 0.0;
                next[j] = row[0] * in_units(season - static_cast<long>(back), static_cast<long>(j) + 1) + later;
            }
            row.swap(next);
            if (row[0] < least) least = row[0];
        }
        return least < 0.0;
    }

    // A coefficient in m3/s per m3/s; 0 beyond the order.
    double in_units(long season, long lag) const {
        const SeasonFit& fit = fits_[wrapped(season)];
        const double earlier = of_season(of_.std, season - lag);
        if (lag > static_cast<long>(fit.coefficients.size()) || earlier == 0.0) return 0.0;
        return fit.coefficients[lag - 1] * of_season(of_.std, season) / earlier;
    }

    const Samples& of_;
    const Rules& rules_;
    size_t hydro_;
    std::vector<SeasonFit> fits_;
};

void check_shapes(const Samples& samples, const Rules& rules, const Cube& annual, const Table& std, const Table& count,
                  const Table& annual_std, const CubeOut& coefficients, const TableOut& yearly) {
    for (const auto* table : {&std, &count, &annual_std})
        if (table->shape(0) != samples.seasons || table->shape(1) != samples.hydros)
            throw nb::value_error("fit_autoregressions: tables of seasons x hydros");
    if (yearly.shape(0) != samples.seasons || yearly.shape(1) != samples.hydros)
        throw nb::value_error("fit_autoregressions: yearly has seasons x hydros");
    if (rules.max_order < 0 || samples.lags != static_cast<size_t>(rules.max_order) + 1 ||
        annual.shape(0) != samples.seasons || annual.shape(1) != samples.lags || annual.shape(2) != samples.hydros)
        throw nb::value_error("fit_autoregressions: correlations of seasons x (max_order + 1) x hydros");
    if (coefficients.shape(0) != samples.seasons || coefficients.shape(1) != static_cast<size_t>(rules.max_order) ||
        coefficients.shape(2) != samples.hydros)
        throw nb::value_error("fit_autoregressions: coefficients of seasons x max_order x hydros");
}

// Returns the largest order that a fit has. `coefficients` and `yearly` come filled with zeros.
long fit_autoregressions(Cube correlation, Cube annual, bool has_annual, Table std, Table count, Table annual_std,
                         long max_order, double max_magnitude, double quantile, CubeOut coefficients, TableOut yearly) {
    const Rules rules{max_order, max_magnitude, quantile};
    const Samples samples{correlation.data(),   has_annual ? annual.data() : nullptr,
                          std.data(),           count.data(),
                          annual_std.data(),    correlation.shape(0),
                          correlation.shape(1), correlation.shape(2)};
    check_shapes(samples, rules, annual, std, count, annual_std, coefficients, yearly);
    nb::gil_scoped_release unlocked;
    size_t largest = 0;
    for (size_t hydro = 0; hydro < samples.hydros; ++hydro) {
        HydroFit hydro_fit(samples, rules, hydro);
        const std::vector<SeasonFit>& fits = hydro_fit.fit();
        for (size_t season = 0; season < samples.seasons; ++season) {
            const Numbers& found = fits[season].coefficients;
            largest = std::max(largest, found.size());
            for (size_t lag = 0; lag < found.size(); ++lag)
                coefficients.data()[(season * max_order + lag) * samples.hydros + hydro] = found[lag];
            yearly.data()[season * samples.hydros + hydro] = fits[season].annual;
        }
    }
    return static_cast<long>(largest);
}

using FlagsIn = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using FlagsOut = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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
                double* mine = at(season, lag);
                for (size_t hydro = 0; hydro < hydros_; ++hydro) {
                    const double change = std::abs(total[hydro] - mine[hydro]);
                    if (change > largest || std::isnan(change)) largest = change;
                    mine[hydro] = total[hydro];
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
void explained_variance(Cube correlations, size_t season, Table coefficients,
                        nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
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

// Sums over the rows that a column shares with each of a strip of partners, which stay in registers from the first row to
// the last. Compiled for every processor and for AVX2: element by element, so that bits are the same. Rows that a pair
// does not share add a zero, which changes no sum that began with 0.
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

// own: values of the column, one for each row of the strips; `rows` lists where it is known.
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

void bind_par_fit(nb::module_& module) {
    module.def("fit_autoregressions", &fit_autoregressions, "correlation"_a.noconvert(), "annual"_a.noconvert(),
               "has_annual"_a, "std"_a.noconvert(), "count"_a.noconvert(), "annual_std"_a.noconvert(), "max_order"_a,
               "max_magnitude"_a, "quantile"_a, "coefficients"_a.noconvert(), "yearly"_a.noconvert());
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

// Fits of PAR(p) and PAR(p)-A models to periodic correlations. Plain arithmetic in a fixed order, so that bits are the
// same on every processor; rules and sources are described in cobre.stochastic.par.estimation.
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre::noise {
namespace {

using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using CubeOut = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using TableOut = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
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

    // Elimination with row exchanges; false if the matrix is singular. Afterwards the right-hand side is used up.
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
        : samples_(samples), rules_(rules), hydro_(hydro), fits_(samples.seasons) {}

    // In each round the largest order allowed to a season with a negative contribution goes down by one, in all such
    // seasons at once: the contributions of one depend on the orders of the others.
    const std::vector<SeasonFit>& fit() {
        const long seasons = static_cast<long>(samples_.seasons);
        std::vector<long> limits(samples_.seasons, rules_.max_order);
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
        const long seasons = static_cast<long>(samples_.seasons);
        return static_cast<size_t>(((season % seasons) + seasons) % seasons);
    }
    double lagged(const double* values, long season, long lag) const {
        return values[(wrapped(season) * samples_.lags + static_cast<size_t>(lag)) * samples_.hydros + hydro_];
    }
    double of_season(const double* values, long season) const {
        return values[wrapped(season) * samples_.hydros + hydro_];
    }

    SeasonFit fit_season(long season, long max_order) const {
        if (of_season(samples_.std, season) == 0.0 || of_season(samples_.count, season) == 0.0) return {};
        // One year before this season is known: two points would give a correlation of exactly 1.
        if (samples_.annual && of_season(samples_.annual_std, season) == 0.0) return {};
        const long order = select_order(season, max_order);
        Numbers solution;
        if (!yule_walker(season, order, solution))  // such as a lag that follows the last year exactly
            return samples_.annual && yule_walker(season, 0, solution) ? SeasonFit{{}, solution[0]} : SeasonFit{};
        const double annual = samples_.annual ? solution[order] : 0.0;
        solution.resize(order);
        for (const double value : solution)
            if (std::abs(value) > rules_.max_magnitude) return {};
        if (order > 0 && solution[0] < 0.0) solution.clear();
        return {std::move(solution), annual};
    }

    // If a later fit drops all lags, only the last year.
    void lower_order(long season, long limit) {
        if (limit >= static_cast<long>(fits_[season].coefficients.size())) return;
        SeasonFit fit = fit_season(season, limit);
        Numbers last_year;
        if (fit.coefficients.empty() && fit.annual != 0.0 && yule_walker(season, 0, last_year) && !last_year.empty())
            fit.annual = last_year[0];
        fits_[season] = std::move(fit);
    }

    long select_order(long season, long max_order) const {
        const double threshold = rules_.quantile / std::sqrt(of_season(samples_.count, season));
        for (long order = max_order; order > 0; --order)
            if (std::abs(partial_correlation(season, order)) > threshold) return order;
        return samples_.annual ? std::min(1L, max_order) : 0;
    }

    // Without a yearly component the last coefficient of the model of that order; 0 when undetermined.
    double partial_correlation(long season, long order) const {
        Numbers first, last;
        if (!samples_.annual) return yule_walker(season, order, last) ? last.back() : 0.0;
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
        const size_t count = static_cast<size_t>(order) + (samples_.annual ? 1 : 0);
        SmallSystem system(count);
        for (long i = 0; i < order; ++i) {
            for (long j = 0; j < order; ++j)
                system.at(i, j) =
                    i == j ? 1.0 : lagged(samples_.correlation, season - 1 - std::min(i, j), std::abs(i - j));
            system.right(i) = lagged(samples_.correlation, season, i + 1);
        }
        if (samples_.annual) {
            for (long i = 0; i < order; ++i)
                system.at(i, order) = system.at(order, i) = lagged(samples_.annual, season, i + 1);
            system.at(order, order) = 1.0;
            system.right(order) = lagged(samples_.annual, season, 0);
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
        const double earlier = of_season(samples_.std, season - lag);
        if (lag > static_cast<long>(fit.coefficients.size()) || earlier == 0.0) return 0.0;
        return fit.coefficients[lag - 1] * of_season(samples_.std, season) / earlier;
    }

    const Samples& samples_;
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
            const Numbers& fitted = fits[season].coefficients;
            largest = std::max(largest, fitted.size());
            for (size_t lag = 0; lag < fitted.size(); ++lag)
                coefficients.data()[(season * max_order + lag) * samples.hydros + hydro] = fitted[lag];
            yearly.data()[season * samples.hydros + hydro] = fits[season].annual;
        }
    }
    return static_cast<long>(largest);
}

}  // namespace

void bind_par_fit(nb::module_& module) {
    module.def("fit_autoregressions", &fit_autoregressions, "correlation"_a.noconvert(), "annual"_a.noconvert(),
               "has_annual"_a, "std"_a.noconvert(), "count"_a.noconvert(), "annual_std"_a.noconvert(), "max_order"_a,
               "max_magnitude"_a, "quantile"_a, "coefficients"_a.noconvert(), "yearly"_a.noconvert());
}

}  // namespace cobre::noise

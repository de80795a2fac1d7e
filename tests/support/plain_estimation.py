"""Inflow models from history as the method is described, one plant and season at a time, by other algebra.

Partial correlations are those of residuals (a Schur complement), contributions are responses to one unit of inflow,
and all sums run over pairs of months in a list. It uses nothing of the package.
"""

from math import sqrt

import numpy as np

MONTHS = 12
SIGNIFICANT = 1.96


class PlainFit:
    """Models of the twelve seasons of a plant; `values` by year and month, NaN after the last month observed."""

    def __init__(self, values, max_order, *, with_year=False):
        self.flat, self.with_year = values[~np.isnan(values)], with_year
        self.mean, self.std = zip(
            *(season_statistics(self.flat[month::MONTHS].tolist()) for month in range(MONTHS)), strict=True
        )
        self.year_mean, self.year_std = np.zeros(MONTHS), np.zeros(MONTHS)
        for month in range(MONTHS):
            past = [self.last_year(t) for t in self.months_like(month) if t >= MONTHS]
            self.year_mean[month], self.year_std[month] = np.mean(past), np.std(past)
        self.known = {}
        self.fits = [self.fit(season, max_order) for season in range(MONTHS)]
        self.lower_orders([max_order] * MONTHS)

    def lower_orders(self, limits):
        """Lower the order of a season as long as some past inflow would lower the current one."""
        while failing := [season for season in range(MONTHS) if min(self.responses(season), default=0.0) < 0.0]:
            for season in failing:
                limits[season] -= 1
                if limits[season] < len(self.fits[season][0]):
                    lags, yearly = self.fit(season, limits[season])
                    alone = self.year_correlation(season, 0) if self.with_year else 0.0
                    self.fits[season] = lags, yearly if lags else alone

    def fit(self, season, most):
        """Return coefficients by lag, and that of the last year."""
        if self.std[season] == 0.0:
            return [], 0.0
        order = next((k for k in range(most, 0, -1) if self.is_significant(season, k)), 0)
        if self.with_year:
            order = max(order, min(1, most))
        matrix = self.correlations(season, order)[1:, 1:]
        found = np.linalg.solve(matrix, self.correlations(season, order)[0, 1:]) if len(matrix) else np.zeros(0)
        lags, yearly = found[:order].tolist(), float(found[order]) if self.with_year else 0.0
        return ([] if lags and lags[0] < 0.0 else lags), yearly

    def is_significant(self, season, lag):
        """Return whether a lag's partial correlation, given those between and, if used, the year, is significant."""
        whole = self.correlations(season, lag)
        pair, given = [0, lag], [at for at in range(len(whole)) if at not in (0, lag)]
        if self.with_year:
            left = whole[np.ix_(pair, pair)]
            if given:
                left = left - whole[np.ix_(pair, given)] @ np.linalg.solve(
                    whole[np.ix_(given, given)], whole[np.ix_(given, pair)]
                )
            partial = left[0, 1] / sqrt(left[0, 0] * left[1, 1])
        else:  # taken as the last coefficient of the model of that order
            partial = np.linalg.solve(whole[1:, 1:], whole[0, 1:])[-1]
        return abs(partial) > SIGNIFICANT / sqrt(len(self.months_like(season)))

    def correlations(self, season, order):
        """Return correlations of a season, of the `order` seasons before it and of the last year's mean."""
        size = order + 1 + self.with_year
        found = np.eye(size)
        for i in range(order + 1):
            for j in range(i + 1, order + 1):
                found[i, j] = found[j, i] = self.correlation(season - i, j - i)
            if self.with_year:
                found[i, -1] = found[-1, i] = self.year_correlation(season, i)
        return found

    def correlation(self, season, lag):
        if (at := (season % MONTHS, lag)) not in self.known:
            self.known[at] = self.mean_product(season, lag)
        return self.known[at]

    def mean_product(self, season, lag):
        pairs = [self.standard(t) * self.standard(t - lag) for t in self.months_like(season) if t >= lag]
        return sum(pairs) / len(pairs)

    def year_correlation(self, season, lag):
        """Return the correlation with the last year; the divisor counts all lagged months, even the first."""
        month = season % MONTHS
        pairs = [
            self.standard(t - lag) * (self.last_year(t) - self.year_mean[month]) / self.year_std[month]
            for t in self.months_like(season)
            if t >= MONTHS
        ]
        return sum(pairs) / len(self.months_like(season - lag))

    def standard(self, t):
        month = t % MONTHS
        return 0.0 if self.std[month] == 0.0 else (self.flat[t] - self.mean[month]) / self.std[month]

    def last_year(self, t):
        return self.flat[t - MONTHS : t].mean()

    def months_like(self, season):
        return range(season % MONTHS, len(self.flat), MONTHS)

    def responses(self, season):
        """Return the season's response to one m3/s that arrived 1, 2, ... months before it, and to nothing else."""
        return [self.response(season, back) for back in range(1, len(self.fits[season][0]) + 1)]

    def response(self, season, back):
        flows = {season - back: 1.0}
        for now in range(season - back + 1, season + 1):
            month = now % MONTHS
            flows[now] = sum(
                phi * self.std[month] / self.std[(now - lag) % MONTHS] * flows.get(now - lag, 0.0)
                for lag, phi in enumerate(self.fits[month][0], start=1)
                if self.std[(now - lag) % MONTHS] > 0.0
            )
        return flows[season]


def season_statistics(values):
    """Return mean and deviation; a season that is one number, or mostly one whole number, has no deviation."""
    if all(abs(value - values[0]) <= 1e-6 for value in values):
        return values[0], 0.0
    whole = [int(value + 0.5) if value >= 0.0 else -int(0.5 - value) for value in values]
    usual = max(sorted(set(whole)), key=whole.count)
    if sum(value < 0.0 for value in values) <= 0.1 * len(values) and whole.count(usual) > 0.5 * len(values):
        return float(usual), 0.0
    return float(np.mean(values)), float(np.std(values))

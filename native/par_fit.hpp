// Fits of PAR(p) and PAR(p)-A models to periodic correlations, and the sums behind them. Plain arithmetic in a fixed order, so that bits are the
// same on every processor; rules and sources are described in cobre.stochastic.par.estimation.
#pragma once

#include <nanobind/nanobind.h>

namespace cobre::noise {

void bind_par_fit(nanobind::module_& module);

}  // namespace cobre::noise

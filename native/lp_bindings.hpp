// What Python sees of the LP kernel.
#pragma once

#include <nanobind/nanobind.h>

namespace cobre::lp {

void bind_engine(nanobind::module_& module);
void bind_cuts(nanobind::module_& module);

}  // namespace cobre::lp

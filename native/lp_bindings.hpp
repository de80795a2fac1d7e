// What Python sees of the LP kernel.
#pragma once

#include <nanobind/nanobind.h>

namespace cobre::lp {

void bind(nanobind::module_& module);

}  // namespace cobre::lp

// The matrix of a stage from the entries that blocks of rows added, and its scales. Plain arithmetic in a fixed order.
#pragma once

#include <nanobind/nanobind.h>

namespace cobre::lp {

void bind_assembly(nanobind::module_& module);

}  // namespace cobre::lp

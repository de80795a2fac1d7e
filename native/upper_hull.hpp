// The upper side of the convex hull of points over a plane; see cobre.sddp.hydro_models.fpha_fitting. Plain arithmetic in
// a fixed order, so that bits are the same on every processor.
#pragma once

#include <nanobind/nanobind.h>

namespace cobre {

void bind_upper_hull(nanobind::module_& module);

}  // namespace cobre

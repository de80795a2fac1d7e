// Numbers behind the noise of a study: rotations of correlation matrices, and standard normals. Plain arithmetic in a
// fixed order, so that bits are the same on every processor.
#pragma once

#include <nanobind/nanobind.h>

namespace cobre::noise {

void bind_noise(nanobind::module_& module);

}  // namespace cobre::noise

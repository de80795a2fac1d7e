// Python bindings of the communication layer: guard, shared memory, reductions and processes.
#pragma once

#include <nanobind/nanobind.h>

namespace cobre {

void bind_comm(nanobind::module_& module);

}  // namespace cobre

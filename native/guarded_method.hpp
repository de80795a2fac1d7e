// A method of a Python class whose common case runs in the guard, without a Python frame between caller and hook.
#pragma once

#include <nanobind/nanobind.h>

namespace cobre {

void bind_guarded_method(nanobind::module_& module);

}  // namespace cobre

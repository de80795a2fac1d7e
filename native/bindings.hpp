// The parts of the extension module, each bound in the file that the comment names.
#pragma once

#include <nanobind/nanobind.h>

namespace cobre {

void bind_comm(nanobind::module_& module);        // comm_bindings.cpp
void bind_heap(nanobind::module_& module);        // heap.cpp
void bind_json_scan(nanobind::module_& module);   // json_scan.cpp
void bind_upper_hull(nanobind::module_& module);  // upper_hull.cpp

namespace lp {
void bind_assembly(nanobind::module_& module);  // lp_assembly.cpp
void bind_cuts(nanobind::module_& module);      // lp_cut_bindings.cpp
void bind_engine(nanobind::module_& module);    // lp_bindings.cpp
}  // namespace lp

namespace noise {
void bind_noise(nanobind::module_& module);             // noise.cpp
void bind_par_correlations(nanobind::module_& module);  // par_correlations.cpp
void bind_par_fit(nanobind::module_& module);           // par_fit.cpp
}  // namespace noise

}  // namespace cobre

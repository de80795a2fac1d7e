// The extension module: all parts of the native core that Python sees.
#include <nanobind/nanobind.h>

#include "bindings.hpp"
#include "numpy_buffer.hpp"

namespace nb = nanobind;

NB_MODULE(_native, module) {
    if (!cobre::import_numpy()) throw nb::python_error();
    nb::set_leak_warnings(false);  // the kernel closes what a program leaves open at exit: no page of warnings
    module.attr("INTERFACE_DIGEST") = COBRE_INTERFACE_DIGEST;  // SHA-256 of _native.pyi: `cobre.versions`
    cobre::bind_comm(module);
    cobre::lp::bind_cuts(module);
    cobre::lp::bind_engine(module);
    cobre::noise::bind_noise(module);
    cobre::noise::bind_par_correlations(module);
    cobre::noise::bind_par_fit(module);
    cobre::lp::bind_assembly(module);
    cobre::bind_heap(module);
    cobre::bind_json_scan(module);
    cobre::bind_upper_hull(module);
}

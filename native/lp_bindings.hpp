// Python bindings of the LP kernel.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings.hpp"
#include "stop_signal.hpp"

namespace cobre::lp {

// What a long call asks now and then: handlers of signals, which Python runs on its main thread only, and then the
// caller's own function, if there is one. What either raises ends the call. ask: must outlive the call.
StopSignal::Ask ask_python(const nanobind::object& ask);

}  // namespace cobre::lp

#include "gil.hpp"

#include <Python.h>
#include <nanobind/nanobind.h>

#include <utility>

namespace cobre {

void Gil::release() {
    if (!state_) state_ = PyEval_SaveThread();
}

void Gil::acquire() {
    if (state_) PyEval_RestoreThread(static_cast<PyThreadState*>(std::exchange(state_, nullptr)));
}

void Gil::check_signals() {
    acquire();
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

}  // namespace cobre

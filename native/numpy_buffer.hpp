// The memory behind a NumPy array, read straight from the array object: no buffer request, no copy.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "comm_types.hpp"

namespace cobre {

struct Buffer : TypedMemory {
    int dimensions = 0;
    const Py_ssize_t* shape = nullptr;
};

// Load NumPy's C interface; called once when the module is loaded.
bool import_numpy();

// Fill `out` from an exact ndarray that is C-contiguous, of a plain numeric or boolean dtype in native order, and
// writable if requested. Returns false for anything else, without a Python error.
bool read_plain(PyObject* object, bool writable, Buffer& out);

// The buffer of any C-contiguous ndarray; for other dtypes the number is their checksum. Throws a Python error for what
// is not such an array.
Buffer read_any(PyObject* object);

// A new array, C-contiguous and not filled; only float64, int32, int8 and uint8 are known. Throws a Python error.
PyObject* new_array(ElementType element, std::initializer_list<Py_ssize_t> shape);

// A number for a dtype that is the same in every process: a hash of its repr().
uint32_t dtype_checksum(PyObject* dtype);

}  // namespace cobre

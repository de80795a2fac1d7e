#include "numpy_buffer.hpp"

#include <nanobind/nanobind.h>
#include <numpy/arrayobject.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace nb = nanobind;

namespace cobre {
namespace {

ElementType element_of(int type_number) {
    switch (type_number) {
        case NPY_HALF: return ElementType::float16;
        case NPY_FLOAT: return ElementType::float32;
        case NPY_DOUBLE: return ElementType::float64;
        case NPY_LONGDOUBLE: return ElementType::long_double;
        case NPY_CFLOAT: return ElementType::complex64;
        case NPY_CDOUBLE: return ElementType::complex128;
        case NPY_CLONGDOUBLE: return ElementType::complex_long_double;
        case NPY_BYTE: return ElementType::int8;
        case NPY_UBYTE: return ElementType::uint8;
        case NPY_SHORT: return ElementType::int16;
        case NPY_USHORT: return ElementType::uint16;
        case NPY_INT: return ElementType::int32;
        case NPY_UINT: return ElementType::uint32;
        case NPY_LONG: return sizeof(long) == 8 ? ElementType::int64 : ElementType::int32;
        case NPY_ULONG: return sizeof(long) == 8 ? ElementType::uint64 : ElementType::uint32;
        case NPY_LONGLONG: return ElementType::int64;
        case NPY_ULONGLONG: return ElementType::uint64;
        case NPY_BOOL: return ElementType::boolean;
        default: return ElementType::none;
    }
}

void fill(PyArrayObject* array, Buffer& out) {
    out.data = static_cast<std::byte*>(PyArray_DATA(array));
    out.count = static_cast<size_t>(PyArray_SIZE(array));
    out.itemsize = static_cast<size_t>(PyArray_ITEMSIZE(array));
    out.element = element_of(PyArray_TYPE(array));
    out.dtype = static_cast<uint32_t>(out.element);
    out.dimensions = PyArray_NDIM(array);
    out.shape = PyArray_DIMS(array);
}

int type_number_of(ElementType element) {
    switch (element) {
        case ElementType::float64: return NPY_DOUBLE;
        case ElementType::int32: return NPY_INT32;
        case ElementType::int8: return NPY_INT8;
        case ElementType::uint8: return NPY_UINT8;
        default: throw nb::type_error("no array of this type can be made");
    }
}

// repr() takes microseconds, and programs use few dtypes: the last checksums are cached.
uint32_t cached_checksum(PyArrayObject* array) {
    struct Cached {
        PyObject* dtype = nullptr;  // owned: while it lives, no other dtype has its address
        uint32_t checksum = 0;
    };
    static Cached cache[8];
    static size_t next = 0;
    auto* dtype = reinterpret_cast<PyObject*>(PyArray_DESCR(array));
    for (const Cached& entry : cache)
        if (entry.dtype == dtype) return entry.checksum;
    Cached& entry = cache[next++ % std::size(cache)];
    const uint32_t checksum = dtype_checksum(dtype);
    Py_INCREF(dtype);
    Py_XDECREF(std::exchange(entry.dtype, dtype));
    return entry.checksum = checksum;
}

}  // namespace

// Python's own hash of a dtype differs between processes, so the text of its repr() is hashed instead.
uint32_t dtype_checksum(PyObject* dtype) {
    nb::str text(nb::repr(nb::handle(dtype)));
    uint32_t checksum = 2166136261u;  // FNV-1a
    for (const char* at = text.c_str(); *at; ++at) checksum = (checksum ^ static_cast<unsigned char>(*at)) * 16777619u;
    return checksum | 0x80000000u;  // never the number of a plain type
}

bool import_numpy() { return _import_array() == 0; }

bool read_plain(PyObject* object, bool writable, Buffer& out) {
    if (!PyArray_CheckExact(object)) return false;
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    const int required = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (writable ? NPY_ARRAY_WRITEABLE : 0);
    if ((PyArray_FLAGS(array) & required) != required || !PyArray_ISNOTSWAPPED(array)) return false;
    fill(array, out);
    return out.element != ElementType::none;
}

Buffer read_any(PyObject* object) {
    if (!PyArray_Check(object) || !PyArray_IS_C_CONTIGUOUS(reinterpret_cast<PyArrayObject*>(object)))
        throw nb::type_error("expected a C-contiguous NumPy array");
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    Buffer out;
    fill(array, out);
    if (out.element == ElementType::none) out.dtype = cached_checksum(array);
    return out;
}

PyObject* new_array(ElementType element, std::initializer_list<Py_ssize_t> shape) {
    npy_intp sizes[NPY_MAXDIMS];
    std::copy(shape.begin(), shape.end(), sizes);
    PyObject* array = PyArray_SimpleNew(static_cast<int>(shape.size()), sizes, type_number_of(element));
    if (!array) throw nb::python_error();
    return array;
}

}  // namespace cobre

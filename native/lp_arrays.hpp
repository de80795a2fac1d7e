// NumPy arrays that cross into the LP kernel: arguments, whose type and layout are checked, and results.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <string>
#include <type_traits>

#include "highs_api.hpp"
#include "numpy_buffer.hpp"

namespace cobre::lp {

template <typename T>
constexpr ElementType element_of() {
    if constexpr (std::is_same_v<T, double>) return ElementType::float64;
    else if constexpr (std::is_same_v<T, Int>) return ElementType::int32;
    else if constexpr (std::is_same_v<T, int64_t>) return ElementType::int64;
    else if constexpr (std::is_same_v<T, int8_t>) return ElementType::int8;
    else return ElementType::uint8;
}

// A C-contiguous array of exactly this type.
template <typename T>
class Array {
public:
    Array(nanobind::handle object, const char* name, bool writable = false) {
        if (!read_plain(object.ptr(), writable, buffer_) || buffer_.element != element_of<T>())
            throw nanobind::type_error(
                (std::string(name) + ": expected a C-contiguous array of " + element_name(element_of<T>())).c_str());
    }

    T* data() const { return reinterpret_cast<T*>(buffer_.data); }
    size_t size() const { return buffer_.count; }
    std::span<const T> span() const { return {data(), size()}; }
    size_t height() const { return buffer_.dimensions ? static_cast<size_t>(buffer_.shape[0]) : 1; }
    size_t width() const { return buffer_.dimensions > 1 ? static_cast<size_t>(buffer_.shape[1]) : 0; }

private:
    Buffer buffer_;
};

// A new array; `data` points at its numbers.
template <typename T>
nanobind::object make_array(T*& data, std::initializer_list<Py_ssize_t> shape) {
    auto object = nanobind::steal(new_array(element_of<T>(), shape));
    data = Array<T>(object, "", true).data();
    return object;
}

}  // namespace cobre::lp

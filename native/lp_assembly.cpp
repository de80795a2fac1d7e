// The matrix of a stage from the entries that blocks of rows added, and its scales. Plain arithmetic in a fixed order.
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bindings.hpp"
#include "lp_scaling.hpp"
#include "numpy_buffer.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre::lp {
namespace {

template <typename T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct Entry {
    int32_t row, column;
    double value;
};

constexpr size_t kMaxDimensions = 4;
constexpr int64_t kAbsent = -1;

// Sorts entries by their rows or columns, those with the same one in their given order.
void sort_by(int32_t Entry::* key, size_t num_keys, std::vector<Entry>& entries, std::vector<Entry>& sorted) {
    std::vector<uint32_t> next(num_keys + 1, 0);
    for (const Entry& entry : entries) {
        if (static_cast<size_t>(entry.*key) >= num_keys)
            throw nb::index_error("assemble: there is no such row or column");
        ++next[static_cast<size_t>(entry.*key) + 1];
    }
    for (size_t k = 0; k < num_keys; ++k) next[k + 1] += next[k];
    sorted.resize(entries.size());
    for (const Entry& entry : entries) sorted[next[static_cast<size_t>(entry.*key)]++] = entry;
    entries.swap(sorted);
}

// How to walk an array that is broadcast to a shape: zero strides along what it does not have.
template <typename T>
struct Walk {
    const T* data;
    int64_t stride[kMaxDimensions] = {};

    Walk(const nb::ndarray<const T, nb::device::cpu>& array, const size_t* shape, size_t dimensions)
        : data(array.data()) {
        const size_t own = array.ndim();
        for (size_t k = 0; k < own; ++k) {
            const size_t at = dimensions - own + k;
            if (array.shape(k) == shape[at]) stride[at] = array.shape(k) == 1 ? 0 : array.stride(k);
            else if (array.shape(k) != 1)
                throw nb::value_error("add: arrays that cannot be broadcast against one another");
        }
    }

    int64_t offset(size_t i, size_t j, size_t k) const {
        return static_cast<int64_t>(i) * stride[0] + static_cast<int64_t>(j) * stride[1] +
               static_cast<int64_t>(k) * stride[2];
    }
};

// Entries of a matrix as they come.
class EntryList {
public:
    using Positions = nb::ndarray<const int64_t, nb::device::cpu>;
    using Values = nb::ndarray<const double, nb::device::cpu>;

    // Arrays are broadcast against one another; what has no row, no column or the value 0 is left out.
    void add(const Positions& rows, const Positions& columns, const Values& values) {
        const size_t dimensions = std::max({rows.ndim(), columns.ndim(), values.ndim()});
        if (dimensions > kMaxDimensions) throw nb::value_error("add: arrays of more than four dimensions");
        size_t shape[kMaxDimensions] = {1, 1, 1, 1};
        widen(shape, dimensions, rows), widen(shape, dimensions, columns), widen(shape, dimensions, values);
        // Dimensions that are missing come first: their loops run once.
        size_t whole[kMaxDimensions] = {1, 1, 1, 1};
        std::copy_n(shape, dimensions, whole + kMaxDimensions - dimensions);
        const Walk<int64_t> row(rows, whole, kMaxDimensions), column(columns, whole, kMaxDimensions);
        const Walk<double> value(values, whole, kMaxDimensions);
        for (size_t i = 0; i < whole[0]; ++i)
            for (size_t j = 0; j < whole[1]; ++j)
                for (size_t k = 0; k < whole[2]; ++k) {
                    const int64_t* r = row.data + row.offset(i, j, k);
                    const int64_t* c = column.data + column.offset(i, j, k);
                    const double* v = value.data + value.offset(i, j, k);
                    for (size_t l = 0; l < whole[3];
                         ++l, r += row.stride[3], c += column.stride[3], v += value.stride[3])
                        if (*r != kAbsent && *c != kAbsent && *v != 0.0) push(*r, *c, *v);
                }
    }

    size_t size() const { return entries_.size(); }

    // Fills `start` (rows + 1), and `index` and `value` from their beginning; entries of one row and column are added
    // in order. Returns how many there are.
    size_t assemble(size_t num_columns, Array<int32_t> start, Array<int32_t> index, Array<double> value) {
        const size_t count = entries_.size();
        if (index.size() != count || value.size() != count || start.size() == 0)
            throw nb::value_error("assemble: room for a start of each row, and for all entries");
        const size_t num_rows = start.size() - 1;
        std::vector<Entry> sorted;
        sort_by(&Entry::column, num_columns, entries_, sorted);
        sort_by(&Entry::row, num_rows, entries_, sorted);
        size_t filled = 0, row = 0;
        start.data()[0] = 0;
        for (const Entry& entry : entries_) {
            while (row < static_cast<size_t>(entry.row)) start.data()[++row] = static_cast<int32_t>(filled);
            const auto first = static_cast<size_t>(start.data()[row]);
            if (filled > first && index.data()[filled - 1] == entry.column) {
                value.data()[filled - 1] = value.data()[filled - 1] + entry.value;
            } else {
                index.data()[filled] = entry.column;
                value.data()[filled++] = entry.value;
            }
        }
        while (row < num_rows) start.data()[++row] = static_cast<int32_t>(filled);
        return filled;
    }

private:
    template <typename Given>
    static void widen(size_t* shape, size_t dimensions, const Given& array) {
        for (size_t k = 0; k < array.ndim(); ++k) {
            size_t& found = shape[dimensions - array.ndim() + k];
            if (found == 1) found = array.shape(k);
        }
    }

    void push(int64_t row, int64_t column, double value) {
        if (row > INT32_MAX || column > INT32_MAX || row < 0 || column < 0)
            throw nb::index_error("add: a row or column that no matrix has");
        entries_.push_back({static_cast<int32_t>(row), static_cast<int32_t>(column), value});
    }

    std::vector<Entry> entries_;
};

// Bounds and costs of columns, or bounds of rows, as they come: `parts` numbers of each.
class BoundList {
public:
    using Flags = nb::ndarray<const bool, nb::device::cpu>;
    using Values = nb::ndarray<const double, nb::device::cpu>;
    using Numbers = nb::ndarray<int64_t, nb::device::cpu, nb::c_contig>;

    // Takes the numbers of those that are present; `index` gets their positions, and -1 for the others.
    size_t add(const Flags& present, const std::vector<Values>& parts, Numbers index) {
        const size_t dimensions = present.ndim();
        bool has_shape = dimensions <= kMaxDimensions && index.ndim() == dimensions;
        size_t whole[kMaxDimensions] = {1, 1, 1, 1};
        for (size_t k = 0; has_shape && k < dimensions; ++k) {
            whole[kMaxDimensions - dimensions + k] = present.shape(k);
            has_shape = index.shape(k) == present.shape(k);
        }
        if (!has_shape) throw nb::value_error("add: an index of the same shape, of up to four dimensions");
        const size_t before = size();
        const Walk<bool> is_there(present, whole, kMaxDimensions);
        int64_t* number = index.data();
        size_t count = before;
        walk(is_there, whole,
             [&](bool is_present) { *number++ = is_present ? static_cast<int64_t>(count++) : kAbsent; });
        values_.resize(std::max(values_.size(), parts.size()));
        for (size_t part = 0; part < parts.size(); ++part) add_part(values_[part], parts[part], is_there, whole);
        return count - before;
    }

    size_t size() const { return values_.empty() ? 0 : values_[0].size(); }

    void copy(size_t part, Array<double> out) const {
        if (part >= values_.size() || out.size() != size())
            throw nb::value_error("copy: room for all numbers of a part");
        std::copy(values_[part].begin(), values_[part].end(), out.data());
    }

private:
    template <typename Visit>
    static void walk(const Walk<bool>& flags, const size_t* whole, const Visit& visit) {
        for (size_t i = 0; i < whole[0]; ++i)
            for (size_t j = 0; j < whole[1]; ++j)
                for (size_t k = 0; k < whole[2]; ++k) {
                    const bool* flag = flags.data + flags.offset(i, j, k);
                    for (size_t l = 0; l < whole[3]; ++l, flag += flags.stride[3]) visit(*flag);
                }
    }

    static void add_part(std::vector<double>& numbers, const Values& given, const Walk<bool>& flags,
                         const size_t* whole) {
        const Walk<double> values(given, whole, kMaxDimensions);
        for (size_t i = 0; i < whole[0]; ++i)
            for (size_t j = 0; j < whole[1]; ++j)
                for (size_t k = 0; k < whole[2]; ++k) {
                    const bool* flag = flags.data + flags.offset(i, j, k);
                    const double* value = values.data + values.offset(i, j, k);
                    for (size_t l = 0; l < whole[3]; ++l, flag += flags.stride[3], value += values.stride[3])
                        if (*flag) numbers.push_back(*value);
                }
    }

    std::vector<std::vector<double>> values_;
};

// Entries times the scales of their rows and columns, in place.
void scale_entries(Array<const int32_t> start, Array<const int32_t> index, Array<const double> row_scale,
                   Array<const double> column_scale, Array<double> value) {
    const size_t num_rows = row_scale.size();
    if (start.size() != num_rows + 1 || index.size() != value.size() ||
        static_cast<size_t>(start.data()[num_rows]) != index.size())
        throw nb::value_error("scale_entries: a start for each row, a value for each entry");
    for (size_t row = 0; row < num_rows; ++row)
        for (auto at = static_cast<size_t>(start.data()[row]); at < static_cast<size_t>(start.data()[row + 1]); ++at) {
            const auto column = static_cast<size_t>(index.data()[at]);
            if (column >= column_scale.size()) throw nb::index_error("scale_entries: there is no such column");
            value.data()[at] = value.data()[at] * row_scale.data()[row] * column_scale.data()[column];
        }
}

// Scales of rows and columns that bring entries near one.
void power_of_two_scales(Array<const int32_t> start, Array<const int32_t> index, Array<const double> value, int rounds,
                         Array<double> row_scale, Array<double> column_scale) {
    const size_t num_rows = row_scale.size(), num_columns = column_scale.size();
    if (start.size() != num_rows + 1 || index.size() != value.size() ||
        static_cast<size_t>(start.data()[num_rows]) != index.size())
        throw nb::value_error("power_of_two_scales: a start for each row, a value for each entry");
    for (size_t at = 0; at < index.size(); ++at)
        if (index.data()[at] < 0 || static_cast<size_t>(index.data()[at]) >= num_columns)
            throw nb::index_error("power_of_two_scales: there is no such column");
    const Exponents found = balanced_exponents({start.data(), start.size()}, {index.data(), index.size()},
                                               {value.data(), value.size()}, num_columns, rounds);
    for (size_t r = 0; r < num_rows; ++r) row_scale.data()[r] = std::ldexp(1.0, found.row[r]);
    for (size_t c = 0; c < num_columns; ++c) column_scale.data()[c] = std::ldexp(1.0, found.column[c]);
}

// Whether two arrays of any type hold the same bytes.
bool same_bytes(nb::handle left, nb::handle right) {
    const Buffer a = read_any(left.ptr()), b = read_any(right.ptr());
    return a.nbytes() == b.nbytes() && std::memcmp(a.data, b.data, a.nbytes()) == 0;
}

}  // namespace

void bind_assembly(nb::module_& module) {
    nb::class_<EntryList>(module, "EntryList")
        .def(nb::init<>())
        .def("add", &EntryList::add, "rows"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert())
        .def("assemble", &EntryList::assemble, "num_columns"_a, "start"_a.noconvert(), "index"_a.noconvert(),
             "value"_a.noconvert())
        .def("__len__", &EntryList::size);
    nb::class_<BoundList>(module, "BoundList")
        .def(nb::init<>())
        .def("add", &BoundList::add, "present"_a.noconvert(), "parts"_a, "index"_a.noconvert())
        .def("copy", &BoundList::copy, "part"_a, "out"_a.noconvert())
        .def("__len__", &BoundList::size);
    module.def("same_bytes", &same_bytes, "left"_a, "right"_a);
    module.def("scale_entries", &scale_entries, "start"_a.noconvert(), "index"_a.noconvert(), "row_scale"_a.noconvert(),
               "column_scale"_a.noconvert(), "value"_a.noconvert());
    module.def("power_of_two_scales", &power_of_two_scales, "start"_a.noconvert(), "index"_a.noconvert(),
               "value"_a.noconvert(), "rounds"_a, "row_scale"_a.noconvert(), "column_scale"_a.noconvert());
}

}  // namespace cobre::lp

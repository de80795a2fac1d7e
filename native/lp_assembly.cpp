#include "lp_assembly.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre::lp {
namespace {

template <typename T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Order = std::vector<uint32_t>;

// Sorts positions by a key, those with the same key in their given order.
Order sorted_by(const int64_t* key, size_t num_keys, const Order& before, const char* what) {
    std::vector<uint32_t> next(num_keys + 1, 0);
    for (const uint32_t at : before) {
        if (key[at] < 0 || key[at] >= static_cast<int64_t>(num_keys))
            throw nb::index_error((std::string("assemble: there is no ") + what).c_str());
        ++next[static_cast<size_t>(key[at]) + 1];
    }
    for (size_t k = 0; k < num_keys; ++k) next[k + 1] += next[k];
    Order found(before.size());
    for (const uint32_t at : before) found[next[static_cast<size_t>(key[at])]++] = at;
    return found;
}

constexpr size_t kMaxDimensions = 4;
constexpr int64_t kAbsent = -1;

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
        const auto offset = [](const auto& walk, size_t i, size_t j, size_t k) {
            return static_cast<int64_t>(i) * walk.stride[0] + static_cast<int64_t>(j) * walk.stride[1] +
                   static_cast<int64_t>(k) * walk.stride[2];
        };
        for (size_t i = 0; i < whole[0]; ++i)
            for (size_t j = 0; j < whole[1]; ++j)
                for (size_t k = 0; k < whole[2]; ++k) {
                    const int64_t* r = row.data + offset(row, i, j, k);
                    const int64_t* c = column.data + offset(column, i, j, k);
                    const double* v = value.data + offset(value, i, j, k);
                    for (size_t l = 0; l < whole[3];
                         ++l, r += row.stride[3], c += column.stride[3], v += value.stride[3])
                        if (*r != kAbsent && *c != kAbsent && *v != 0.0) push(*r, *c, *v);
                }
    }

    size_t size() const { return values_.size(); }

    // Fills `start` (rows + 1), and `index` and `value` from their beginning; entries of one row and column are added in
    // order. Returns how many there are.
    size_t assemble(size_t num_columns, Array<int32_t> start, Array<int32_t> index, Array<double> value) const {
        const size_t count = values_.size();
        if (index.size() != count || value.size() != count || start.size() == 0)
            throw nb::value_error("assemble: room for a start of each row, and for all entries");
        const size_t num_rows = start.size() - 1;
        Order order(count);
        for (size_t at = 0; at < count; ++at) order[at] = static_cast<uint32_t>(at);
        order = sorted_by(columns_.data(), num_columns, order, "such column");
        order = sorted_by(rows_.data(), num_rows, order, "such row");
        size_t filled = 0, row = 0;
        start.data()[0] = 0;
        for (const uint32_t at : order) {
            const auto own_row = static_cast<size_t>(rows_[at]);
            const auto column = static_cast<int32_t>(columns_[at]);
            while (row < own_row) start.data()[++row] = static_cast<int32_t>(filled);
            const auto first = static_cast<size_t>(start.data()[row]);
            if (filled > first && index.data()[filled - 1] == column) {
                value.data()[filled - 1] = value.data()[filled - 1] + values_[at];
            } else {
                index.data()[filled] = column;
                value.data()[filled++] = values_[at];
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
        rows_.push_back(row);
        columns_.push_back(column);
        values_.push_back(value);
    }

    std::vector<int64_t> rows_, columns_;
    std::vector<double> values_;
};

// The range of exponents of every row or column.
class Ranges {
public:
    explicit Ranges(size_t count) : low_(count), high_(count) {}

    void clear() {
        std::fill(low_.begin(), low_.end(), INT64_MAX);
        std::fill(high_.begin(), high_.end(), INT64_MIN);
    }
    void add(size_t at, int64_t exponent) {
        low_[at] = std::min(low_[at], exponent);
        high_[at] = std::max(high_[at], exponent);
    }
    // Half way between the largest and the smallest, rounded down; 0 for an empty one.
    void write_opposite_middles(std::vector<int64_t>& out) const {
        for (size_t at = 0; at < out.size(); ++at) out[at] = high_[at] >= low_[at] ? -((high_[at] + low_[at]) >> 1) : 0;
    }

private:
    std::vector<int64_t> low_, high_;
};

// Scales of rows and columns that bring entries near one, in turns. Exponents alone, so that nothing is rounded.
void power_of_two_scales(Array<const int32_t> start, Array<const int32_t> index, Array<const double> value, int rounds,
                         Array<double> row_scale, Array<double> column_scale) {
    const size_t num_rows = row_scale.size(), num_columns = column_scale.size();
    if (start.size() != num_rows + 1 || index.size() != value.size() ||
        static_cast<size_t>(start.data()[num_rows]) != index.size())
        throw nb::value_error("power_of_two_scales: a start for each row, a value for each entry");
    for (size_t at = 0; at < index.size(); ++at)
        if (index.data()[at] < 0 || static_cast<size_t>(index.data()[at]) >= num_columns)
            throw nb::index_error("power_of_two_scales: there is no such column");
    std::vector<int64_t> exponent(value.size()), row(num_rows, 0), column(num_columns, 0);
    for (size_t at = 0; at < value.size(); ++at) {
        int found = 0;
        std::frexp(value.data()[at], &found);
        exponent[at] = found;
    }
    Ranges of_rows(num_rows), of_columns(num_columns);
    const auto each_entry = [&](const auto& visit) {
        for (size_t r = 0; r < num_rows; ++r)
            for (auto at = static_cast<size_t>(start.data()[r]); at < static_cast<size_t>(start.data()[r + 1]); ++at)
                visit(r, static_cast<size_t>(index.data()[at]), exponent[at]);
    };
    for (int round = 0; round < rounds; ++round) {
        of_rows.clear();
        each_entry([&](size_t r, size_t c, int64_t own) { of_rows.add(r, own + column[c]); });
        of_rows.write_opposite_middles(row);
        of_columns.clear();
        each_entry([&](size_t r, size_t c, int64_t own) { of_columns.add(c, own + row[r]); });
        of_columns.write_opposite_middles(column);
    }
    for (size_t r = 0; r < num_rows; ++r) row_scale.data()[r] = std::ldexp(1.0, static_cast<int>(row[r]));
    for (size_t c = 0; c < num_columns; ++c) column_scale.data()[c] = std::ldexp(1.0, static_cast<int>(column[c]));
}

}  // namespace

void bind_assembly(nb::module_& module) {
    nb::class_<EntryList>(module, "EntryList")
        .def(nb::init<>())
        .def("add", &EntryList::add, "rows"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert())
        .def("assemble", &EntryList::assemble, "num_columns"_a, "start"_a.noconvert(), "index"_a.noconvert(),
             "value"_a.noconvert())
        .def("__len__", &EntryList::size);
    module.def("power_of_two_scales", &power_of_two_scales, "start"_a.noconvert(), "index"_a.noconvert(),
               "value"_a.noconvert(), "rounds"_a, "row_scale"_a.noconvert(), "column_scale"_a.noconvert());
}

}  // namespace cobre::lp
